//! Servers that answer in all shapes, and servers that misbehave, as sources beside a store.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::support::mcp_servers::{McpServer, recorded_reply};
use crate::support::{FederationClient, import_records, text, walk};

/// Writes a configuration of a store and of MCP servers, each with the lines of its `[[source]]` table.
fn client(sources: &[(&str, String)]) -> (tempfile::TempDir, FederationClient) {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("own.db");
    let line =
        json!({"stream": "notes", "key": "n1", "data": {"title": "Own note", "body": "ledger special"}});
    import_records(&store, "own", &line.to_string());
    let mut config = format!("[[source]]\nname = \"own\"\nstore = {:?}\n", text(&store));
    for (name, lines) in sources {
        writeln!(config, "[[source]]\nname = \"{name}\"\n{lines}").unwrap();
    }
    let path = folder.path().join("fetchwell.toml");
    std::fs::write(&path, config).unwrap();
    let client = FederationClient::start(&path);
    (folder, client)
}

fn at(url: &str, settings: &str) -> String {
    format!("mcp = \"{url}?{settings}\"\ndeadline = \"20s\"")
}

/// Searches a connection. Returns the ids, or the code of the error.
fn search(client: &mut FederationClient, connection: &str, query: &str) -> Result<Vec<String>, String> {
    let found = client.call("search", &json!({"query": query, "connection_id": connection, "limit": 3}));
    if found.is_error { Err(found.body["code"].as_str().unwrap().to_owned()) } else { Ok(found.ids()) }
}

#[test]
#[ignore = "needs MCP servers: tests/mcp/run"]
fn answers_of_all_shapes_are_read_and_their_ids_fetched() {
    let server = McpServer::AwkwardPython.start(&[]);
    let read = [
        "object",
        "wrapped",
        "nested",
        "text",
        "quoted",
        "texts",
        "fenced",
        "mixed",
        "resources",
        "documents",
        "links",
        "nulls",
        "ids",
    ];
    let refused = [
        ("plain", "source_protocol"),
        ("error_inside", "tool_error"),
        ("error", "tool_error"),
        ("crash", "tool_error"),
    ];
    let shapes =
        read.iter().copied().chain(refused.iter().map(|(shape, _)| *shape)).chain(["blobs", "nothing"]);
    let mut sources: Vec<(&str, String)> =
        shapes.map(|shape| (shape, at(&server.url, &format!("shape={shape}")))).collect();
    let named = |lines: &str| format!("{}\n{lines}", at(&server.url, "records=40"));
    sources.push(("pages", named(
        "search = { tool = \"find_pages\", query = \"q\", results = \"/data/items\", id = \"/key\", title = \"/name\", text = \"/snippet\", next = \"/page/next\" }\n\
         fetch = { tool = \"get_page\", id = \"key\", title = \"/page/name\", text = \"/page/body\" }",
    )));
    sources.push(("tickets", named(
        "search = { tool = \"search_tickets\", id = \"/number\", title = \"/subject\" }\nfetch = { tool = \"get_ticket\" }",
    )));
    sources.push(("space", named("search = { tool = \"find_in_space\", arguments = { space = \"team\" } }")));
    sources.push(("unmarked", named("search = { tool = \"lookup\" }")));
    sources.push(("purge", named("search = { tool = \"purge_search\" }")));
    let (_folder, mut client) = client(&sources);
    for shape in read.iter().chain(&["pages", "tickets", "space", "unmarked"]) {
        let ids = search(&mut client, shape, "ledger").unwrap();
        assert_eq!(ids.len(), 3, "{shape}");
        for id in ids {
            let fetched = client.call("fetch", &json!({"id": id}));
            assert!(
                !fetched.is_error && !fetched.body["text"].as_str().unwrap().is_empty(),
                "{id}: {fetched:?}"
            );
        }
    }
    for (shape, code) in refused.iter().chain(&[("purge", "source_protocol")]) {
        assert_eq!(search(&mut client, shape, "ledger").unwrap_err(), *code, "{shape}");
    }
    for shape in ["blobs", "nothing"] {
        assert_eq!(search(&mut client, shape, "ledger").unwrap(), Vec::<String>::new(), "{shape}");
    }
    // A failing source does not fail the others.
    let all = client.call("search", &json!({"query": "ledger", "limit": 50}));
    assert!(!all.is_error && all.ids().contains(&"own/notes:n1".to_owned()), "{all:?}");
}

