//! Operators in the query of a search: over a store, over record servers, over `/v1` and on the command line.

use std::sync::Arc;

use fetchwell_core::record::RecordData;
use fetchwell_lab::recorded::RecordedSource;
use fetchwell_tools::{DEFAULT_CALL_DEADLINE, Profile, Toolbox};
use serde_json::{Value, json};

use crate::support::{
    CREDENTIAL, FakeServer, HttpServer, Model, Reply, Request, binary, connect, demo_store, fetchwell, get,
    import_records, stderr, stdout, text,
};

fn ids(answer: &Value) -> Vec<&str> {
    let results = answer["results"].as_array().unwrap_or_else(|| panic!("{answer}"));
    results.iter().map(|result| result["id"].as_str().unwrap()).collect()
}

/// Returns the values of a parameter of a request.
fn parameter(request: &Request, name: &str) -> Vec<String> {
    let line = request.line.trim_start_matches("GET ");
    let url = url::Url::parse(&format!("http://x{line}")).unwrap();
    url.query_pairs().filter(|(key, _)| key == name).map(|(_, value)| value.into_owned()).collect()
}

/// Returns hits of a record server from two streams and two connections, one of them without a time.
fn hits(_request: &Request) -> Reply {
    let hit = |stream: &str, key: &str, connection: &str, time: Option<&str>| {
        json!({"stream": stream, "record_key": key, "connection_id": connection, "title": key,
            "display_name": format!("Label of {connection}"), "authored_at": time})
    };
    let hits = json!([
        hit("messages", "old", "cin_work", Some("2025-01-01T00:00:00Z")),
        hit("messages", "new", "cin_work", Some("2026-05-01T09:30:00+02:00")),
        hit("notes", "note", "cin_work", Some("2026-05-02")),
        hit("messages", "home", "cin_home", Some("2026-05-03T00:00:00Z")),
        hit("messages", "undated", "cin_work", None),
    ]);
    Reply::Json(
        200,
        json!({"data": hits, "has_more": false, "meta": {"count": 5, "count_accuracy": "exact"}}).to_string(),
    )
}

async fn model_of(server: &FakeServer, folder: &tempfile::TempDir) -> Model {
    connect(folder.path(), &server.url, CREDENTIAL);
    Model::over_stdio(["--provider-url", &server.url, "--cache-root", text(folder.path())]).await
}

#[tokio::test]
async fn a_store_is_searched_in_the_streams_and_the_connection_of_the_query() {
    let (_folder, store) = demo_store();
    let model = Model::over_stdio(["--store", text(&store)]).await;
    for (query, arguments) in [
        ("invoice stream:messages", json!({"query": "invoice", "streams": ["messages"]})),
        ("account:cin_work invoice", json!({"query": "invoice", "connection_id": "cin_work"})),
        (
            "Connection:\"cin_work\" STREAM:files invoice stream:messages",
            json!({"query": "invoice", "connection_id": "cin_work", "streams": ["files", "messages"]}),
        ),
    ] {
        let expect = model.call("search", arguments).await;
        assert!(!ids(&expect).is_empty());
        let found = model.call("search", json!({"query": query})).await;
        assert_eq!(ids(&found), ids(&expect), "{query}");
        assert!(found.get("warnings").is_none(), "{found}");
    }
    // Arguments and operators are combined.
    let found =
        model.call("search", json!({"query": "invoice stream:messages", "streams": ["files", "messages"]}));
    assert!(ids(&found.await).iter().all(|id| id.contains("/messages:")));
    for (arguments, code) in [
        (json!({"query": "invoice stream:nowhere"}), "stream_not_declared"),
        (json!({"query": "invoice connection:nowhere"}), "connection_not_found"),
        (
            json!({"query": "invoice connection:cin_work", "connection_id": "cin_home"}),
            "conflicting_connection_id",
        ),
        (json!({"query": "invoice connection:cin_work account:cin_home"}), "conflicting_connection_id"),
        (json!({"query": "invoice stream:messages", "streams": ["files"]}), "invalid_argument"),
    ] {
        let refusal = model.refusal("search", arguments).await;
        assert_eq!(refusal["code"], code, "{refusal}");
    }
}

