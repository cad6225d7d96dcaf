//! The record-server contract, through the built binary over a real socket.

use serde_json::{Value, json};

use crate::support::{Answer, HttpServer, ask, demo_store, get, import_records, text};

fn server() -> (tempfile::TempDir, HttpServer) {
    let (folder, store) = demo_store();
    let server = HttpServer::start(["--store", text(&store)]);
    (folder, server)
}

/// Checks the envelope of an error. Returns the status, the code and the parameter.
#[track_caller]
fn refused(answer: &Answer) -> (u16, String, Value) {
    let error = answer.json()["error"].clone();
    let kind = match answer.status {
        400 => "invalid_request_error",
        403 => "permission_error",
        404 => "not_found_error",
        410 => "gone_error",
        _ => "api_error",
    };
    assert_eq!(error["type"], kind, "{answer:?}");
    assert_eq!(error["request_id"], answer.header("request-id").unwrap());
    assert!(!error["message"].as_str().unwrap().is_empty());
    assert_eq!(answer.header("content-type"), Some("application/json; charset=utf-8"));
    assert_eq!(answer.header("pdpp-version"), Some("2026-04-06"));
    (answer.status, error["code"].as_str().unwrap().to_owned(), error["param"].clone())
}

#[track_caller]
fn check(server: &HttpServer, target: &str, status: u16, code: &str, param: impl Into<Value>) {
    let answer = get(&server.address, target);
    assert_eq!(refused(&answer), (status, code.to_owned(), param.into()), "{target}: {}", answer.text);
}

#[test]
fn every_response_has_the_envelope() {
    let (_folder, server) = server();
    for target in ["/v1/schema", "/v1/schema?view=compact", "/v1/streams", "/v1/search?q=invoice"] {
        let answer = get(&server.address, target);
        assert_eq!(answer.status, 200, "{}", answer.text);
        assert_eq!(answer.header("content-type"), Some("application/json; charset=utf-8"));
        assert_eq!(answer.header("pdpp-version"), Some("2026-04-06"));
        let id = answer.header("request-id").unwrap();
        assert!(id.len() == 20 && id.starts_with("req_"), "{id}");
        let body = answer.json();
        assert_eq!(body["links"]["self"], target);
        assert_eq!(body["meta"]["warnings"], json!([]));
    }
    let ids: Vec<String> = (0..2)
        .map(|_| get(&server.address, "/v1/streams").header("request-id").unwrap().to_owned())
        .collect();
    assert_ne!(ids[0], ids[1]);
}

#[test]
fn a_valid_request_id_of_a_client_is_returned() {
    let (_folder, server) = server();
    let echoed = |line: &str| {
        let answer = ask(&server.address, "GET", "/v1/streams", &[line]);
        answer.header("request-id").unwrap().to_owned()
    };
    assert_eq!(echoed("x-request-id: trace-7.a"), "trace-7.a");
    assert_eq!(echoed("Request-Id: req_1"), "req_1");
    for strange in ["a b", "<script>", &"x".repeat(129), ""] {
        assert!(echoed(&format!("x-request-id: {strange}")).starts_with("req_"), "{strange}");
    }
    let refused = ask(&server.address, "GET", "/v1/nowhere", &["x-request-id: mine"]);
    assert_eq!(refused.json()["error"]["request_id"], "mine");
}

