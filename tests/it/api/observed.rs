//! Telemetry records of calls of `/api/v1`, headers with token counts, and the schemas in `/openapi.json`.

use fetchwell_core::fit::count_tokens;
use serde_json::{Value, json};

use crate::support::{Api, HttpServer, ask, encoded, hostaway_store, text};

/// Checks the rules that hold for the telemetry record of every successful call.
#[track_caller]
fn rule_row(row: &Value, items: u32, answer: &str) {
    assert!(!(row["pagination_used"] == true && row["chunking_used"] == true), "a page is no chunk: {row}");
    assert_eq!((&row["item_count"], &row["response_bytes"]), (&json!(items), &json!(answer.len())), "{row}");
    if let Some(list) = serde_json::from_str::<Value>(answer).unwrap()["items"].as_array() {
        assert_eq!(row["item_count"], list.len());
    }
    let tokens = row["estimated_tokens"].as_u64().unwrap();
    let each = row["tokens_per_item"].as_f64().unwrap();
    assert!((each - tokens as f64 / f64::from(items.max(1))).abs() < 0.01, "{row}");
}

/// Checks that the sizes in a telemetry record are those in `meta` of the response.
#[track_caller]
fn rule_sizes(row: &Value, answer: &str) {
    let mut body = serde_json::from_str::<Value>(answer).unwrap();
    let meta = body["meta"].clone();
    let counted = count_tokens(answer);
    assert_eq!(
        (&row["estimated_tokens"], &row["optimization_metadata"]["final_tokens"]),
        (&json!(counted), &json!(counted))
    );
    if row["summarization_used"] == false {
        assert_eq!(row["original_tokens"], counted, "{row}");
    } else if let Some(estimated) = meta["budget"]["estimatedTokens"].as_u64() {
        // A list has its envelope beside the items that are estimated.
        let is_list = body.get("items").is_some();
        body["items"] = json!([]);
        let envelope = if is_list { count_tokens(&body.to_string()) as u64 } else { 0 };
        assert_eq!(row["original_tokens"], estimated + envelope, "{row}");
    }
    if meta["budget"].is_object() {
        assert_eq!(row["oversized"], meta["budget"]["summaryMode"], "{row}");
    }
    assert!(row["oversized"] == false || row["original_tokens"].is_u64(), "{row}");
    if let Some(total) = meta["totalFields"].as_u64() {
        assert_eq!(row["optimization_metadata"]["original_fields"], total, "{row}");
        let shown = meta["projectedFields"].as_array().unwrap().len();
        assert_eq!(row["optimization_metadata"]["kept_fields"], shown, "{row}");
    }
}