#[tokio::test]
async fn text_that_is_not_an_operator_is_searched_as_text() {
    let (_folder, store) = demo_store();
    for profile in ["standard", "openai"] {
        let model = Model::over_stdio(["--store", text(&store), "--profile", profile]).await;
        for query in
            ["invoice re: x", "invoice foo::bar", r"invoice C:\dir", "invoice 12:30", "invoice \"lone"]
        {
            let found = model.call("search", json!({"query": query})).await;
            assert!(!ids(&found).is_empty(), "{query}: {found}");
            assert!(!found["warnings"].to_string().contains("as text"), "{query}: {found}");
        }
        for query in ["invoice after:2026-13-01", "invoice since:lately", "invoice -from:alice"] {
            let found = model.call("search", json!({"query": query})).await;
            let warning = found["warnings"][0].as_str().unwrap_or_else(|| panic!("{found}"));
            assert!(warning.starts_with("`") && warning.contains("was searched as text"), "{found}");
        }
        for query in ["\"", "-", "title:", "\"\" -\"\" from:\"\"", &"\"-a:".repeat(250)] {
            model.call("search", json!({"query": query})).await;
        }
    }
}

#[tokio::test]
async fn a_long_query_is_cut_with_a_warning() {
    let (_folder, store) = demo_store();
    let model = Model::over_stdio(["--store", text(&store)]).await;
    let long = format!("invoice{}", " žq".repeat(2_000));
    let found = model.call("search", json!({"query": long})).await;
    let warning = found["warnings"][0].as_str().unwrap();
    assert!(warning.contains("longer than 1000 characters"), "{warning}");
    let first = model.call("search", json!({"query": long, "limit": 1})).await;
    let next = model.call("search", json!({"query": long, "cursor": first["next_cursor"]})).await;
    assert_eq!((ids(&first)[0], ids(&next)[0]), (ids(&found)[0], ids(&found)[1]));
    // The end is left out, between words.
    let cut = model.call("search", json!({"query": "žq ".repeat(332) + "invoices"})).await;
    assert_eq!(cut["results"], json!([]), "{cut}");
    let whole = model.call("search", json!({"query": "žq ".repeat(331) + "invoice"})).await;
    assert!(whole["warnings"].is_null() && !ids(&whole).is_empty(), "{whole}");
    // The command line has the same rule, and keeps its options.
    let output = fetchwell(["search", &long, "--since", "2999-01-01", "--store", text(&store), "--json"]);
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((output.status.code(), &found["results"]), (Some(1), &json!([])), "{output:?}");
    let refused = fetchwell(["search", "invoice", "--limit", "0", "--store", text(&store)]);
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
}

#[tokio::test]
async fn a_record_server_gets_plain_words_and_its_hits_are_filtered_here() {
    let folder = tempfile::tempdir().unwrap();
    let server = FakeServer::start(hits);
    let model = model_of(&server, &folder).await;
    let query =
        "pay \"net 30\" -draft from:alice stream:messages connection:cin_work after:2026-01-01 before:2027";
    let found = model.call("search", json!({"query": query})).await;
    assert_eq!(ids(&found), ["cin_work/messages:new", "cin_work/messages:undated"]);
    let searches: Vec<Request> =
        server.requests().into_iter().filter(|request| request.line.contains("/v1/search?")).collect();
    let [search] = searches.as_slice() else { panic!("{searches:?}") };
    assert_eq!(parameter(search, "q"), ["pay net 30 alice"]);
    assert_eq!(parameter(search, "streams"), ["messages"]);
    assert_eq!(parameter(search, "connection_id"), ["cin_work"]);
    // One warning names all operators that were not applied.
    let warnings = found["warnings"].as_array().unwrap();
    assert_eq!(
        warnings,
        &[json!(
            "record servers and MCP servers take plain words; not applied there: \"phrase\", -word, from:, a time (hits without a date are shown)"
        )]
    );
    assert!(found.get("count").is_none(), "{found}");
    // Plain words are sent unchanged, and no hit is filtered.
    let found = model.call("search", json!({"query": "re: pay  C:\\dir"})).await;
    assert_eq!(parameter(server.requests().last().unwrap(), "q"), ["re: pay  C:\\dir"]);
    assert_eq!((ids(&found).len(), found.get("warnings"), &found["count"]), (5, None, &json!(5)));
    // A query without words sends no request.
    let before = server.requests().len();
    let found = model.call("search", json!({"query": "since:30d -draft"})).await;
    assert_eq!(found["results"], json!([]));
    assert!(found["warnings"][0].as_str().unwrap().contains("a query without words"), "{found}");
    assert_eq!(server.requests().len(), before);
}