#[test]
fn the_schema_lists_connectors_with_their_streams_and_connections() {
    let (_folder, server) = server();
    let body = get(&server.address, "/v1/schema?view=compact").json();
    assert_eq!((&body["object"], &body["detail"]), (&json!("schema"), &json!("compact")));
    assert_eq!((&body["connector_count"], &body["stream_count"]), (&json!(1), &json!(3)));
    let connector = &body["connectors"][0];
    assert_eq!(connector["connector_key"], "acme-suite");
    assert_eq!(
        connector["granted_connections"][1],
        json!({"connection_id": "cin_home", "display_name": "Home"})
    );
    let one = get(&server.address, "/v1/schema?stream=files&connection_id=cin_home").json();
    let stream = &one["connectors"][0]["streams"][0];
    assert_eq!(
        (&stream["object"], &stream["instance_ids"]),
        (&json!("stream_metadata"), &json!(["cin_home"]))
    );
    let unknown = get(&server.address, "/v1/schema?stream=nope");
    assert_eq!((unknown.status, &unknown.json()["connectors"]), (200, &json!([])));
    check(&server, "/v1/schema?detail=full", 400, "invalid_request", "detail");
    check(&server, "/v1/schema?detail=half", 400, "invalid_request", "detail");
    check(&server, "/v1/schema?connection_id=cin_no", 404, "connection_not_found", "connection_id");
    check(&server, "/v1/schema?detail=full&stream=messages", 409, "ambiguous_schema_detail", Value::Null);
    let ambiguous = get(&server.address, "/v1/schema?detail=full&stream=messages").json();
    assert_eq!(
        ambiguous["error"]["available_connections"][0],
        json!({"connection_id": "cin_work", "display_name": "Work", "connector_key": "acme-suite", "stream": "messages"})
    );
    assert_eq!(ambiguous["error"]["retry_with"], "connection_id");
    assert_eq!(
        get(&server.address, "/v1/schema?detail=full&stream=messages&connection_id=cin_work").status,
        200
    );
}

