//! One query through each way in: the tool over MCP, `/v1` with operators, the page, and the command line give the same records
//! in the same order and read dates alike. Queries that are easily misread are among them.

use std::path::Path;

use serde_json::{Value, json};

use crate::support::handbook::Site;
use crate::support::stores::new_store;
use crate::support::{HttpServer, Model, ask, encoded, fetchwell, get, import_records, post, text};

/// Records: stream, key, day and text.
const RECORDS: [(&str, &str, &str, &str); 7] = [
    ("messages", "day", "2025-03-05", "Global variables are evil"),
    ("messages", "next", "2025-03-20", "Global variables are fine"),
    ("messages", "other", "2024-05-03", "Global variables are old"),
    ("notes", "topic", "2023-01-02", "Global variables, global variables"),
    ("notes", "joke", "2023-01-03", "Tell me about version 2024.1, part 12-03 and the joke of 31 February"),
    ("notes", "chapter", "2023-01-04", "Show me where somebody deals with the page and finds the mail"),
    ("notes", "mixed", "2023-01-05", "Отчёт о гавани, 東京都 harbour Ελλάδα"),
];

/// Queries with the key of the first record and how dates are read.
const QUERIES: [(&str, &str, &str); 20] = [
    ("global variables 5 March 2025", "day", "5 March 2025: 2025-03-05"),
    ("global variables 3/5/2025", "day", "3/5/2025: 2025-03-05 or 2025-05-03"),
    ("show me the mail about global variables on 5 March 2025", "day", "5 March 2025: 2025-03-05"),
    ("was haben wir am 5. März 2025 über global variables gesagt", "day", "5 März 2025: 2025-03-05"),
    // Only dates.
    ("5 March 2025", "day", "5 March 2025: 2025-03-05"),
    ("2025-03-05 2024-05-03", "day", "2025-03-05; 2024-05-03"),
    ("May 2024", "other", "May 2024: 2024-05"),
    // Dates that no calendar has.
    ("31 February", "joke", ""),
    ("joke 31.2.2025", "joke", ""),
    ("joke 0000-01-01", "joke", ""),
    ("joke 1/1/1", "joke", ""),
    ("joke 99999999999999999999-01-01", "joke", ""),
    // Digits that are no dates.
    ("version 2024.1", "joke", ""),
    ("part 12-03", "joke", ""),
    // Words of a request, alone and in quotes.
    ("show me where somebody deals with the page", "chapter", ""),
    ("\"show me where\"", "chapter", ""),
    ("\"tell me about\" global variables", "joke", ""),
    ("\"5 March 2025\" joke", "", ""),
    // Mixed scripts.
    ("отчёт 東京 harbour ελλάδα", "mixed", ""),
    ("show me отчёт о гавани 5 March 2025", "mixed", "5 March 2025: 2025-03-05"),
];

/// Answer of one way in: keys in their order, and how dates were read.
type Found = (Vec<String>, String);

fn tool_answer(answer: &Value) -> Found {
    let results = answer["results"].as_array().unwrap_or_else(|| panic!("{answer}"));
    let key = |result: &Value| result["id"].as_str().unwrap().rsplit(':').next().unwrap().to_owned();
    (results.iter().map(key).collect(), answer["dates"].as_str().unwrap_or_default().to_owned())
}

fn over_mcp(server: &HttpServer, query: &str) -> Value {
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "search", "arguments": {"query": query, "limit": 10}}});
    post(&server.address, "/mcp", &[], &message.to_string()).json()["result"]["structuredContent"].clone()
}

fn over_v1(server: &HttpServer, query: &str) -> Found {
    let target = format!("/v1/search?q={}&syntax=operators&limit=10", encoded(query));
    let answer = get(&server.address, &target).json();
    let hits = answer["data"].as_array().unwrap_or_else(|| panic!("{query} {answer}"));
    let keys = hits.iter().map(|hit| hit["record_key"].as_str().unwrap().to_owned()).collect();
    (keys, answer["meta"]["dates"].as_str().unwrap_or_default().to_owned())
}

