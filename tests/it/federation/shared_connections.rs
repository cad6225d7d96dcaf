//! Two sources with the same connection id: every printed id works, in every profile.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{Account, Model, RecordServer, configured, text};

const DEADLINE: Duration = Duration::from_secs(10);

fn server(connection: &'static str, records: usize) -> RecordServer {
    RecordServer::start(Account::of(connection, records))
}

fn ids(list: &Value) -> Vec<String> {
    list.as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap().to_owned()).collect()
}

/// Checks that a server got requests with its own connection id only.
fn check_asked(server: &RecordServer, own: &str) {
    for request in server.socket().requests() {
        let url = url::Url::parse(&format!("http://x{}", request.line.trim_start_matches("GET "))).unwrap();
        let asked = url.query_pairs().find(|(name, _)| name == "connection_id");
        assert!(asked.is_none_or(|(_, asked)| asked == own), "{}", request.line);
    }
}

#[tokio::test]
async fn every_printed_id_works_in_every_profile() {
    let (home, work) = (server("cin_work", 3), server("cin_work", 5));
    let (_folder, config) = configured(&[("home", &home), ("work", &work)], DEADLINE);
    for profile in ["standard", "openai"] {
        let model = Model::over_stdio(["--config", text(&config), "--profile", profile]).await;
        // The first call of a process has no cached schema.
        let found = model.call("search", json!({"query": "invoice"})).await;
        let found = ids(&found["results"]);
        assert_eq!(found.len(), 5, "{found:?}");
        assert!(found.contains(&"cin_work@work/messages:m0004".to_owned()), "{found:?}");
        for id in &found {
            assert!(id.starts_with("cin_work@"), "{id}");
            assert_eq!(model.call("fetch", json!({"id": id})).await["id"], *id);
        }
        // An older handle is ambiguous, and the error lists both records.
        let refused = model.refusal("fetch", json!({"id": "cin_work/messages:m0001"})).await;
        assert_eq!(refused["code"], "ambiguous_connection");
        let choices = ids(&refused["available_connections"]);
        assert_eq!(choices, ["cin_work@home/messages:m0001", "cin_work@work/messages:m0001"]);
        assert!(refused["hint"].as_str().unwrap().contains("available_connections"), "{refused}");
        for id in choices {
            assert_eq!(model.call("fetch", json!({"id": id})).await["id"], id);
        }
    }
    check_asked(&home, "cin_work");
    check_asked(&work, "cin_work");
}

#[tokio::test]
async fn every_tool_accepts_and_prints_qualified_ids() {
    let (home, work) = (server("cin_work", 3), server("cin_work", 5));
    let (_folder, config) = configured(&[("home", &home), ("work", &work)], DEADLINE);
    let model = Model::over_stdio(["--config", text(&config)]).await;
    let schema = model.call("schema", json!({})).await.to_string();
    assert!(schema.contains("cin_work@home") && schema.contains("cin_work@work"), "{schema}");
    for (connection, records) in [("cin_work@home", 3), ("cin_work@work", 5)] {
        let listed =
            model.call("query_records", json!({"stream": "messages", "connection_id": connection})).await;
        let listed = ids(&listed["records"]);
        assert_eq!(listed.len(), records);
        assert!(listed.iter().all(|id| id.starts_with(connection)), "{listed:?}");
        let counted = json!({"stream": "messages", "metric": "count", "connection_id": connection});
        assert_eq!(model.call("aggregate", counted).await["value"], records);
        let found = model.call("search", json!({"query": "invoice", "connection_id": connection})).await;
        assert_eq!(ids(&found["results"]).len(), records);
        let arguments = json!({"id": listed[0], "field": "body", "limit_chars": 10});
        let window = model.call("read_record_field", arguments).await;
        assert!(window["text"].as_str().unwrap().starts_with("Please"), "{window}");
        let described =
            model.call("schema", json!({"stream": "messages", "connection_id": connection})).await;
        assert_eq!(described["variants"][0]["connections"][0]["connection_id"], connection);
    }
    let refused =
        model.refusal("query_records", json!({"stream": "messages", "connection_id": "cin_work"})).await;
    assert_eq!(refused["code"], "ambiguous_connection");
    assert_eq!(refused["available_connections"][1]["connection_id"], "cin_work@work");
    // A list over all connections has copies of a record once.
    let all = model.call("query_records", json!({"stream": "messages"})).await;
    assert_eq!(ids(&all["records"]).len(), 5);
    check_asked(&home, "cin_work");
    check_asked(&work, "cin_work");
}

