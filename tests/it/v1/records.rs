//! The record-server contract over the embedded store: pages, changes, windows and aggregates, through the built
//! binary.

use serde_json::{Value, json};

use crate::support::{HttpServer, demo_store, get, import_records, text};

fn server() -> (tempfile::TempDir, HttpServer) {
    let (folder, store) = demo_store();
    let server = HttpServer::start(["--store", text(&store)]);
    (folder, server)
}

#[track_caller]
fn ok(server: &HttpServer, target: &str) -> Value {
    let answer = get(&server.address, target);
    assert_eq!(answer.status, 200, "{target}: {}", answer.text);
    answer.json()
}

#[track_caller]
fn check_refused(server: &HttpServer, target: &str, status: u16, code: &str) {
    let answer = get(&server.address, target);
    assert_eq!(
        (answer.status, &answer.json()["error"]["code"]),
        (status, &json!(code)),
        "{target}: {}",
        answer.text
    );
}

/// Returns connection and key of every row, page by page along `links.next`.
#[track_caller]
fn walk(server: &HttpServer, target: &str) -> Vec<(String, String)> {
    let (mut rows, mut target) = (Vec::new(), target.to_owned());
    for _ in 0..100 {
        let page = ok(server, &target);
        for row in page["data"].as_array().unwrap() {
            let text = |name: &str| row[name].as_str().unwrap_or_default().to_owned();
            rows.push((text("connection_id"), text("id")));
        }
        match page["links"]["next"].as_str() {
            Some(next) => target = next.to_owned(),
            None => return rows,
        }
    }
    panic!("{target} has no end");
}

const RECORDS: &str = "/v1/streams/messages/records";

#[test]
fn connections_are_merged_in_one_order_and_paged_without_loss() {
    let (_folder, server) = server();
    let whole = walk(&server, RECORDS);
    assert_eq!(whole.len(), 8);
    for limit in [1, 3, 5] {
        assert_eq!(walk(&server, &format!("{RECORDS}?limit={limit}")), whole, "{limit}");
    }
    let mut backward = walk(&server, &format!("{RECORDS}?order=asc&limit=2"));
    backward.reverse();
    assert_eq!(backward, whole, "the other order, ties too");
    let newest: Vec<Value> = ok(&server, RECORDS)["data"].as_array().unwrap().to_vec();
    let times: Vec<&str> = newest.iter().map(|row| row["data"]["received_at"].as_str().unwrap()).collect();
    assert!(times.is_sorted_by(|newer, older| newer >= older), "{times:?}");
    let page = ok(&server, &format!("{RECORDS}?limit=2&count=exact"));
    assert_eq!(page["meta"]["count"], json!({"kind": "exact", "value": 8}));
    assert_eq!((&page["has_more"], page["data"].as_array().unwrap().len()), (&json!(true), 2));
    assert_eq!(walk(&server, &format!("{RECORDS}?connection_id=cin_work&limit=2")).len(), 5);
}

#[test]
fn fields_views_and_filters_narrow() {
    let (_folder, server) = server();
    let page = ok(&server, &format!("{RECORDS}?fields=subject,from&limit=1"));
    let fields: Vec<&String> = page["data"][0]["data"].as_object().unwrap().keys().collect();
    assert_eq!(fields.len(), 2);
    let page = ok(&server, &format!("{RECORDS}?view=preview&limit=1"));
    assert!(page["data"][0]["data"].get("body").is_none(), "{page}");
    // Values in a URL are texts; the store compares them by the type of the field.
    let large = ok(&server, &format!("{RECORDS}?filter[amount_eur][gte]=100"));
    let large = large["data"].as_array().unwrap();
    assert!(
        !large.is_empty() && large.iter().all(|row| row["data"]["amount_eur"].as_f64().unwrap() >= 100.0)
    );
    check_refused(&server, &format!("{RECORDS}?fields=nope"), 400, "unknown_field");
    check_refused(&server, &format!("{RECORDS}?sort=-nope"), 400, "invalid_sort");
    check_refused(&server, &format!("{RECORDS}?cursor=garbage"), 400, "invalid_cursor");
    let sorted = ok(&server, &format!("{RECORDS}?sort=subject&limit=2"));
    let cursor = sorted["next_cursor"].as_str().unwrap();
    ok(&server, &format!("{RECORDS}?sort=subject&cursor={cursor}"));
    for other in ["order=asc", "sort=amount_eur"] {
        check_refused(&server, &format!("{RECORDS}?{other}&cursor={cursor}"), 400, "invalid_cursor");
    }
    check_refused(&server, &format!("{RECORDS}?expand=nope"), 400, "invalid_expand");
    check_refused(&server, "/v1/streams/nope/records", 404, "stream_not_declared");
    check_refused(&server, &format!("{RECORDS}?connection_id=cin_no"), 404, "connection_not_found");
    check_refused(&server, &format!("{RECORDS}?changes_since=beginning"), 400, "invalid_argument");
}