#[test]
#[ignore = "needs MCP servers: tests/mcp/run"]
fn every_id_that_is_printed_is_fetched_as_it_was_printed() {
    let server = McpServer::AwkwardPython.start(&[]);
    let (_folder, mut client) = client(&[("wiki", at(&server.url, "shape=object"))]);
    let ids = walk(&mut client, "search", json!({"query": "special", "connection_id": "wiki", "limit": 9}));
    let distinct: BTreeSet<&String> = ids.iter().collect();
    assert_eq!((distinct.len(), ids.len()), (25, 25), "{ids:#?}");
    let mut missing = Vec::new();
    for id in &ids {
        let fetched = client.call("fetch", &json!({"id": id}));
        if fetched.is_error {
            assert_eq!(fetched.body["code"], "not_found", "{id}: {fetched:?}");
            missing.push(id.as_str());
            continue;
        }
        let shown = fetched.body["id"].as_str().unwrap();
        assert!(shown == id || shown == format!("{id}/p0"), "{id}: {shown}");
        assert!(!fetched.body.to_string().contains('\u{1b}'), "{id}");
    }
    assert_eq!(missing, ["wiki/items:gone"]);
}

#[test]
#[ignore = "needs MCP servers: tests/mcp/run"]
fn parts_of_a_long_text_are_of_one_text() {
    let server = McpServer::AwkwardPython.start(&[]);
    let (_folder, mut client) = client(&[("wiki", at(&server.url, "shape=object"))]);
    let mut read = String::new();
    let mut next = Some(json!("wiki/items:long"));
    while let Some(id) = next {
        let part = client.call("fetch", &json!({"id": id}));
        assert!(!part.is_error, "{part:?}");
        assert_eq!(part.body["metadata"].get("warning"), None, "{id}");
        read.push_str(part.body["text"].as_str().unwrap());
        next = part.body["metadata"].get("next").cloned();
    }
    assert!(read.len() > 1_000_000, "{}", read.len());
}

#[test]
#[ignore = "needs MCP servers: tests/mcp/run"]
fn a_walk_over_three_servers_loses_and_repeats_nothing() {
    let server = McpServer::AwkwardPython.start(&[("AWKWARD_RECORDS", "1700")]);
    let lines = format!(
        "{}\nsearch = {{ tool = \"find_pages\", query = \"q\", limit = \"limit\", cursor = \"cursor\", results = \"/data/items\", id = \"/key\", title = \"/name\", text = \"/snippet\", next = \"/page/next\" }}\n\
         fetch = {{ tool = \"get_page\", id = \"key\" }}",
        at(&server.url, "x=1")
    );
    let sources = ["a", "b", "c"].map(|name| (name, lines.clone()));
    let (_folder, mut client) = client(&sources);
    let ids = walk(&mut client, "search", json!({"query": "ledger", "limit": 100}));
    let distinct: BTreeSet<&String> = ids.iter().collect();
    assert_eq!(distinct.len(), ids.len());
    for name in ["a/", "b/", "c/"] {
        assert_eq!(ids.iter().filter(|id| id.starts_with(name)).count(), 1_700, "{name}");
    }
}

