//! Settings of `/api/v1` for single paths, and `/api/v1` with all protection disabled.

use fetchwell_core::fit::count_tokens;
use serde_json::{Map, Value, json};

use crate::support::Api;

/// A configuration with all protection disabled.
const OFF: &str = "endpoints:
  /api/v1/*: {summarization_enabled: false, pagination_enabled: false, exempt: true}";

#[test]
fn records_without_summarization_are_whole_up_to_the_cap() {
    let api =
        Api::protected("endpoints:\n  /api/v1/bookings: {threshold: 100, summarization_enabled: false}");
    let whole = api.get("/api/v1/reservations/BK12345?fields=all").text;
    assert_eq!(api.get("/api/v1/bookings/BK12345").text, whole);
    assert!(count_tokens(&whole) > 4_000);
    let fat = api.get("/api/v1/bookings/BK99999");
    assert!(fat.json().get("meta").is_none() && fat.json()["messages"]["read"].is_string(), "{}", fat.text);
    assert!(count_tokens(&fat.text) <= 12_000);
    // Records of a list are whole then, as many as fit.
    let page = api.get("/api/v1/bookings?limit=200");
    let tokens = count_tokens(&page.text);
    let page = page.json();
    let items = page["items"].as_array().unwrap();
    assert!(
        (10..200).contains(&items.len()) && (6_000..=12_000).contains(&tokens),
        "{}: {tokens}",
        items.len()
    );
    assert_eq!(page["meta"]["pageSize"], items.len());
    assert_eq!(page["meta"]["hasMore"], true);
    assert!(
        page["meta"].get("summarized").is_none() && items.iter().all(|item| item["policies"].is_object())
    );
    let next = api.ok(&format!("/api/v1/bookings?cursor={}", page["nextCursor"].as_str().unwrap()));
    assert!(next["items"].as_array().unwrap().iter().all(|item| !items.contains(item)));
}

#[test]
fn analytics_without_summarization_are_whole() {
    let api = Api::protected("endpoints:\n  /api/v1/analytics: {summarization_enabled: false}");
    let page = api.ok("/api/v1/analytics?limit=28");
    let raw = api.ok("/v1/streams/analytics/records?limit=100");
    for record in raw["data"].as_array().unwrap() {
        assert!(page["items"].as_array().unwrap().contains(&record["data"]), "{record}");
    }
    assert_eq!(page["items"].as_array().unwrap().len(), 28);
}

#[test]
fn a_list_without_pagination_is_whole_or_refused() {
    let api = Api::protected(
        "endpoints:\n  /api/v1/analytics: {pagination_enabled: false}\n  /api/v1/listings: {pagination_enabled: false}\n  /api/v1/reviews: {pagination_enabled: false, exempt: true, summarization_enabled: false}",
    );
    let all = api.ok("/api/v1/analytics");
    assert_eq!(all["items"].as_array().unwrap().len(), 28);
    // A request with `limit` is paginated.
    let two = api.ok("/api/v1/analytics?limit=2");
    assert!(two["items"].as_array().unwrap().len() == 2 && two["nextCursor"].is_string(), "{two}");
    assert_eq!((&all["nextCursor"], &all["meta"]["hasMore"]), (&Value::Null, &json!(false)));
    let body = api.refused("/api/v1/listings?fields=all", 413, "RESPONSE_TOO_LARGE");
    assert!(body["detail"].as_str().unwrap().contains("12000"), "{body}");
    // Without large fields all records are given, unless they exceed the cap.
    let answer = api.get("/api/v1/listings");
    assert!(answer.status == 413 || answer.json()["items"].as_array().unwrap().len() == 500);
    assert!(count_tokens(&answer.text) <= 12_000);
    let answer = api.get("/api/v1/reviews");
    assert!(count_tokens(&answer.text) > 12_000, "exempt is exempt");
    assert_eq!(answer.json()["items"].as_array().unwrap().len(), 800);
}

#[test]
fn the_longest_matching_entry_applies_alone() {
    let api = Api::protected(
        "output_token_threshold: 3000
endpoints:
  /*: {threshold: 90}
  /api/v1: {threshold: 100}
  /api/v1/book*: {page_size: 3}
  /api/v1/bookings/BK12345: {threshold: 120}
  /api/v1/listings: {page_size: 4, threshold: 700, hard_cap: 1500}",
    );
    let threshold = |target: &str| api.ok(target)["meta"]["budget"]["threshold"].clone();
    assert_eq!(threshold("/api/v1/reviews"), 100);
    assert_eq!(threshold("/api/v1/bookings/BK12345"), 120);
    assert_eq!(threshold("/api/v1/bookings/BK99999?meta=1&fields=id"), 3_000);
    assert_eq!(threshold("/api/v1/bookings"), 3_000);
    assert_eq!(api.ok("/api/v1/bookings")["meta"]["pageSize"], 3);
    // An entry for a list applies to the records below it, too.
    let page = api.get("/api/v1/listings");
    assert!(count_tokens(&page.text) <= 700, "{}", page.text);
    let page = page.json();
    assert_eq!((&page["meta"]["pageSize"], &page["meta"]["budget"]["hardCap"]), (&json!(4), &json!(1_500)));
    let id = page["items"][0]["id"].as_str().unwrap();
    assert_eq!(threshold(&format!("/api/v1/listings/{id}?meta=1&fields=id")), 700);
    assert!(count_tokens(&api.get("/api/v1/listings?limit=200").text) <= 1_500);
}

#[test]
fn a_threshold_below_an_empty_page_gives_the_smallest_page() {
    let api = Api::protected("endpoints:\n  /api/v1/listings: {threshold: 20}");
    for (query, items) in [("", 1..50), ("?name=nobody", 0..1), ("?limit=2", 2..3)] {
        let answer = api.get(&format!("/api/v1/listings{query}"));
        assert_eq!(answer.status, 200, "{query}: {}", answer.text);
        let tokens = count_tokens(&answer.text);
        assert!(query == "?limit=2" || tokens <= 320, "{query}: {tokens}");
        assert!(
            items.contains(&answer.json()["items"].as_array().unwrap().len()),
            "{query}: {}",
            answer.text
        );
    }
    let api = Api::protected("output_token_threshold: 20\nhard_output_token_cap: 30");
    for target in ["/api/v1/listings", "/api/v1/listings?name=nobody", "/api/v1/listings?limit=1&fields=all"]
    {
        api.refused(target, 413, "RESPONSE_TOO_LARGE");
    }
    assert!(count_tokens(&api.get("/api/v1/bookings/BK99999").text) <= 30);
}

#[test]
fn records_without_protection_are_the_imported_bytes() {
    let texts = [
        r#"{"id":"r1","n":1.50,"big":123456789012345678,"e":1e3,"t":"é\n\u0001 \"q\" \\ / 😀","l":[],"o":{},"null":null}"#,
        &format!(r#"{{"id":"r2","body":"{}"}}"#, "long words ".repeat(20_000)),
    ];
    let records: Vec<(&str, &str, Value)> = ["r1", "r2"]
        .into_iter()
        .zip(texts)
        .map(|(key, text)| ("things", key, serde_json::from_str(text).unwrap()))
        .collect();
    let (_folder, api) = Api::records(&records, OFF);
    for (_, key, data) in &records {
        assert_eq!(api.get(&format!("/api/v1/things/{key}")).text, data.to_string(), "{key}");
    }
    assert!(count_tokens(&api.get("/api/v1/things/r2").text) > 12_000);
    let all = api.ok("/api/v1/things");
    assert_eq!(all["items"].as_array().unwrap().len(), 2);
    assert!(records.iter().all(|(_, _, data)| all["items"].as_array().unwrap().contains(data)));

    let api = Api::protected(OFF);
    let raw = &api.ok("/v1/streams/reservations/records/BK99999?connection_id=cin_seaside")["data"];
    assert_eq!(api.get("/api/v1/bookings/BK99999").text, raw.to_string());
}

#[test]
fn no_shape_of_a_record_exceeds_the_cap() {
    let fields: Map<String, Value> = (0..10_000).map(|n| (format!("field {n}"), json!(n))).collect();
    let wide = Value::Object(fields);
    let dense = |text: &str| json!({"id": "x", "body": text});
    let records = [
        ("shapes", "fields", wide),
        ("shapes", "array", json!({"id": "array", "list": (0..200_000).collect::<Vec<_>>()})),
        (
            "shapes",
            "objects",
            json!({"id": "o", "list": (0..5_000).map(|n| json!({"n": n})).collect::<Vec<_>>()}),
        ),
        ("shapes", "base64", dense(&"QUJDREVGR0hJSktM+/9".repeat(20_000))),
        ("shapes", "cjk", dense(&"漢字仮名交じり文".repeat(10_000))),
        ("shapes", "emoji", dense(&"👩‍👩‍👧🏽🎉".repeat(5_000))),
        ("shapes", "name", json!({"id": "n", "n".repeat(60_000): 1, "b": "x"})),
        ("shapes", "deep", (0..100).fold(json!("x".repeat(60_000)), |inner, _| json!({"in": inner}))),
        ("shapes", "control", dense(&"\u{1}\u{2}".repeat(20_000))),
    ];
    for (settings, threshold, cap) in
        [("", 4_000, 12_000), ("output_token_threshold: 300\nhard_output_token_cap: 600", 300, 600)]
    {
        let (_folder, api) = Api::records(&records, settings);
        for (_, key, _) in &records {
            for query in ["", "?fields=all", "?meta=1", "?fields=all&meta=1"] {
                let answer = api.get(&format!("/api/v1/shapes/{key}{query}"));
                let tokens = count_tokens(&answer.text);
                assert_eq!(answer.status, 200, "{key}{query}: {}", answer.text);
                assert!(tokens <= cap, "{key}{query}: {tokens} of {cap}");
                let body = answer.json();
                let shown = body.get("summary").unwrap_or(&body);
                // A preview without any field names the missing ones.
                let names = body["meta"]["detailsAvailable"]["groups"][0]["fields"].is_string();
                assert!(names || !shown.as_object().unwrap().is_empty(), "{key}{query}: {}", answer.text);
            }
        }
        for (query, most) in
            [("", threshold), ("?limit=200", cap), ("?limit=3&fields=all", cap), ("?summary=true", threshold)]
        {
            let answer = api.get(&format!("/api/v1/shapes{query}"));
            let tokens = count_tokens(&answer.text);
            assert_eq!(answer.status, 200, "{query}: {}", answer.text);
            assert!(tokens <= most, "{query}: {tokens} of {most}: {}", answer.text);
            let page = answer.json();
            let items = page["items"].as_array().unwrap();
            assert!(!items.is_empty() && items.iter().all(|item| item["id"].is_string()), "{query}: {page}");
        }
    }
}

/// A limit applies to a path in every spelling.
#[test]
fn limits_apply_to_every_spelling_of_a_path() {
    let api = Api::protected("endpoints:\n  /api/v1/bookings:\n    hard_cap: 400\n    threshold: 300");
    for path in [
        "/api/v1/bookings/BK99999?fields=all",
        "/api/v1/%62ookings/BK99999?fields=all",
        "/api/v1/bookings/BK99999/?fields=all",
        "/api/v1/bookings?limit=9",
        "/api/v1/bookings/?limit=9",
    ] {
        let answer = api.get(path);
        assert_eq!(answer.status, 200, "{path}: {}", answer.text);
        assert!(count_tokens(&answer.text) <= 400, "{path}: {}", count_tokens(&answer.text));
    }
    for path in
        ["/api/v1//bookings?limit=9", "/api/v1/bookings//BK99999", "//api/v1/bookings", "/api/v1/bookings//"]
    {
        assert_eq!(api.get(path).status, 404, "{path}");
    }
}

/// The list of routes stays below its hard cap.
#[test]
fn the_list_of_routes_fits_its_cap() {
    let streams: Vec<(String, String, Value)> = (0..400)
        .map(|number| {
            (format!("a_stream_with_quite_a_long_name_{number:03}"), "r".to_owned(), json!({"id": "r"}))
        })
        .collect();
    let records: Vec<(&str, &str, Value)> =
        streams.iter().map(|(stream, key, data)| (stream.as_str(), key.as_str(), data.clone())).collect();
    let (_folder, api) = Api::records(&records, "output_token_threshold: 500\nhard_output_token_cap: 1000");
    let answer = api.get("/api/v1");
    assert!(answer.status == 200 && count_tokens(&answer.text) <= 1_000, "{}", answer.text);
    let index = answer.json();
    assert_eq!(index["routes"].as_array().unwrap().len() as u64 + index["more"].as_u64().unwrap(), 400);
}