#[tokio::test]
async fn a_printed_id_works_after_the_collision_has_ended() {
    let (home, other) = (server("cin_work", 3), server("cin_other", 3));
    let (_folder, config) = configured(&[("home", &home), ("work", &other)], DEADLINE);
    let model = Model::over_stdio(["--config", text(&config)]).await;
    let id = "cin_work@home/messages:m0001";
    assert_eq!(model.call("fetch", json!({"id": id})).await["id"], id);
    let found = model.call("search", json!({"query": "invoice"})).await;
    assert!(!found.to_string().contains('@'), "{found}");
    let refused = model.refusal("fetch", json!({"id": "cin_work@work/messages:m0001"})).await;
    assert_eq!(refused["code"], "connection_not_found");
    check_asked(&home, "cin_work");
}

#[tokio::test]
async fn a_printed_id_works_after_the_other_source_is_removed() {
    let home = server("cin_work", 3);
    let (_folder, config) = configured(&[("home", &home)], DEADLINE);
    let model = Model::over_stdio(["--config", text(&config)]).await;
    let id = "cin_work@home/messages:m0001";
    assert_eq!(model.call("fetch", json!({"id": id})).await["id"], id);
    let asked = json!({"stream": "messages", "connection_id": "cin_work@home", "limit": 2});
    let page = model.call("query_records", asked).await;
    assert_eq!(ids(&page["records"]).len(), 2, "{page}");
    for id in ids(&page["records"]) {
        assert_eq!(model.call("fetch", json!({"id": id})).await["id"], id);
    }
    let next = model.call("query_records", json!({"cursor": page["next_cursor"]})).await;
    assert_eq!(ids(&next["records"]).len(), 1, "{next}");
    for (tool, arguments) in [
        ("search", json!({"query": "invoice", "connection_id": "cin_work@home"})),
        ("schema", json!({"stream": "messages", "connection_id": "cin_work@home"})),
        ("aggregate", json!({"stream": "messages", "connection_id": "cin_work@home", "metric": "count"})),
        ("read_record_field", json!({"id": id, "field": "body"})),
    ] {
        model.call(tool, arguments).await;
    }
    // Other ids are those of the source, and another source's name is unknown.
    let found = model.call("search", json!({"query": "invoice"})).await;
    assert!(!found.to_string().contains('@'), "{found}");
    check_asked(&home, "cin_work");
    let refused = model.refusal("fetch", json!({"id": "cin_work@work/messages:m0001"})).await;
    assert_eq!(refused["code"], "connection_not_found");
}

#[tokio::test]
async fn a_real_connection_with_that_id_takes_precedence() {
    let (home, work, literal) = (server("cin_work", 3), server("cin_work", 3), server("cin_work@home", 3));
    let (_folder, config) = configured(&[("home", &home), ("work", &work), ("third", &literal)], DEADLINE);
    let model = Model::over_stdio(["--config", text(&config)]).await;
    let fetched = model.call("fetch", json!({"id": "cin_work@home/messages:m0001"})).await;
    assert_eq!(fetched["title"], "Invoice 1 of cin_work@home");
    let fetched = model.call("fetch", json!({"id": "cin_work@work/messages:m0001"})).await;
    assert_eq!(fetched["title"], "Invoice 1 of cin_work");
    check_asked(&literal, "cin_work@home");
}

/// `cin_work@work` is the real id of a connection here, so its records are not copies of those of `cin_work`.
#[tokio::test]
async fn a_connection_with_a_qualified_id_has_its_own_records() {
    let (home, work) = (server("cin_work", 3), server("cin_work@work", 3));
    let (_folder, config) = configured(&[("home", &home), ("work", &work)], DEADLINE);
    let model = Model::over_stdio(["--config", text(&config)]).await;
    let found = ids(&model.call("search", json!({"query": "invoice"})).await["results"]);
    assert_eq!(found.len(), 6, "{found:?}");
    let listed = ids(&model.call("query_records", json!({"stream": "messages"})).await["records"]);
    assert_eq!(listed.len(), 6, "{listed:?}");
    for id in &listed {
        assert_eq!(model.call("fetch", json!({"id": id})).await["id"], *id);
    }
}
