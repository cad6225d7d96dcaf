//! Operators and filters that the embedded store applies: phrases, exclusions, fields and times.

use serde_json::{Value, json};

use crate::support::stores::new_store;
use crate::support::{
    CREDENTIAL, FakeServer, HttpServer, Model, Reply, connect, fetchwell, get, import_records, stdout, text,
};

/// Returns a store of messages: `bill` and `late` are by Alice and have attachments, `now` was written today.
fn store_of_messages() -> (tempfile::TempDir, std::path::PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let store = new_store(&folder);
    let today = jiff::Timestamp::now().to_string();
    let message = |key: &str, subject: &str, from: &str, body: &str, sent_at: &str| {
        let attachments = match key {
            "bill" => json!(["Annual report 2026.pdf", "photo.png"]),
            "late" => json!([{"filename": "photo.png"}]),
            _ => json!([]),
        };
        let data = json!({"subject": subject, "from": from, "attachments": attachments, "body": body, "sent_at": sent_at});
        json!({"stream": "messages", "key": key, "data": data}).to_string()
    };
    let lines = [
        message(
            "bill",
            "Invoice for paper",
            "alice@example.com",
            "Payment is net 30 days.",
            "2026-05-01T10:00:00Z",
        ),
        message(
            "draft",
            "Re: draft of an invoice",
            "Bob",
            "Thirty days; 30 net of tax.",
            "2026-06-01T10:00:00Z",
        ),
        message("late", "Reminder", "Alice Smith", "The invoice is late.", "2025-01-01T10:00:00Z"),
        message("now", "Lunch", "Carol", "An invoice for lunch.", &today),
    ];
    import_records(&store, "cin_mail", &lines.join("\n"));
    (folder, store)
}

fn keys(answer: &Value) -> Vec<String> {
    let results = answer["results"].as_array().unwrap_or_else(|| panic!("{answer}"));
    let id = |result: &Value| result["id"].as_str().unwrap().rsplit(':').next().unwrap().to_owned();
    results.iter().map(id).collect()
}

/// Returns the keys of an answer, sorted.
fn sorted(answer: &Value) -> Vec<String> {
    let mut keys = keys(answer);
    keys.sort_unstable();
    keys
}

#[tokio::test]
async fn a_store_applies_every_operator() {
    let (_folder, store) = store_of_messages();
    for profile in ["standard", "openai"] {
        let model = Model::over_stdio(["--store", text(&store), "--profile", profile]).await;
        for (query, expect) in [
            ("invoice", &["bill", "draft", "late", "now"][..]),
            ("invoice \"net 30\"", &["bill"]),
            ("“net 30”", &["bill"]),
            ("invoice -draft", &["bill", "late", "now"]),
            ("invoice -\"net 30\" -lunch", &["draft", "late"]),
            ("title:invoice", &["bill", "draft"]),
            ("title:\"draft invoice\"", &["draft"]),
            ("invoice from:alice", &["bill", "late"]),
            ("author:\"alice smith\"", &["late"]),
            ("invoice has:attachment", &["bill", "late"]),
            ("has:attachment -photo", &[]),
            ("has:attachment after:2026", &["bill"]),
            ("filename:photo.png", &["bill", "late"]),
            ("invoice filename:\"annual report\"", &["bill"]),
            ("filename:\"annual photo\"", &[]),
            ("filename:invoice", &[]),
            ("invoice after:2026-05-01 before:2026-06-01", &["bill"]),
            ("invoice before:2026", &["late"]),
            ("invoice since:1d", &["now"]),
            ("from:alice since:1d", &[]),
            ("from:alice after:2026 stream:messages \"paper\"", &["bill"]),
        ] {
            let found = model.call("search", json!({"query": query})).await;
            assert_eq!(sorted(&found), expect, "{query}: {found}");
            assert!(!found["warnings"].to_string().contains("not applied"), "{found}");
        }
    }
}