#[tokio::test]
async fn a_federation_has_one_warning_for_all_sources() {
    let folder = tempfile::tempdir().unwrap();
    let servers = [FakeServer::start(hits), FakeServer::start(hits)];
    let mut config = String::new();
    for (name, server) in ["one", "two"].into_iter().zip(&servers) {
        connect(folder.path(), &server.url, CREDENTIAL);
        config += &format!("[[source]]\nname = \"{name}\"\nurl = \"{}\"\ncache_root = \".\"\n", server.url);
    }
    let file = folder.path().join("fetchwell.toml");
    std::fs::write(&file, config).unwrap();
    let model = Model::over_stdio(["--config", text(&file)]).await;
    let found = model.call("search", json!({"query": "pay -draft title:x stream:messages"})).await;
    assert_eq!(
        found["warnings"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|note| note.to_string().contains("plain words"))
            .count(),
        1,
        "{found}"
    );
    assert!(!ids(&found).is_empty() && ids(&found).iter().all(|id| id.contains("messages")), "{found}");
    for server in &servers {
        let requests = server.requests();
        let search = requests.iter().find(|request| request.line.contains("/v1/search?")).unwrap();
        assert_eq!(parameter(search, "q"), ["pay x"]);
    }
}

#[tokio::test]
async fn hits_have_a_date_and_several_accounts_a_label() {
    let folder = tempfile::tempdir().unwrap();
    let server = FakeServer::start(hits);
    let model = model_of(&server, &folder).await;
    let found = model.call("search", json!({"query": "pay"})).await;
    let dates: Vec<&Value> = found["results"].as_array().unwrap().iter().map(|hit| &hit["date"]).collect();
    assert_eq!(
        dates,
        [
            &json!("2025-01-01"),
            &json!("2026-05-01"),
            &json!("2026-05-02"),
            &json!("2026-05-03"),
            &Value::Null
        ]
    );
    assert_eq!(found["accounts"], json!({"cin_work": "Label of cin_work", "cin_home": "Label of cin_home"}));
    assert!(found["results"].as_array().unwrap().iter().all(|hit| hit.get("url").is_none()), "{found}");
    let found = model.call("search", json!({"query": "pay account:cin_home"})).await;
    assert!(found.get("accounts").is_none(), "{found}");
    // ChatGPT requires results with exactly these keys.
    let arguments =
        ["--provider-url", &server.url, "--cache-root", text(folder.path()), "--profile", "openai"];
    let found = Model::over_stdio(arguments).await.call("search", json!({"query": "pay"})).await;
    for hit in found["results"].as_array().unwrap() {
        let keys: Vec<&String> = hit.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["id", "title", "url", "text"], "{hit}");
    }
    assert!(found.get("accounts").is_none(), "{found}");
}