#[test]
fn parameters_that_conflict_with_changes_are_refused_by_name() {
    let (_folder, server) = server();
    for (name, value) in [
        ("expand", "attachments"),
        ("count", "exact"),
        ("sort", "received_at"),
        ("order", "asc"),
        ("expand[]", "attachments"),
    ] {
        let target = format!("{RECORDS}?connection_id=cin_work&changes_since=beginning&{name}={value}");
        check_refused(&server, &target, 400, "invalid_argument");
        let error = get(&server.address, &target).json()["error"].clone();
        assert_eq!(error["param"], name.trim_end_matches("[]"), "{error}");
        assert!(error["message"].as_str().unwrap().contains(name.trim_end_matches("[]")), "{error}");
    }
}

#[test]
fn changes_include_deletions() {
    let (folder, store) = demo_store();
    let state = folder.path().join("state");
    let serve = || HttpServer::start(["--store", text(&store), "--state-dir", text(&state)]);
    let server = serve();
    let changes = |server: &HttpServer, since: &str| {
        ok(server, &format!("{RECORDS}?connection_id=cin_work&limit=100&changes_since={since}"))
    };
    let all = changes(&server, "beginning");
    assert_eq!(all["data"].as_array().unwrap().len(), 5);
    let token = all["next_changes_since"].as_str().unwrap().to_owned();
    drop(server);
    import_records(
        &store,
        "cin_work",
        "{\"stream\":\"messages\",\"key\":\"m1\",\"op\":\"delete\"}\n{\"stream\":\"messages\",\"key\":\"m9\",\"data\":{\"subject\":\"new\"}}",
    );
    let server = serve();
    let later = changes(&server, &token);
    let rows = later["data"].as_array().unwrap();
    assert_eq!(rows.len(), 2);
    assert_eq!((&rows[0]["id"], &rows[0]["deleted"]), (&json!("m1"), &json!(true)));
    assert_eq!(rows[1]["data"]["subject"], "new");
    let rest = changes(&server, later["next_changes_since"].as_str().unwrap());
    assert_eq!(rest["data"], json!([]));
}

#[test]
fn a_field_is_read_through_to_its_end() {
    let (_folder, server) = server();
    let record = ok(&server, &format!("{RECORDS}/m1?connection_id=cin_work"));
    let body = record["data"]["body"].as_str().unwrap();
    let window = |query: &str| {
        ok(&server, &format!("{RECORDS}/m1/field-window?connection_id=cin_work&field=body&{query}"))["window"]
            .clone()
    };
    let (mut read, mut offset) = (String::new(), Some(0));
    while let Some(from) = offset {
        let piece = window(&format!("offset_chars={from}&limit_chars=17"));
        read.push_str(piece["text"].as_str().unwrap());
        offset = piece["next_offset_chars"].as_u64();
    }
    assert_eq!(read, body);
    assert_eq!(window("")["complete"], true);
    let found = window("q=INVOICE&before_chars=3&after_chars=2");
    assert_eq!(found["text"].as_str().unwrap().chars().count(), 3 + 7 + 2);
    let target = |query: &str| format!("{RECORDS}/m1/field-window?{query}");
    check_refused(&server, &target("field=body"), 409, "ambiguous_connection");
    check_refused(&server, &target("field=body&connection_id=cin_work&q=zzzz"), 404, "query_not_found");
    check_refused(&server, &target("field=nope&connection_id=cin_work"), 404, "field_not_found");
    check_refused(&server, &target("field=amount_eur&connection_id=cin_work"), 422, "field_not_text");
}

#[test]
fn aggregates_cover_every_connection() {
    let (_folder, server) = server();
    let aggregate = |query: &str| ok(&server, &format!("/v1/streams/messages/aggregate?{query}"));
    assert_eq!(aggregate("metric=count")["value"], 8);
    assert_eq!(aggregate("metric=count&connection_id=cin_home")["value"], 3);
    let grouped = aggregate("metric=count&group_by=from&limit=2");
    assert_eq!(grouped["groups"].as_array().unwrap().len(), 2);
    let total: u64 =
        grouped["groups"].as_array().unwrap().iter().map(|group| group["count"].as_u64().unwrap()).sum();
    assert_eq!(total + grouped["other_count"].as_u64().unwrap(), 8);
    let months = aggregate("metric=count&group_by_time=received_at&granularity=month&time_zone=Europe/Oslo");
    assert_eq!((&months["granularity"], &months["time_zone"]), (&json!("month"), &json!("Europe/Oslo")));
    assert_eq!(aggregate("metric=max&field=received_at")["metric"], "max");
    check_refused(&server, "/v1/streams/messages/aggregate?metric=sum&field=nope", 400, "invalid_argument");
    check_refused(&server, "/v1/streams/nope/aggregate?metric=count", 404, "stream_not_declared");
}

#[test]
fn a_stream_lists_the_capabilities_of_its_fields() {
    let (_folder, server) = server();
    let stream = ok(&server, "/v1/streams/messages");
    assert_eq!((&stream["cursor_field"], &stream["primary_key"]), (&json!("received_at"), &json!(["id"])));
    assert_eq!(stream["instance_ids"], json!(["cin_work", "cin_home"]));
    assert_eq!(stream["field_capabilities"]["subject"]["lexical_search"]["usable"], true);
    let compact = ok(&server, "/v1/schema?view=compact&stream=messages");
    let flags = &compact["connectors"][0]["streams"][0]["field_capabilities"]["amount_eur"];
    assert!(flags.as_str().unwrap().starts_with("t=number,"), "{flags}");
    check_refused(&server, "/v1/streams/nope", 404, "stream_not_declared");
}