#[tokio::test]
async fn operators_alone_list_the_newest_records() {
    let (_folder, store) = store_of_messages();
    let model = Model::over_stdio(["--store", text(&store)]).await;
    for (query, expect) in [
        ("stream:messages", &["now", "draft", "bill", "late"][..]),
        ("stream:messages -draft", &["now", "bill", "late"]),
        ("after:2026-01-01", &["now", "draft", "bill"]),
        ("has:attachment", &["bill", "late"]),
        ("account:cin_mail before:2026-05-15", &["bill", "late"]),
    ] {
        let found = model.call("search", json!({"query": query})).await;
        assert_eq!(keys(&found), expect, "{query}: {found}");
        // The pages of the list have every record once.
        let mut page = model.call("search", json!({"query": query, "limit": 1})).await;
        let mut walked = keys(&page);
        while let Some(cursor) = page.get("next_cursor") {
            page = model.call("search", json!({"cursor": cursor})).await;
            walked.extend(keys(&page));
        }
        assert_eq!(walked, expect, "{query}");
    }
    let nothing = model.call("search", json!({"query": "before:2000"})).await;
    assert!(nothing["hint"].as_str().unwrap().contains("operators"), "{nothing}");
    let elsewhere = model.call("search", json!({"query": "invoice from:dave"})).await;
    assert!(elsewhere["hint"].as_str().unwrap().contains("operators"), "{elsewhere}");
}

#[tokio::test]
async fn a_store_beside_a_record_server_applies_all_operators() {
    let (folder, store) = store_of_messages();
    let server = FakeServer::start(|_| {
        let hit = json!({"stream": "messages", "record_key": "remote", "connection_id": "cin_far"});
        Reply::Json(200, json!({"data": [hit], "has_more": false}).to_string())
    });
    connect(folder.path(), &server.url, CREDENTIAL);
    let config = folder.path().join("fetchwell.toml");
    let sources = format!(
        "[[source]]\nname = \"mail\"\nstore = \"{}\"\n[[source]]\nname = \"far\"\nurl = \"{}\"\ncache_root = \".\"\n",
        store.display(),
        server.url
    );
    std::fs::write(&config, sources).unwrap();
    let model = Model::over_stdio(["--config", text(&config)]).await;
    let found = model.call("search", json!({"query": "invoice -draft from:alice"})).await;
    assert_eq!(sorted(&found), ["bill", "late", "remote"]);
    assert_eq!(found["warnings"].as_array().map(Vec::len), Some(1), "{found}");
    let found = model.call("search", json!({"query": "invoice has:attachment filename:report.pdf"})).await;
    assert_eq!(sorted(&found), ["bill", "remote"]);
    let warning =
        "record servers and MCP servers take plain words; not applied there: has:attachment, filename:";
    assert_eq!(found["warnings"], json!([warning]), "{found}");
}

#[test]
fn operators_work_on_the_command_line_and_in_v1() {
    let (_folder, store) = store_of_messages();
    let run = |arguments: [&str; 3]| {
        let [first, second, third] = arguments;
        let output = fetchwell(["search", first, second, third, "--store", text(&store), "--json"]);
        sorted(&serde_json::from_str(&stdout(&output)).unwrap())
    };
    assert_eq!(run(["invoice", "--since", "1d"]), ["now"]);
    assert_eq!(run(["invoice", "from:alice", "after:2026"]), ["bill"]);
    assert_eq!(run(["--since=2026-05-15", "--stream", "messages"]), ["draft", "now"]);
    let http = HttpServer::start(["--store", text(&store)]);
    let keys = |target: &str| {
        let found = get(&http.address, target).json();
        let hits = found["data"].as_array().unwrap_or_else(|| panic!("{found}")).clone();
        let mut keys: Vec<String> =
            hits.iter().map(|hit| hit["record_key"].as_str().unwrap().to_owned()).collect();
        keys.sort_unstable();
        keys
    };
    assert_eq!(keys("/v1/search?q=invoice+-draft+from:alice&syntax=operators"), ["bill", "late"]);
    assert!(keys("/v1/search?q=invoice+-draft+from:alice").contains(&"draft".to_owned()));
}