/// Seven hits with long ids, titles and links fit a page without `limit`.
#[tokio::test]
async fn seven_hits_fit_a_page_without_a_limit() {
    let hit = |number: usize| {
        json!({"stream": "messages", "connection_id": format!("cin_mail_{}", number % 3),
            "record_key": format!("{number:040}@lists.example.com"), "display_name": "Mail of the work account",
            "title": format!("{number} Re: the minutes of the meeting on the budget of the coming year and its appendix"),
            "url": format!("https://lists.example.com/archive/{}/{number}", "long-thread-".repeat(10)),
            "authored_at": "2026-05-01T00:00:00Z", "snippet": {"text": "Ann said that the budget is fine. ".repeat(9)}})
    };
    let reply = json!({"data": (0..30).map(hit).collect::<Vec<_>>(), "has_more": false}).to_string();
    let source = RecordedSource {
        name: "fixture".parse().unwrap(),
        search: reply,
        record: String::new(),
        records: String::new(),
        schema: String::new(),
    };
    let toolbox = Toolbox::new(Arc::new(source), DEFAULT_CALL_DEADLINE).unwrap();
    let call = async |arguments: Value| {
        let arguments: RecordData = serde_json::from_value(arguments).unwrap();
        let answer = toolbox.call(Profile::Standard, "search", arguments).await.unwrap().unwrap();
        assert!(answer.json().len() <= 1_800, "{} bytes", answer.json().len());
        serde_json::from_str::<Value>(answer.json()).unwrap()
    };
    let (mut page, mut seen) = (call(json!({"query": "budget"})).await, Vec::new());
    loop {
        let results = page["results"].as_array().unwrap();
        let is_last = page.get("next_cursor").is_none();
        assert!(is_last || results.len() >= 7, "{page}");
        assert!(results.iter().all(|hit| hit["date"] == "2026-05-01"), "{page}");
        // `accounts` has the labels of the accounts on the page only.
        let accounts = page["accounts"].as_object().map_or(0, serde_json::Map::len);
        let mut connections: Vec<&str> = ids(&page).iter().map(|id| id.split('/').next().unwrap()).collect();
        connections.sort_unstable();
        connections.dedup();
        assert!(accounts <= connections.len() && (accounts > 1 || connections.len() == 1), "{page}");
        seen.extend(results.iter().map(|hit| hit["id"].as_str().unwrap().to_owned()));
        if is_last {
            break;
        }
        page = call(json!({"cursor": page["next_cursor"]})).await;
    }
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), 30);
}

#[test]
fn v1_reads_operators_only_if_asked_to() {
    let folder = tempfile::tempdir().unwrap();
    let server = FakeServer::start(hits);
    connect(folder.path(), &server.url, CREDENTIAL);
    let http = HttpServer::start(["--provider-url", &server.url, "--cache-root", text(folder.path())]);
    let last = |server: &FakeServer| {
        let requests = server.requests();
        requests.iter().rfind(|request| request.line.contains("/v1/search?")).cloned().unwrap()
    };
    for target in ["/v1/search?q=pay+stream:notes+-x", "/v1/search?q=pay+stream:notes+-x&syntax=literal"] {
        let found = get(&http.address, target).json();
        assert_eq!(found["data"].as_array().unwrap().len(), 5, "{found}");
        assert_eq!(parameter(&last(&server), "q"), ["pay stream:notes -x"]);
        assert_eq!(found["meta"]["warnings"], json!([]));
    }
    let found = get(&http.address, "/v1/search?q=pay+stream:notes+-xy+before:x&syntax=operators").json();
    assert_eq!(found["data"].as_array().unwrap().len(), 1, "{found}");
    // The server found little, so it was asked for the words by themselves as well.
    let asked: Vec<String> = server.requests().iter().flat_map(|request| parameter(request, "q")).collect();
    assert!(asked.contains(&"pay before:x".to_owned()), "{asked:?}");
    let warnings = found["meta"]["warnings"].as_array().unwrap();
    let codes: Vec<&Value> = warnings.iter().map(|warning| &warning["code"]).collect();
    assert_eq!(codes, ["operator_as_text", "operators_not_applied"], "{found}");
    let refused = get(&http.address, "/v1/search?q=x+connection:a&connection_id=b&syntax=operators");
    assert_eq!((refused.status, &refused.json()["error"]["code"]), (400, &json!("invalid_request")));
    assert_eq!(get(&http.address, "/v1/search?q=x&syntax=other").status, 400);
}