#[test]
fn streams_have_a_row_for_each_connection() {
    let (_folder, server) = server();
    let body = get(&server.address, "/v1/streams").json();
    let rows: Vec<(&str, &str)> = body["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (row["name"].as_str().unwrap(), row["connection_id"].as_str().unwrap()))
        .collect();
    assert_eq!(&rows[..3], [("messages", "cin_work"), ("messages", "cin_home"), ("files", "cin_work")]);
    assert_eq!((&body["data"][0]["record_count"], &body["links"]["next"]), (&json!(5), &Value::Null));
}

#[test]
fn a_search_is_paged_to_its_end() {
    let (_folder, server) = server();
    let whole = get(&server.address, "/v1/search?q=invoice").json();
    assert_eq!((&whole["meta"]["count"], &whole["meta"]["count_accuracy"]), (&json!(7), &json!("exact")));
    assert_eq!((&whole["has_more"], &whole["links"]["next"]), (&json!(false), &Value::Null));
    let first = &whole["data"][0];
    assert!(first["snippet"]["text"].as_str().unwrap().contains("<mark>invoice</mark>"), "{first}");
    assert_eq!((&first["display_name"], &first["connector_id"]), (&json!("Home"), &json!("acme-suite")));
    let (mut seen, mut target) = (Vec::new(), "/v1/search?q=invoice&limit=4".to_owned());
    loop {
        let page = get(&server.address, &target).json();
        seen.extend(page["data"].as_array().unwrap().iter().cloned());
        assert_eq!(page["has_more"], page["links"]["next"].is_string());
        let Some(next) = page["links"]["next"].as_str() else { break };
        assert!(next.contains(page["next_cursor"].as_str().unwrap()), "{page}");
        target = next.to_owned();
    }
    assert_eq!(seen, *whole["data"].as_array().unwrap());
    // Each result names a connection and a key that lead to its record, although keys occur in several connections.
    for found in whole["data"].as_array().unwrap() {
        let record = get(&server.address, found["record_url"].as_str().unwrap()).json();
        assert_eq!(record["id"], found["record_key"], "{found}");
        assert_eq!(record["connection_id"], found["connection_id"], "{found}");
    }
}

#[test]
fn a_cursor_is_valid_for_its_own_search_only() {
    let (_folder, server) = server();
    let page = get(&server.address, "/v1/search?q=invoice&limit=1").json();
    let cursor = page["next_cursor"].as_str().unwrap();
    assert_eq!(get(&server.address, &format!("/v1/search?q=invoice&limit=3&cursor={cursor}")).status, 200);
    for target in [
        format!("/v1/search?q=budget&cursor={cursor}"),
        format!("/v1/search?q=invoice&streams=messages&cursor={cursor}"),
        format!("/v1/search?q=invoice&cursor={cursor}A"),
        "/v1/search?q=invoice&cursor=xx".to_owned(),
        "/v1/search?q=invoice&cursor=".to_owned(),
    ] {
        check(&server, &target, 400, "invalid_cursor", "cursor");
    }
}

#[test]
fn invalid_parameters_of_a_search_are_named() {
    let (_folder, server) = server();
    check(&server, "/v1/search", 400, "invalid_request", "q");
    check(&server, "/v1/search?q=", 400, "invalid_request", "q");
    check(&server, "/v1/search?q=a&sort=x", 400, "invalid_request", "sort");
    check(&server, "/v1/search?q=a&connection_id=cin_no", 404, "connection_not_found", "connection_id");
    check(&server, "/v1/search?q=a&streams=", 404, "stream_not_declared", "streams");
    for streams in ["", "&streams=messages&streams[]=files"] {
        let target = format!("/v1/search?q=a&filter[x]=1{streams}");
        check(&server, &target, 400, "invalid_filter", "filter");
    }
    let one = get(&server.address, "/v1/search?q=invoice&streams[]=files").json();
    assert_eq!(one["data"].as_array().unwrap().len(), 1);
}

#[test]
fn a_record_is_read_by_a_key_with_any_characters() {
    let (folder, server) = server();
    drop(server);
    let store = folder.path().join("demo.db");
    let keys = [
        "a/b",
        "100%",
        "a%2Fb",
        "line\nbreak",
        "q\"u'o",
        "😀 ž",
        "[\"a\",\"1\"]",
        "x?y#z&w=1",
        "+",
        "records",
    ];
    let lines: Vec<String> = keys
        .iter()
        .map(|key| json!({"stream": "odd/name", "key": key, "data": {"key": key}}).to_string())
        .collect();
    import_records(&store, "cin_odd", &lines.join("\n"));
    let server = HttpServer::start(["--store", text(&store)]);
    for key in keys {
        let encoded: String = key.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let target = format!("/v1/streams/odd%2Fname/records/{encoded}");
        let answer = get(&server.address, &target);
        assert_eq!(answer.status, 200, "{key}: {}", answer.text);
        let record = answer.json();
        assert_eq!((&record["id"], &record["data"]["key"]), (&json!(key), &json!(key)));
        assert_eq!((&record["stream"], &record["connection_id"]), (&json!("odd/name"), &json!("cin_odd")));
        assert_eq!(record["record_json_bytes"], record["data"].to_string().len());
    }
    for bad in ["%2E%2E", "..", "a%2F..%2Fb", "%00", "%FF", "", &"k".repeat(3_000)] {
        check(&server, &format!("/v1/streams/odd%2Fname/records/{bad}"), 404, "not_found", Value::Null);
    }
}

#[test]
fn a_record_of_two_connections_is_ambiguous() {
    let (_folder, server) = server();
    let answer = get(&server.address, "/v1/streams/messages/records/m2");
    assert_eq!(refused(&answer), (409, "ambiguous_connection".to_owned(), Value::Null));
    let error = answer.json()["error"].clone();
    assert_eq!(error["retry_with"], "connection_id");
    assert_eq!(
        error["available_connections"][0],
        json!({"connection_id": "cin_work", "display_name": "Work"})
    );
    let record = get(&server.address, "/v1/streams/messages/records/m2?connection_id=cin_home").json();
    assert_eq!(
        (&record["display_name"], &record["connector_instance_id"]),
        (&json!("Home"), &json!("cin_home"))
    );
    let records = "/v1/streams/messages/records";
    check(&server, &format!("{records}/none?connection_id=cin_work"), 404, "not_found", Value::Null);
    check(
        &server,
        &format!("{records}/m2?connection_id=cin_no"),
        404,
        "connection_not_found",
        "connection_id",
    );
    check(&server, &format!("{records}/m2?connection_id="), 404, "connection_not_found", "connection_id");
    check(
        &server,
        &format!("{records}/m2?connection_id=cin_work&fields=nope"),
        400,
        "unknown_field",
        "fields",
    );
    let target = format!("{records}/m2?connection_id=cin_work&fields=subject,from&fields=body");
    let narrow = get(&server.address, &target).json();
    assert_eq!(narrow["data"].as_object().unwrap().len(), 3);
}

#[test]
fn parameters_are_read_as_documented_and_others_refused_by_name() {
    let (_folder, server) = server();
    check(&server, "/v1/streams?bogus=1", 400, "invalid_request", "bogus");
    check(&server, "/v1/streams/messages/records?cursor[]=x", 400, "invalid_request", "cursor[]");
    check(&server, "/v1/search?q=a&q=b", 400, "invalid_request", "q");
    check(&server, "/v1/search?q=%FF", 400, "invalid_request", Value::Null);
    check(
        &server,
        "/v1/streams?connection_id=a&connector_instance_id=b",
        400,
        "invalid_request",
        "connector_instance_id",
    );
    let aliased = get(&server.address, "/v1/streams?connector_instance_id=cin_home").json();
    assert_eq!(aliased["data"].as_array().unwrap().len(), 3);
    let warning = &aliased["meta"]["warnings"][0];
    assert_eq!(
        (&warning["code"], &warning["param"]),
        (&json!("deprecated_alias_used"), &json!("connector_instance_id"))
    );
    for (limit, clamped) in [
        ("101", true),
        ("99999999999999999999999", true),
        ("100", false),
        ("0", false),
        ("x", false),
        ("-1", false),
    ] {
        let page = get(&server.address, &format!("/v1/search?q=invoice&limit={limit}")).json();
        assert_eq!(page["meta"]["warnings"][0]["code"] == "limit_clamped", clamped, "{limit}");
        assert_eq!(page["data"].as_array().unwrap().len(), 7);
    }
    let spaced = get(&server.address, "/v1/search?q=spring+order").json();
    assert_eq!(spaced["data"][0]["record_key"], "m1");
}

#[test]
fn other_methods_and_unknown_routes_are_refused() {
    let (_folder, server) = server();
    for method in ["POST", "PUT", "PATCH", "DELETE"] {
        for target in ["/v1/schema", "/v1/streams/messages/records/m2", "/openapi.json"] {
            let answer = ask(&server.address, method, target, &[]);
            assert_eq!(refused(&answer), (405, "method_not_allowed".to_owned(), Value::Null));
            assert_eq!(answer.header("allow"), Some("GET"));
        }
    }
    let head = ask(&server.address, "HEAD", "/v1/schema", &[]);
    assert_eq!((head.status, head.header("allow")), (405, Some("GET")));
    for target in ["/v1", "/v1/", "/v1/nowhere", "/v1/schema/", "/v1/streams/s/records/r/x", "/v1//schema"] {
        check(&server, target, 404, "not_found", Value::Null);
    }
    let with_body = ask(&server.address, "GET", "/v1/streams", &["content-length: 3\r\n\r\nabc"]);
    assert_eq!(with_body.status, 200);
}

#[test]
fn other_hosts_and_origins_are_refused() {
    let (_folder, server) = server();
    for (lines, status) in [
        (vec!["host: localhost"], 200),
        (vec!["host: [::1]:80"], 200),
        (vec!["host: evil.example"], 403),
        (vec!["host: localhost@evil.example"], 403),
        (vec!["host: localhost", "origin: http://localhost:6274"], 200),
        (vec!["host: localhost", "origin: https://evil.example"], 403),
        (vec!["host: localhost", "origin: null"], 403),
    ] {
        for target in ["/v1/search?q=invoice", "/openapi.json"] {
            let answer = ask(&server.address, "GET", target, &lines);
            assert_eq!(answer.status, status, "{lines:?}");
            if status == 403 {
                assert_eq!(refused(&answer).1, "forbidden");
                assert_eq!(answer.header("access-control-allow-origin"), None);
            }
        }
    }
    let local = ask(&server.address, "GET", "/v1/streams", &["origin: http://localhost:6274"]);
    assert_eq!(local.header("access-control-allow-origin"), Some("http://localhost:6274"));
}

#[test]
fn each_call_is_one_line_of_the_log() {
    let (_folder, server) = server();
    get(&server.address, "/v1/search?q=invoice");
    get(&server.address, "/v1/search?q=invoice&bogus=s3cret");
    let log = server.end();
    let lines: Vec<&str> = log.lines().filter(|line| line.contains("endpoint=/v1/search ")).collect();
    assert!(
        lines.len() == 2 && lines[0].contains("outcome=\"ok\"") && lines[1].contains("invalid_request"),
        "{log}"
    );
    assert!(!log.contains("s3cret") && !log.contains("q=invoice") && !log.contains("\"invoice"), "{log}");
}

#[test]
fn the_description_names_every_route() {
    let (_folder, server) = server();
    let document = get(&server.address, "/openapi.json").json();
    assert_eq!(document["openapi"], "3.1.0");
    let paths: Vec<&String> = document["paths"].as_object().unwrap().keys().collect();
    assert_eq!(
        paths,
        [
            "/v1/schema",
            "/v1/streams",
            "/v1/streams/{stream}",
            "/v1/streams/{stream}/records",
            "/v1/streams/{stream}/records/{id}",
            "/v1/streams/{stream}/records/{id}/field-window",
            "/v1/streams/{stream}/aggregate",
            "/v1/search",
            "/v1/search/semantic",
            "/v1/search/hybrid",
            "/api/v1",
            "/api/v1/{collection}",
            "/api/v1/{collection}/{id}",
            "/api/v1/content/{id}",
            "/api/v1/search",
            "/api/v1/search/stream",
            "/api/v1/search/{id}/feedback",
            "/api/v1/projects",
            "/api/v1/projects/{id}",
            "/api/v1/projects/{id}/history",
            "/api/v1/projects/{id}/searches",
            "/api/v1/documents",
            "/api/v1/admin/cache/clear",
            "/health",
            "/metrics",
        ]
    );
}

#[test]
fn a_result_has_its_title_matching_field_and_score() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("s.db");
    let record = |key: &str, data: Value| {
        json!({"stream": "notes", "key": key, "emitted_at": "2026-01-02T03:04:05Z", "data": data}).to_string()
    };
    let lines = [
        record(
            "both",
            json!({"title": "Heron", "body": "A heron stood there.", "tags": ["heron", "bird"], "n": 1}),
        ),
        record("title", json!({"title": "The heron", "body": "It was early."})),
    ];
    import_records(&store, "c", &lines.join("\n"));
    let server = HttpServer::start(["--store", text(&store)]);
    let page = get(&server.address, "/v1/search?q=heron").json();
    let of = |key: &str| {
        let results = page["data"].as_array().unwrap().iter();
        results.into_iter().find(|result| result["record_key"] == key).unwrap().clone()
    };
    let (both, title) = (of("both"), of("title"));
    assert_eq!((&both["title"], &both["emitted_at"]), (&json!("Heron"), &json!("2026-01-02T03:04:05Z")));
    assert_eq!(both["matched_fields"], json!(["title", "body", "tags"]));
    assert_eq!(both["snippet"], json!({"field": "body", "text": "A <mark>heron</mark> stood there."}));
    assert_eq!(title["matched_fields"], json!(["title"]));
    assert_eq!(title["snippet"], json!({"field": "title", "text": "The <mark>heron</mark>"}));
    let score = |result: &Value| {
        assert_eq!(
            (&result["score"]["kind"], &result["score"]["order"]),
            (&json!("bm25"), &json!("higher_is_better"))
        );
        result["score"]["value"].as_f64().unwrap()
    };
    let scores: Vec<f64> = page["data"].as_array().unwrap().iter().map(score).collect();
    assert!(scores[0] >= scores[1] && scores[1] > 0.0, "{scores:?}");

    for route in ["semantic", "hybrid"] {
        let other = get(&server.address, &format!("/v1/search/{route}?q=heron&limit=1")).json();
        assert_eq!(
            (&other["retrieval_mode"], &other["has_more"]),
            (&json!("lexical"), &json!(true)),
            "{other}"
        );
        let by_words = |result: usize| {
            let mut expect = page["data"][result].clone();
            expect["retrieval_mode"] = json!("lexical");
            expect
        };
        assert_eq!(other["data"][0], by_words(0), "{route}");
        assert_eq!(other["meta"]["warnings"][0]["code"], "semantic_unavailable", "{other}");
        let cursor = other["next_cursor"].as_str();
        assert_eq!(cursor.is_some(), route == "semantic", "{other}");
        let target = format!("/v1/search/{route}?q=heron&cursor={}", cursor.unwrap_or("x"));
        match route {
            "semantic" => assert_eq!(get(&server.address, &target).json()["data"][0], by_words(1)),
            _ => check(&server, &target, 400, "invalid_request", "cursor"),
        }
    }
}