#[tokio::test]
async fn connections_are_named_by_label() {
    let (folder, store) = store_of_messages();
    let file = folder.path().join("more.ndjson");
    let line =
        json!({"stream": "messages", "key": "other", "data": {"subject": "Invoice of another account"}});
    std::fs::write(&file, line.to_string()).unwrap();
    for (id, label) in [("cin_work", "Work mail"), ("cin_one", "Shared"), ("cin_two", "shared")] {
        let (file, store) = (text(&file), text(&store));
        let output =
            fetchwell(["import", "records", file, "--store", store, "--connection", id, "--name", label]);
        assert!(output.status.success(), "{output:?}");
    }
    let model = Model::over_stdio(["--store", text(&store)]).await;
    let found = model.call("search", json!({"query": "invoice account:\"work MAIL\""})).await;
    assert_eq!(found["results"].as_array().unwrap().len(), 1, "{found}");
    assert_eq!(found["results"][0]["id"], "cin_work/messages:other");
    let refused = model.refusal("search", json!({"query": "invoice connection:SHARED"})).await;
    assert_eq!(refused["code"], "ambiguous_connection");
    let choices = refused["available_connections"].as_array().unwrap();
    let mut ids: Vec<&str> = choices.iter().map(|choice| choice["connection_id"].as_str().unwrap()).collect();
    ids.sort_unstable();
    assert_eq!(ids, ["cin_one", "cin_two"]);
    let http = HttpServer::start(["--store", text(&store)]);
    let answer =
        |query: &str| get(&http.address, &format!("/v1/search?q=invoice+{query}&syntax=operators")).json();
    let found = answer("account:%22Work%20mail%22");
    assert_eq!(found["data"][0]["connection_id"], "cin_work", "{found}");
    assert_eq!(found["data"].as_array().unwrap().len(), 1);
    assert_eq!(answer("account:shared")["error"]["code"], "ambiguous_connection");
}

/// Number of records, more than are examined for a page.
const LEASES: usize = 12_500;

fn lease(number: usize, amount: usize) -> String {
    let data = json!({"note": "Harbour lease of a berth.", "amount": amount});
    json!({"stream": "leases", "key": format!("k{number}"), "data": data}).to_string()
}

/// The records that pass are the last ones of the ranked list.
#[tokio::test]
async fn a_filter_that_few_records_pass_selects_them_before_they_are_ranked() {
    let folder = tempfile::tempdir().unwrap();
    let store = new_store(&folder);
    let lines: Vec<String> = (0..LEASES).map(|number| lease(number, number)).collect();
    import_records(&store, "cin_port", &lines.join("\n"));
    let model = Model::over_stdio(["--store", text(&store)]).await;
    let search = |filter: Value| json!({"query": "harbour lease", "streams": ["leases"], "filter": filter, "limit": 2});
    // A process uses the columns of an index after it has verified its files.
    let mut first = model.call("search", search(json!({"amount": {"lt": 7}}))).await;
    for _ in 0..300 {
        if !keys(&first).is_empty() {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        first = model.call("search", search(json!({"amount": {"lt": 7}}))).await;
    }
    // One of the later records is changed between two pages.
    let (changed, kept): (Vec<usize>, Vec<usize>) = (0..7)
        .filter(|number| !keys(&first).contains(&format!("k{number}")))
        .partition(|number| *number == 2 || *number == 4);
    import_records(&store, "cin_port", &lease(changed[0], 99));
    let (mut page, mut walked) = (first.clone(), keys(&first));
    while let Some(cursor) = page.get("next_cursor") {
        page = model.call("search", json!({"cursor": cursor, "limit": 2})).await;
        walked.extend(keys(&page));
    }
    walked.sort_unstable();
    let expect = kept.iter().chain(&changed[1..]).map(|number| format!("k{number}")).chain(keys(&first));
    let mut expect: Vec<String> = expect.collect();
    expect.sort_unstable();
    assert_eq!(walked, expect);
    // A change that the index lacks counts, too.
    import_records(&store, "cin_port", &lease(9_000, 5));
    let again = model.call("search", search(json!({"amount": 5}))).await;
    assert_eq!(sorted(&again), ["k5", "k9000"]);
    let none = model.call("search", search(json!({"amount": {"gt": LEASES}}))).await;
    assert_eq!((keys(&none).len(), none.get("next_cursor")), (0, None), "{none}");
}