/// A relative date means the same on every page, and a cursor of one syntax is refused in the other.
#[test]
fn cursors_of_v1_are_bound_to_the_syntax() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store.db");
    let lines: Vec<String> = (0..9)
        .map(|key| json!({"stream": "s", "key": format!("k{key}"), "data": {"title": "word"}}).to_string())
        .collect();
    import_records(&store, "cin_a", &lines.join("\n"));
    let http = HttpServer::start(["--store", text(&store)]);
    let mut seen = Vec::new();
    let mut target = "/v1/search?q=word+stream:s&limit=4&syntax=operators".to_owned();
    loop {
        let page = get(&http.address, &target).json();
        seen.extend(page["data"].as_array().unwrap().iter().map(|hit| hit["record_key"].to_string()));
        let Some(next) = page["links"]["next"].as_str() else { break };
        target = next.to_owned();
        let literal = target.replace("&syntax=operators", "");
        assert_eq!(get(&http.address, &literal).json()["error"]["code"], "invalid_cursor", "{target}");
    }
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), 9);
}

#[test]
fn words_need_no_quotes_on_the_command_line() {
    let (_folder, store) = demo_store();
    let found = |arguments: &[&str]| {
        let output =
            binary().arg("search").args(arguments).args(["--store", text(&store), "--json"]).output();
        let output = output.unwrap();
        (output.status.code(), serde_json::from_slice::<Value>(&output.stdout).unwrap_or_default())
    };
    let (code, quoted) = found(&["overdue invoice"]);
    assert_eq!(code, Some(0));
    assert_eq!(ids(&found(&["overdue", "invoice"]).1), ids(&quoted));
    let (_, of_stream) = found(&["invoice", "--stream", "files", "--limit", "3"]);
    assert!(
        !ids(&of_stream).is_empty() && ids(&of_stream).iter().all(|id| id.contains("/files")),
        "{of_stream}"
    );
    assert_eq!(ids(&found(&["stream:files", "invoice", "--limit", "3"]).1), ids(&of_stream));
    let (_, of_account) = found(&["invoice", "--connection-id", "cin_home"]);
    assert!(ids(&of_account).iter().all(|id| id.starts_with("cin_home/")), "{of_account}");
    // Nothing is found: exit code 1, and the usual answer.
    let (code, nothing) = found(&["xylophone"]);
    assert_eq!((code, &nothing["results"]), (Some(1), &json!([])));
    let output = fetchwell(["search", "xylophone", "--store", text(&store)]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("nothing found") && !stderr(&output).contains("error:"), "{output:?}");
    // Invalid command lines.
    for wrong in [&["search"][..], &["search", "x", "--since", "lately"]] {
        let output = binary().args(wrong).args(["--store", text(&store)]).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{output:?}");
    }
    let help = stdout(&fetchwell(["search", "--help"]));
    assert!(help.contains("Exit codes: 0") && help.contains("since:30d"), "{help}");
}

#[test]
fn matches_are_bold_on_a_terminal_alone() {
    let (_folder, store) = demo_store();
    let run = |force: bool| {
        let mut command = binary();
        command.args(["search", "payment", "invoice", "--store", text(&store)]);
        if force {
            command.env("CLICOLOR_FORCE", "1");
        }
        stdout(&command.output().unwrap())
    };
    assert!(!run(false).contains('\u{1b}'));
    let shown = run(true).to_lowercase();
    assert!(shown.contains("\u{1b}[1mpayment\u{1b}[0m") && shown.contains("\u{1b}[1minvoice"), "{shown:?}");
}