/// Settings of an awkward server, and the codes of three searches in a row; `ok` for an answer with hits, `any` for each.
const MISBEHAVIOUR: [(&str, &str, [&str; 3]); 23] = [
    ("sessions", "session_calls=2", ["ok", "ok", "ok"]),
    ("stateless", "sessions=none", ["ok", "ok", "ok"]),
    ("json", "answers=json", ["ok", "ok", "ok"]),
    ("unstreamed", "stream=none", ["ok", "ok", "ok"]),
    ("older", "protocol=2024-11-05", ["ok", "ok", "ok"]),
    ("flood", "flood=5000", ["ok", "ok", "ok"]),
    ("forbidden", "status=403", ["reauthorize", "reauthorize", "reauthorize"]),
    ("asks", "ask=elicitation", ["ok", "ok", "ok"]),
    ("samples", "ask=sampling", ["ok", "ok", "ok"]),
    ("roots", "ask=roots", ["ok", "ok", "ok"]),
    ("grows", "changes=grow", ["ok", "ok", "ok"]),
    ("drops", "changes=drop", ["ok", "source_protocol", "source_protocol"]),
    ("many", "tools=20000&tools_last=1", ["ok", "ok", "ok"]),
    ("endless", "tool_pages=endless", ["ok", "ok", "ok"]),
    ("large", "size=100000000", ["source_unavailable", "source_unavailable", "source_unavailable"]),
    ("broken", "invalid=json", ["source_unavailable", "source_unavailable", "source_unavailable"]),
    ("html", "invalid=html", ["source_protocol", "source_protocol", "source_protocol"]),
    ("closes", "close=mid", ["source_unavailable", "source_unavailable", "source_unavailable"]),
    ("limits", "status=429", ["source_rate_limited", "any", "any"]),
    ("secret", "tokens=alpha:one,beta:two", ["reauthorize", "reauthorize", "reauthorize"]),
    ("header", "header=x-org:acme", ["tool_error", "tool_error", "tool_error"]),
    ("destructive", "hints=destructive", ["source_protocol", "source_protocol", "source_protocol"]),
    ("results", "records=12000&limit=10000", ["ok", "ok", "ok"]),
];

#[test]
#[ignore = "needs MCP servers: tests/mcp/run"]
fn servers_that_misbehave_are_named_with_what_is_wrong() {
    let server = McpServer::AwkwardTypescript.start(&[]);
    let sources: Vec<(&str, String)> =
        MISBEHAVIOUR.iter().map(|(name, settings, _)| (*name, at(&server.url, settings))).collect();
    let (_folder, mut client) = client(&sources);
    for (name, _, expect) in MISBEHAVIOUR {
        let codes =
            ["ledger", "ledger euros", "ledger flight"].map(|query| match search(&mut client, name, query) {
                Ok(ids) if ids.is_empty() => "empty".to_owned(),
                Ok(_) => "ok".to_owned(),
                Err(code) => code,
            });
        // After a server asked for a pause, time decides about the next answers.
        let fits = codes.iter().zip(expect).all(|(code, expect)| code == expect || expect == "any");
        assert!(fits, "{name}: {codes:?}");
    }
    let own = client.call("search", &json!({"query": "ledger", "connection_id": "own"}));
    assert_eq!(own.ids(), ["own/notes:n1"]);
    assert!(client.process_usage().resident_kb < 400_000, "{:?}", client.process_usage());
}

#[test]
#[ignore = "needs MCP servers: tests/mcp/run"]
fn each_source_has_its_own_token_and_headers() {
    let server = McpServer::AwkwardTypescript.start(&[]);
    let with = |token: &str| {
        format!(
            "{}\nheaders = {{ authorization-note = \"x\", x-org = \"acme\" }}\ncredential = \"command:echo {token}\"",
            at(&server.url, "tokens=alpha:tok_alpha,beta:tok_beta&header=x-org:acme")
        )
    };
    let (_folder, mut client) =
        client(&[("a", with("tok_alpha")), ("b", with("tok_beta")), ("c", with("tok_other"))]);
    let titles = |client: &mut FederationClient, connection: &str| -> BTreeSet<String> {
        let found =
            client.call("search", &json!({"query": "ledger", "connection_id": connection, "limit": 10}));
        assert!(!found.is_error, "{found:?}");
        let text = |row: &Value| row["text"].as_str().unwrap_or_default().to_owned();
        found.body["results"].as_array().unwrap().iter().map(text).collect()
    };
    let (a, b) = (titles(&mut client, "a"), titles(&mut client, "b"));
    assert!(!a.is_empty() && a.is_disjoint(&b), "{a:?} {b:?}");
    assert_eq!(search(&mut client, "c", "ledger").unwrap_err(), "reauthorize");
}

