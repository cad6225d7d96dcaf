//! Servers that return every record with a word of the query, in the order of their files.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::support::{FakeServer, FederationClient, binary, mcp_reply, mcp_tool, text, walk};

/// Number of records of each server, 5,000 in total, and the places of those with all words of the query.
const SERVERS: [(&str, usize, [usize; 2]); 3] =
    [("a", 1_700, [1_111, 1_699]), ("b", 1_700, [400, 1_000]), ("c", 1_600, [1_580, 1_598])];

/// Starts a server with `search` that returns all of its records, whatever the query is.
fn server(records: usize, exact: [usize; 2]) -> FakeServer {
    let result = move |number: usize| {
        let kind = if exact.contains(&number) { "unpaid" } else { "settled" };
        json!({"id": format!("n/{number}"), "title": format!("Note {number}"), "text": format!("A {kind} ledger")})
    };
    let results = json!({"results": Value::from_iter((0..records).map(result))});
    FakeServer::start(move |request| {
        mcp_reply(request, &|method, _| match method {
            "tools/list" => json!({"tools": [mcp_tool("search", &["query"]), mcp_tool("fetch", &["id"])]}),
            _ => json!({"content": [{"type": "text", "text": results.to_string()}]}),
        })
    })
}

#[test]
fn walk_over_reordered_lists_loses_and_repeats_nothing() {
    let servers = SERVERS.map(|(name, records, exact)| (name, server(records, exact)));
    let folder = tempfile::tempdir().unwrap();
    let mut config = String::new();
    for (name, server) in &servers {
        let url = &server.url;
        writeln!(config, "[[source]]\nname = \"{name}\"\nmcp = \"{url}/mcp\"\ndeadline = \"20s\"").unwrap();
    }
    let path = folder.path().join("fetchwell.toml");
    std::fs::write(&path, config).unwrap();
    let mut client = FederationClient::start(&path);
    let ids = walk(&mut client, "search", json!({"query": "unpaid ledger", "limit": 100}));
    let exact: BTreeSet<String> = SERVERS
        .iter()
        .flat_map(|(name, _, exact)| exact.map(|number| format!("{name}/items/n%2F{number}")))
        .collect();
    assert_eq!(ids[..exact.len()].iter().cloned().collect::<BTreeSet<_>>(), exact);
    let distinct: BTreeSet<&String> = ids.iter().collect();
    assert_eq!((ids.len(), distinct.len()), (5_000, 5_000));
    // A server is asked once, and its list is kept for the pages.
    for (name, server) in &servers {
        let calls = server.requests().iter().filter(|request| request.body.contains("tools/call")).count();
        assert_eq!(calls, 1, "{name}");
    }
}

#[test]
fn explanations_of_lists_have_their_order_and_coverage() {
    let servers = [("a", server(40, [30, 35])), ("b", server(40, [7, 39]))];
    let folder = tempfile::tempdir().unwrap();
    let mut config = String::new();
    for (name, server) in &servers {
        let url = &server.url;
        writeln!(config, "[[source]]\nname = \"{name}\"\nmcp = \"{url}/mcp\"\ndeadline = \"20s\"").unwrap();
    }
    let path = folder.path().join("fetchwell.toml");
    std::fs::write(&path, config).unwrap();
    let search = ["search", "unpaid ledger", "--limit", "6", "--explain", "--json", "--config", text(&path)];
    let output = binary().args(search).output().unwrap();
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    let of = |id: &str| {
        let results = answer["results"].as_array().unwrap();
        let at = results.iter().position(|result| result["id"] == id).unwrap_or_else(|| panic!("{answer}"));
        answer["explanation"]["results"][at].clone()
    };
    let found = of("a/items/n%2F35");
    assert_eq!(found["list"], json!({"rank": 36, "is_ordered_by_words": true, "coverage_percent": 100}));
    assert_eq!((&found["sources"][0]["source"], &found["sources"][0]["rank"]), (&json!("a"), &json!(2)));
    assert!((found["sources"][0]["points"].as_f64().unwrap() - 1.0 / 62.0).abs() < 1e-5, "{found}");
    let words = &found["words"];
    let unpaid = json!({"word": "unpaid", "importance_percent": 100, "quality": 1.0,
        "matches": [{"form": "unpaid", "fields": ["text"]}]});
    assert_eq!(words[0], unpaid, "{found}");
    let settled = of("b/items/n%2F0");
    assert_eq!(
        (&settled["words"][0]["quality"], &settled["list"]["coverage_percent"]),
        (&json!(0.0), &json!(50))
    );
    let stages = answer["explanation"]["stages"].as_array().unwrap();
    let has = |name: &str, source: Value| {
        stages
            .iter()
            .any(|stage| stage["name"] == name && *stage.get("source").unwrap_or(&Value::Null) == source)
    };
    assert!(has("server", json!("a")) && has("server", json!("b")) && has("fusion", Value::Null), "{answer}");
}