/// A target, its endpoint, whether it is paginated, summarized and chunked, and its number of items.
type RecordedCall = (String, &'static str, [bool; 3], u32);

/// Makes calls of every kind twice, then three that are refused. Returns the second answers and all telemetry records.
fn recorded_calls() -> (Api, Vec<RecordedCall>, Vec<String>, Vec<Value>) {
    let api = Api::protected(
        "endpoints:\n  /api/v1/bookings: {threshold: 500}\n  /api/v1/reviews: {pagination_enabled: false}",
    );
    let chunks = format!("/api/v1/content/{}", encoded("cin_seaside/reservations:BK99999"));
    let calls: Vec<RecordedCall> = vec![
        ("/api/v1".to_owned(), "/api/v1", [false, false, false], 9),
        ("/api/v1/listings?limit=5&fields=id".to_owned(), "/api/v1/listings", [true, false, false], 5),
        ("/api/v1/listings?limit=50".to_owned(), "/api/v1/listings", [true, true, false], 50),
        ("/api/v1/listings?summary=true&limit=3".to_owned(), "/api/v1/listings", [true, true, false], 3),
        // A single page counts as pagination; a list with pagination disabled does not.
        ("/api/v1/analytics?limit=28&fields=id".to_owned(), "/api/v1/analytics", [true, false, false], 28),
        ("/api/v1/bookings?status=nothing".to_owned(), "/api/v1/bookings", [true, false, false], 0),
        ("/api/v1/reviews?title=nothing".to_owned(), "/api/v1/reviews", [false, false, false], 0),
        ("/api/v1/bookings/BK12345".to_owned(), "/api/v1/bookings/{id}", [false, true, false], 1),
        ("/api/v1/bookings/BK12345?fields=all".to_owned(), "/api/v1/bookings/{id}", [false, false, false], 1),
        ("/api/v1/bookings/BK99999?fields=all".to_owned(), "/api/v1/bookings/{id}", [false, true, false], 1),
        (
            "/api/v1/financial_transactions?limit=1&fields=id".to_owned(),
            "/api/v1/{stream}",
            [true, false, false],
            1,
        ),
        (format!("{chunks}?field=messages"), "/api/v1/content/{id}", [false, false, true], 1),
        (
            format!("{chunks}?field=messages&startLine=1&endLine=2"),
            "/api/v1/content/{id}",
            [false, false, true],
            1,
        ),
        (format!("{chunks}?field=status"), "/api/v1/content/{id}", [false, false, false], 1),
    ];
    let answers: Vec<String> = calls
        .iter()
        .map(|(target, ..)| {
            api.ok(target);
            api.get(target).text
        })
        .collect();
    api.refused("/api/v1/nowhere", 404, "NOT_FOUND");
    api.cursor_fault("/api/v1/listings?cursor=x");
    api.refused("/api/v1/listings?limit=201", 400, "INVALID_ARGUMENT");
    let rows = loop {
        let rows = api.telemetry();
        if rows.len() >= calls.len() * 2 + 3 {
            break rows;
        }
        std::thread::yield_now();
    };
    assert_eq!(rows.len(), calls.len() * 2 + 3);
    (api, calls, answers, rows)
}

#[test]
fn calls_are_recorded_with_their_kind_and_sizes() {
    let (api, calls, answers, rows) = recorded_calls();
    for (index, ((target, endpoint, [paginated, summarized, chunked], items), answer)) in
        calls.iter().zip(&answers).enumerate()
    {
        // Each call was made twice; the second answer is the one that was kept.
        let row = &rows[index * 2 + 1];
        assert_eq!((&row["endpoint"], &row["outcome"]), (&json!(endpoint), &json!("ok")), "{target}");
        let used = ["pagination_used", "summarization_used", "chunking_used"].map(|name| row[name] == true);
        assert_eq!(used, [*paginated, *summarized, *chunked], "{target}: {row}");
        rule_row(row, *items, answer);
        rule_sizes(row, answer);
    }
    let last: Vec<(&str, &str)> = rows[rows.len() - 3..]
        .iter()
        .map(|row| (row["endpoint"].as_str().unwrap(), row["outcome"].as_str().unwrap()))
        .collect();
    assert_eq!(
        last,
        [
            ("/api/v1/{unknown}", "not_found"),
            ("/api/v1/listings", "invalid_cursor"),
            ("/api/v1/listings", "invalid_argument")
        ]
    );
    let refused = api.get("/api/v1/listings?limit=201").text;
    assert_eq!(rows[rows.len() - 1]["response_bytes"], refused.len());
    let preview = &rows[15];
    assert_eq!(preview["oversized"], true, "{preview}");
    assert!(preview["original_tokens"].as_u64() > preview["estimated_tokens"].as_u64(), "{preview}");
    let metrics = api.get("/metrics").text;
    assert!(metrics.contains("fetchwell_invalid_cursors_total{reason=\"malformed\"} 1"), "{metrics}");
    let health = api.health();
    for rate in ["pagination_adoption", "summarization_adoption", "chunking_adoption"] {
        assert!(health["context_protection"][rate].as_f64().unwrap() > 0.0, "{rate}: {health}");
    }
    // Six of seven list endpoints are paginated; each was called twice.
    assert_eq!(health["context_protection"]["pagination_adoption"], 0.8571, "{health}");
}

/// Tools and routes, with their arguments, and whether their answers are shortened.
const ESTIMATED: [(&str, &str, bool); 12] = [
    ("GET", "/api/v1/bookings/BK20005", false),
    ("GET", "/api/v1/bookings/BK20005?meta=1", false),
    ("GET", "/api/v1/bookings/BK99999", true),
    ("GET", "/api/v1/bookings/BK99999?fields=all", true),
    ("GET", "/api/v1/reviews?limit=3", false),
    ("GET", "/api/v1/listings?limit=50", true),
    ("GET", "/api/v1/listings?limit=50&summary=true", true),
    ("GET", "/v1/streams/reviews/records?limit=3", false),
    ("fetch", r#"{"id": "cin_seaside/reservations:BK20005"}"#, false),
    ("fetch", r#"{"id": "cin_seaside/reservations:BK99999"}"#, true),
    ("query_records", r#"{"stream": "reviews", "limit": 3}"#, false),
    ("query_records", r#"{"stream": "reservations", "filter": {"id": "BK99999"}}"#, true),
];

/// The three figures of a row are counts of `o200k`, whatever estimates the budgets.
#[test]
fn the_tokens_of_a_row_come_from_one_estimator() {
    for estimator in ["o200k", "chars4"] {
        let api = Api::protected(&format!("estimator: {estimator}"));
        let answers = ESTIMATED.map(|(name, arguments, _)| match name {
            "GET" => api.get(arguments).text,
            tool => api.tool(tool, &serde_json::from_str(arguments).unwrap()).to_string(),
        });
        let rows = loop {
            let rows = api.telemetry();
            if rows.len() >= ESTIMATED.len() {
                break rows;
            }
            std::thread::yield_now();
        };
        let whole =
            count_tokens(&api.get("/v1/streams/reservations/records/BK99999").json()["data"].to_string());
        for ((row, answer), (name, arguments, is_shortened)) in rows.iter().zip(&answers).zip(ESTIMATED) {
            let label = format!("{estimator} {name} {arguments}: {row}");
            assert_eq!(
                (&row["outcome"], &row["response_bytes"]),
                (&json!("ok"), &json!(answer.len())),
                "{label}"
            );
            let counted = count_tokens(answer) as u64;
            let metadata = &row["optimization_metadata"];
            assert_eq!(
                (&row["estimated_tokens"], &metadata["final_tokens"]),
                (&json!(counted), &json!(counted)),
                "{label}"
            );
            assert_eq!(row["original_tokens"], metadata["original_tokens"], "{label}");
            let original = row["original_tokens"].as_u64().unwrap();
            assert_eq!((original > counted, original == counted), (is_shortened, !is_shortened), "{label}");
            let saved = metadata["token_reduction_percent"].as_f64().unwrap();
            assert!((saved > 0.0) == is_shortened && saved < 100.0, "{label}");
            if arguments.contains("BK99999") {
                assert!(original.abs_diff(whole as u64) * 5 <= whole as u64, "{label}");
            }
        }
    }
}

#[test]
fn the_compare_header_returns_both_sizes() {
    let api = Api::hostaway();
    let compare = ["x-context-budget: compare"];
    let sizes = |target: &str, headers: &[&str]| {
        let answer = api.ask("GET", target, headers);
        let size = |name: &str| answer.header(name).map(|size| size.parse::<usize>().unwrap());
        (size("x-context-original-tokens"), size("x-context-returned-tokens"), answer)
    };
    for target in
        ["/api/v1/listings?limit=20", "/api/v1/bookings/BK99999", "/api/v1/bookings/BK99999?fields=all"]
    {
        let (original, returned, answer) = sizes(target, &compare);
        assert_eq!(returned, Some(count_tokens(&answer.text)), "{target}");
        assert!(original > returned, "{target}: {original:?} {returned:?}");
    }
    let whole = &api.ok("/v1/streams/reservations/records/BK99999?connection_id=cin_seaside")["data"];
    let (original, ..) = sizes("/api/v1/bookings/BK99999", &compare);
    assert_eq!(original, Some(count_tokens(&whole.to_string())));
    let (original, returned, _) = sizes("/api/v1/bookings/BK20005", &compare);
    assert_eq!(original, returned);
    for other in [&[][..], &["x-context-budget: none"]] {
        assert_eq!(sizes("/api/v1/bookings/BK99999", other).0, None);
    }
    // Scripts of a browser may read the headers, too.
    let browser = ["x-context-budget: compare", "origin: http://localhost:6274"];
    let (.., answer) = sizes("/api/v1/bookings/BK12345", &browser);
    let exposed = answer.header("access-control-expose-headers").unwrap();
    assert!(exposed.contains("x-context-original-tokens"), "{exposed}");
}

#[test]
fn responses_match_the_openapi_document() {
    let api = Api::hostaway();
    let document = api.ok("/openapi.json");
    let valid = |route: &str, target: &str, status: u16, kind: &str| {
        let answer = api.get(target);
        assert_eq!(answer.status, status, "{target}: {}", answer.text);
        let described = &document["paths"][route]["get"]["responses"][status.to_string()]["content"][kind];
        let mut schema = described["schema"].clone();
        assert!(schema.is_object(), "{route} {status} is not described");
        schema["components"] = document["components"].clone();
        let body = if kind == "application/json" { answer.json() } else { json!(answer.text) };
        let checked = jsonschema::draft202012::new(&schema).unwrap();
        if let Err(error) = checked.validate(&body) {
            panic!("{target}: {error} at {}", error.instance_path());
        }
        // Schemas are closed: an additional member is noticed.
        if let (Value::Object(mut body), true) = (body, kind == "application/json" && route != RECORD) {
            body.insert("of nobody".to_owned(), json!(1));
            assert!(!checked.is_valid(&Value::Object(body)), "{route} takes anything");
        }
    };
    const RECORD: &str = "/api/v1/{collection}/{id}";
    const LIST: &str = "/api/v1/{collection}";
    let json = "application/json";
    for (route, target, status) in [
        ("/api/v1", "/api/v1", 200),
        (LIST, "/api/v1/listings", 200),
        (LIST, "/api/v1/listings?limit=200&summary=1", 200),
        (LIST, "/api/v1/bookings?status=none", 200),
        (LIST, "/api/v1/nowhere", 404),
        (LIST, "/api/v1/listings?limit=201", 400),
        (LIST, "/api/v1/listings?cursor=x", 400),
        (RECORD, "/api/v1/bookings/BK12345", 200),
        (RECORD, "/api/v1/bookings/BK99999", 200),
        (RECORD, "/api/v1/bookings/BK00001", 409),
        ("/api/v1/content/{id}", "/api/v1/content/cin_seaside%2Freservations%3ABK99999?field=messages", 200),
        ("/api/v1/content/{id}", "/api/v1/content/x", 400),
        ("/health", "/health", 200),
    ] {
        valid(route, target, status, json);
    }
    valid("/metrics", "/metrics", 200, "text/plain");
    let mut ids: Vec<&str> = document["paths"]
        .as_object()
        .unwrap()
        .values()
        .flat_map(|path| path.as_object().unwrap().values())
        .map(|operation| operation["operationId"].as_str().unwrap())
        .collect();
    let operations = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), operations, "{ids:?}");
    for (route, statuses) in [
        ("/api/v1", vec!["400", "403", "405", "429", "500"]),
        (LIST, vec!["400", "404", "409", "413", "429", "503", "504"]),
        (RECORD, vec!["400", "404", "409", "413", "429", "502"]),
        ("/api/v1/content/{id}", vec!["400", "404", "409", "413", "429"]),
        ("/health", vec!["503"]),
    ] {
        let described = document["paths"][route]["get"]["responses"].as_object().unwrap();
        assert!(statuses.iter().all(|status| described.contains_key(*status)), "{route}");
    }
    let parameters = document["paths"][LIST]["get"]["parameters"].as_array().unwrap();
    let names: Vec<&str> = parameters.iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        ["collection", "limit", "cursor", "fields", "summary", "order_by", "connection_id", "filter"]
    );
}

#[cfg(unix)]
#[test]
fn the_log_has_the_sizes_before_and_after_a_preview() {
    let server = HttpServer::start(["--store", text(hostaway_store()), "--log-format", "json"]);
    for (id, target) in [("preview-1", "/api/v1/bookings/BK99999"), ("whole-1", "/api/v1")] {
        assert_eq!(ask(&server.address, "GET", target, &[&format!("Request-Id: {id}")]).status, 200);
    }
    let log = server.stop();
    let of = |id: &str| -> Value {
        let line = log.lines().find(|line| line.contains(id)).unwrap_or_else(|| panic!("{log}"));
        serde_json::from_str(line).unwrap()
    };
    let preview = of("preview-1");
    assert_eq!(preview["oversized"], true, "{preview}");
    assert!(preview["original_tokens"].as_u64() > preview["tokens"].as_u64(), "{preview}");
    let whole = of("whole-1");
    assert!(whole.get("oversized").is_none() && whole.get("original_tokens").is_none(), "{whole}");
}
