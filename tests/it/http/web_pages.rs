//! Records, sources, projects and answers of tools on the web page of a server for this machine.

use std::fs;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

use crate::support::{Answer, HttpServer, ask, fetchwell, import_records, post, stdout, text};

/// Requests a page as a browser does.
fn page(server: &HttpServer, target: &str) -> Answer {
    ask(&server.address, "GET", target, &["accept: text/html,application/xhtml+xml"])
}

/// Imports records of one stream, each a key and fields.
fn store_of(records: &[(&str, Value)]) -> (tempfile::TempDir, HttpServer) {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store.db");
    let line = |(key, data): &(&str, Value)| {
        let emitted_at = data["date"].as_str().unwrap_or("2026-01-01T00:00:00Z");
        json!({"stream": "notes", "key": key, "data": data, "emitted_at": emitted_at}).to_string() + "\n"
    };
    import_records(&store, "cin_one", &records.iter().map(line).collect::<String>());
    let server = HttpServer::start(["--store", text(&store)]);
    (folder, server)
}

/// Returns the payload of a tool as MCP sends it.
fn payload(server: &HttpServer, tool: &str, arguments: &Value) -> String {
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": tool, "arguments": arguments}});
    let answer = post(&server.address, "/mcp", &[], &message.to_string()).json();
    answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[test]
fn a_mail_is_shown_with_its_conversation_and_neighbors() {
    let mail = |subject: &str, day: u8, thread: &str| {
        json!({"subject": subject, "from": "Ann <ann@example.com>", "date": format!("2026-03-{day:02}T10:00:00Z"),
            "thread_id": thread, "body": format!("Text of {subject}.\n\n> quoted\nhttps://example.com/?a=1&b=2")})
    };
    let (_folder, server) = store_of(&[
        ("m1", mail("First", 1, "t1")),
        ("m2", mail("Second", 2, "t2")),
        ("m3", mail("Third", 3, "t1")),
    ]);
    let shown = page(&server, "/records/cin_one/notes:m1");
    assert_eq!(shown.status, 200);
    for part in [
        "<h1 dir=\"auto\" lang=\"\">First</h1>",
        "Ann &lt;ann@example.com&gt;",
        "<span class=\"soft\">&gt; quoted\n</span>",
        "href=\"https://example.com/?a=1&amp;b=2\"",
        "Conversation",
        "href=\"/records/cin_one/notes:m3\"",
        "data-copy=\"cin_one/notes:m1\"",
    ] {
        assert!(shown.text.contains(part), "{part}: {}", shown.text);
    }
    let (conversation, rest) =
        shown.text.split_once("class=\"conversation\"").unwrap().1.split_once("</ol>").unwrap();
    assert!(!conversation.contains("notes:m2") && conversation.contains("<strong>"), "{conversation}");
    assert!(rest.contains("href=\"/records/cin_one/notes:m2\"") == rest.contains("Next: "), "{rest}");
    let unknown = page(&server, "/records/cin_one/notes:nothing");
    assert!(unknown.status == 404 && unknown.text.contains("cannot be shown"), "{unknown:?}");
    for bad in ["/records/x", "/records/cin_one/notes:", "/records/%00/x/y"] {
        assert_eq!(page(&server, bad).status, 404, "{bad}");
    }
}

#[test]
fn the_text_view_and_the_model_page_have_what_a_model_reads() {
    let long: String = (0..6_000).map(|line| format!("Line {line} of <many> & more.\n")).collect();
    let (_folder, server) = store_of(&[
        ("short", json!({"title": "Short", "body": "A <b>text</b> with \"quotes\" & more."})),
        ("long", json!({"title": "Long", "body": long})),
    ]);
    for id in ["cin_one/notes:short", "cin_one/notes:long", "cin_one/notes/long/p1"] {
        let sent = payload(&server, "fetch", &json!({"id": id}));
        let text = serde_json::from_str::<Value>(&sent).unwrap()["text"].as_str().unwrap().to_owned();
        let shown = page(&server, &format!("/records/{id}?view=text"));
        assert!(shown.text.contains(&format!(">\n{}</pre>", escaped(&text))), "{id}");
        let encoded = utf8_percent_encode(id, NON_ALPHANUMERIC);
        let model = page(&server, &format!("/model?tool=fetch&value={encoded}"));
        assert!(model.text.contains(&format!("\n{}</pre>", escaped(&sent))), "{id}");
        assert!(model.text.contains("of 48,000"), "{id}");
    }
    for (arguments, query, budget) in [
        (json!({"query": "text many"}), "value=text+many", "of 1,800"),
        (json!({"query": "text many", "limit": 20}), "value=text+many&limit=20", "of 5,120"),
    ] {
        let sent = payload(&server, "search", &arguments);
        let model = page(&server, &format!("/model?tool=search&{query}"));
        assert!(model.text.contains(&format!("\n{}</pre>", escaped(&sent))), "{arguments}: {}", model.text);
        assert!(model.text.contains(budget), "{}", model.text);
    }
    let refused = page(&server, "/model?tool=fetch&value=x%3Cscript%3E");
    assert!(
        refused.text.contains("Answer: an error") && refused.text.contains("invalid_handle"),
        "{refused:?}"
    );
    assert!(!refused.text.contains("x<script>"), "{refused:?}");
    assert_eq!(page(&server, "/model").status, 200);
}

#[test]
fn large_records_make_pages_of_bounded_size() {
    let fields: serde_json::Map<String, Value> =
        (0..10_000).map(|number| (format!("field_{number}"), json!(format!("value {number}")))).collect();
    let rows: Vec<Value> = (0..5_000).map(|number| json!({"n": number, "text": "x".repeat(60)})).collect();
    let (_folder, server) = store_of(&[
        ("fields", Value::Object(fields)),
        ("rows", json!({"title": "Rows", "rows": rows})),
        ("long", json!({"title": "Long", "body": "A line of words.\n".repeat(200_000)})),
    ]);
    for (key, note) in [
        ("fields", "9,900 more fields are not shown here"),
        ("rows", "The first 200 of 5000 rows"),
        ("long", "Page 1 of "),
    ] {
        let shown = page(&server, &format!("/records/cin_one/notes:{key}"));
        assert!(shown.status == 200 && shown.text.len() < 600_000, "{key}: {} bytes", shown.text.len());
        assert!(shown.text.contains(note), "{key}");
    }
    let last = page(&server, "/records/cin_one/notes:long?page=99999");
    assert!(last.status == 200 && last.text.contains("Previous page") && !last.text.contains("Next page"));
}

#[test]
fn sources_and_projects_are_listed_with_their_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let (store, docs) = (folder.path().join("store.db"), folder.path().join("handbook"));
    fs::create_dir(&docs).unwrap();
    for number in 0..3 {
        let text = format!("# Page {number}\n\n{}", "Some <words> of the handbook.\n\n".repeat(200));
        fs::write(docs.join(format!("page{number}.md")), text).unwrap();
    }
    let line = json!({"stream": "notes", "key": "n1", "data": {"title": "One"}, "emitted_at": "2026-05-06T07:08:00Z"});
    import_records(&store, "cin_one", &line.to_string());
    stdout(&fetchwell([
        "project",
        "create",
        "handbook",
        "--name",
        "Team <handbook>",
        "--store",
        text(&store),
    ]));
    stdout(&fetchwell(["import", "docs", text(&docs), "--project", "handbook", "--store", text(&store)]));
    let server = HttpServer::start(["--store", text(&store)]);
    let sources = page(&server, "/sources");
    assert_eq!(sources.status, 200);
    for part in
        ["cin_one", "handbook", "6 May 2026, 07:08 UTC", "href=\"/?account=cin_one&amp;stream=notes\""]
    {
        assert!(sources.text.contains(part), "{part}: {}", sources.text);
    }
    let projects = page(&server, "/projects");
    assert!(projects.text.contains("Team &lt;handbook&gt;"), "{}", projects.text);
    let documents = page(&server, "/projects/handbook");
    assert!(
        documents.text.contains("page2.md") && documents.text.contains("3 documents"),
        "{}",
        documents.text
    );
    let chunks =
        documents.text.split("href=\"/projects/handbook/").nth(1).unwrap().split('"').next().unwrap();
    let chunks = page(&server, &format!("/projects/handbook/{chunks}"));
    assert!(
        chunks.text.contains("id=\"chunk-0\"") && chunks.text.contains("&lt;words&gt;"),
        "{}",
        chunks.text
    );
    let record = documents.text.split("href=\"/records/handbook/").nth(1).unwrap().split('"').next().unwrap();
    let record = page(&server, &format!("/records/handbook/{record}"));
    assert!(
        record.text.contains(">Chunks</a>") && record.text.contains("class=\"markdown\""),
        "{}",
        record.text
    );
    for missing in ["/projects/nowhere", "/projects/handbook/x", "/projects/%3Cb%3E/x"] {
        let answer = page(&server, missing);
        assert!(answer.status == 404 && !answer.text.contains("<b>"), "{missing}: {answer:?}");
    }
}