fn on_the_page(server: &HttpServer, query: &str) -> Found {
    let page = ask(&server.address, "GET", &format!("/?q={}", encoded(query)), &["accept: text/html"]).text;
    let pieces = |start: &str| -> Vec<String> {
        let pieces = page.split(start).skip(1);
        pieces.map(|piece| piece.split('<').next().unwrap().to_owned()).collect()
    };
    let handles = pieces("<code class=\"handle soft\">");
    let keys = handles.iter().map(|handle| handle.rsplit(':').next().unwrap().to_owned()).collect();
    // A note on the page is a sentence.
    let dates = pieces("Dates: ").pop().unwrap_or_default();
    (keys, dates.trim_end_matches('.').to_owned())
}

fn on_the_command_line(store: &Path, query: &str) -> Value {
    let output = fetchwell(["search", "--store", text(store), "--limit", "10", "--json", "--", query]);
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn each_way_in_gives_the_same_records_and_reads_dates_alike() {
    let folder = tempfile::tempdir().unwrap();
    let store = new_store(&folder);
    let line = |(stream, key, day, body): &(&str, &str, &str, &str)| {
        let emitted_at = format!("{day}T12:00:00Z");
        json!({"stream": stream, "key": key, "data": {"body": body}, "emitted_at": emitted_at}).to_string()
    };
    import_records(&store, "c", &RECORDS.iter().map(line).collect::<Vec<_>>().join("\n"));
    let server = HttpServer::start(["--store", text(&store)]);
    for (query, first, dates) in QUERIES {
        let found = tool_answer(&over_mcp(&server, query));
        assert_eq!((found.0.first().map_or("", String::as_str), found.1.as_str()), (first, dates), "{query}");
        assert_eq!(over_v1(&server, query), found, "/v1: {query}");
        assert_eq!(on_the_page(&server, query), found, "page: {query}");
        assert_eq!(tool_answer(&on_the_command_line(&store, query)), found, "command: {query}");
    }
    // Ten thousand words: the beginning is searched, and a warning says so.
    let long = format!("東京都 harbour {}", "show me 1/1/1 ".repeat(5_000));
    let answers = [over_mcp(&server, &long), on_the_command_line(&store, &long)];
    for answer in &answers {
        assert_eq!(tool_answer(answer).0[0], "mixed", "{answer}");
        assert!(answer["warnings"].to_string().contains("longer than 1000 characters"), "{answer}");
    }
    assert_eq!(tool_answer(&answers[0]), tool_answer(&answers[1]));
    let target = format!("/?q={}", encoded(long.get(..2_000).unwrap()));
    assert!(ask(&server.address, "GET", &target, &["accept: text/html"]).text.contains(":mixed"));
}

/// Documents have no time but that of their import, so that their searches read no dates.
#[tokio::test]
async fn searches_of_documents_weigh_words_of_requests_and_read_no_dates() {
    let site = Site::new();
    let docs = Model::over_stdio(["--profile", "docs", "--store", text(&site.store())]).await;
    for (query, first) in [
        ("JWT tokens", "references/authentication.md"),
        ("show me the document where somebody deals with JWT tokens", "references/authentication.md"),
        ("show me the document about queue 7 of 24 December 2025", "topic-7.md"),
        ("queue 7 today", "topic-7.md"),
    ] {
        let api = site.found(&json!({"query": query, "project_id": "handbook", "top_k": 5}));
        let paths = |answer: &Value, name: &str| -> Vec<String> {
            let results = answer["results"].as_array().unwrap_or_else(|| panic!("{answer}"));
            results.iter().map(|result| result[name].as_str().unwrap_or_default().to_owned()).collect()
        };
        let tool =
            docs.call("search_docs", json!({"query": query, "project_id": "handbook", "top_k": 5})).await;
        let found = paths(&api, "document_path");
        assert_eq!(found[0], first, "{query} {api}");
        assert_eq!(paths(&tool, "path"), found, "{query}");
        assert!(api.get("dates").is_none() && tool.get("dates").is_none(), "{api} {tool}");
    }
}