/// Settings of a server over stdio, and the codes of three searches in a row.
const PIPED: [(&str, &[&str], [&str; 3]); 6] = [
    ("noise", &["AWKWARD_NOISE=1"], ["ok", "ok", "ok"]),
    ("stderr", &["AWKWARD_STDERR=3000000"], ["ok", "ok", "ok"]),
    ("restarts", &["AWKWARD_EXIT_AFTER=2"], ["ok", "ok", "ok"]),
    ("ends", &["AWKWARD_EXIT=1"], ["source_unavailable", "source_unavailable", "source_unavailable"]),
    ("closes", &["AWKWARD_CLOSE=mid"], ["source_unavailable", "source_unavailable", "source_unavailable"]),
    ("slow", &["AWKWARD_START=4000"], ["source_timeout", "ok", "ok"]),
];

#[test]
#[ignore = "needs MCP servers: tests/mcp/run"]
fn programs_that_misbehave_are_started_again() {
    let sources: Vec<(&str, String)> = PIPED
        .iter()
        .map(|(name, settings, _)| {
            let settings: Vec<(&str, &str)> =
                settings.iter().map(|setting| setting.split_once('=').unwrap()).collect();
            let command = McpServer::AwkwardTypescript.stdio_command(&settings);
            let deadline = if *name == "slow" { "3s" } else { "20s" };
            (*name, format!("command = {command:?}\ndeadline = \"{deadline}\""))
        })
        .collect();
    let (_folder, mut client) = client(&sources);
    for (name, _, expect) in PIPED {
        let codes =
            ["ledger", "ledger euros", "ledger flight"].map(|query| match search(&mut client, name, query) {
                Ok(ids) if ids.is_empty() => "empty".to_owned(),
                Ok(_) => "ok".to_owned(),
                Err(code) => code,
            });
        assert_eq!(codes, expect, "{name}");
    }
}

#[test]
#[ignore = "needs MCP servers: tests/mcp/run"]
fn servers_of_other_vendors_are_searched_and_read() {
    let sample = McpServer::OpenAiSample.stdio_command(&[]);
    let mut sources = vec![("sample", format!("command = {sample:?}\ndeadline = \"25s\""))];
    let memory = McpServer::BasicMemory;
    if memory.is_installed() {
        let command = memory.stdio_command(&[]);
        let place = format!("command = {command:?}\ndeadline = \"25s\"");
        sources.push(("memory", format!("{place}\npreset = \"basic-memory\"")));
        sources.push(("connector", format!("{place}\nclient_name = \"openai-mcp\"")));
        sources.push(("refused", place));
    }
    let (_folder, mut client) = client(&sources);
    let recorded = recorded_reply("openai-sample/search");
    let count = recorded["result"]["structuredContent"]["results"].as_array().unwrap().len();
    let found =
        client.call("search", &json!({"query": "lemon velvet", "connection_id": "sample", "limit": 50}));
    assert_eq!(found.ids().len(), count, "{found:?}");
    let mut ids = found.ids();
    if memory.is_installed() {
        // A program that starts slowly goes on starting after a call that waited for it in vain.
        let mut started = |name: &str| {
            let mut attempts = (0..4).map(|_attempt| search(&mut client, name, "invoice"));
            attempts.find(|found| !found.as_ref().is_err_and(|code| code == "source_timeout")).unwrap()
        };
        for name in ["memory", "connector"] {
            let found = started(name).unwrap();
            assert_eq!(found.len(), 2, "{name}: {found:?}");
            ids.extend(found);
        }
        assert_eq!(started("refused").unwrap_err(), "tool_error");
        let unknown = client.call("fetch", &json!({"id": "memory/notes/main%2Fno-such-note"}));
        assert_eq!(unknown.body["code"], "not_found", "{unknown:?}");
    }
    for id in ids {
        let fetched = client.call("fetch", &json!({"id": id}));
        assert!(!fetched.is_error, "{id}: {fetched:?}");
    }
}
