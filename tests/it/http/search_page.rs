//! The search page of a server for this machine.

use serde_json::json;

use crate::support::{Answer, HttpServer, ask, demo_store, import_records, text};

/// Requests a page as a browser does.
fn page(server: &HttpServer, target: &str) -> Answer {
    ask(&server.address, "GET", target, &["accept: text/html,application/xhtml+xml"])
}

/// Returns the handles of a page of results, in their order.
fn handles(page: &str) -> Vec<String> {
    let pieces = page.split("<code class=\"handle soft\">").skip(1);
    pieces.map(|piece| piece.split("</code>").next().unwrap().replace("&amp;", "&")).collect()
}

#[test]
fn the_page_lists_the_results_of_the_tool_in_the_same_order() {
    let (_folder, store) = demo_store();
    let server = HttpServer::start(["--store", text(&store)]);
    let start = page(&server, "/");
    assert!(start.status == 200 && start.text.len() < 60_000, "{}", start.text.len());
    assert!(start.text.contains("Every user and program of this machine can open this page."));
    assert!(start.text.contains("fetchwell token new"), "{}", start.text);
    for query in ["invoice", "overdue invoice", "since:20y stream:messages"] {
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {"name": "search", "arguments": {"query": query, "limit": 10}}});
        let answer = crate::support::post(&server.address, "/mcp", &[], &message.to_string()).json();
        let results = answer["result"]["structuredContent"]["results"].as_array().unwrap().clone();
        let ids: Vec<&str> = results.iter().map(|result| result["id"].as_str().unwrap()).collect();
        assert!(!ids.is_empty(), "{answer}");
        let shown = page(&server, &format!("/?q={}", query.replace(' ', "+").replace(':', "%3A")));
        let shown = handles(&shown.text);
        assert_eq!(shown[..ids.len()], ids, "{query}");
    }
    let found = page(&server, "/?q=invoice");
    assert!(found.text.contains("<mark>"), "{}", found.text);
    assert!(found.text.contains("value=\"invoice\"") && found.text.len() < 60_000);
}

#[test]
fn the_start_message_has_the_address_of_a_served_page() {
    let (folder, _store) = demo_store();
    let check = |settings: &str, expect: Option<&str>| {
        let config = folder.path().join("fetchwell.toml");
        std::fs::write(&config, format!("{settings}[[source]]\nname = \"demo\"\nstore = \"demo.db\"\n"))
            .unwrap();
        let server = HttpServer::start(["--config", text(&config)]);
        let log = server.log();
        let page = log.split_once(", and a search page at ").map(|(_, page)| page);
        let page = page.map(|page| page.split(';').next().unwrap().replace(&server.address, "ADDRESS"));
        assert_eq!(page.as_deref(), expect, "{log}");
    };
    let auth = format!("[[auth.token]]\nname = \"ann\"\nsha256 = \"{:064x}\"\n", 10);
    check("", Some("http://ADDRESS/"));
    check(&auth, None);
    let public = "public_url = \"https://records.example.com\"\n";
    check(&format!("{public}{auth}"), Some("https://records.example.com/"));
}

#[test]
fn facets_narrow_a_search_and_cursors_continue_it() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store.db");
    for connection in ["cin_one", "cin_two"] {
        let line = |number: usize| {
            let stream = if number.is_multiple_of(2) { "even" } else { "odd" };
            let data = json!({"subject": format!("{connection} parcel {number}")});
            let emitted_at = if number < 30 { "2001-01-01T00:00:00Z" } else { "2026-11-01T00:00:00Z" };
            json!({"stream": stream, "key": format!("k{number:02}"), "data": data, "emitted_at": emitted_at})
                .to_string()
                + "\n"
        };
        import_records(&store, connection, &(0..60).map(line).collect::<String>());
    }
    let server = HttpServer::start(["--store", text(&store)]);
    let walk = |first: &str| {
        let (mut target, mut found) = (first.to_owned(), Vec::new());
        for _ in 0..20 {
            let page = page(&server, &target);
            assert_eq!(page.status, 200, "{target}: {}", page.text);
            found.extend(handles(&page.text));
            let Some((before, _)) = page.text.split_once("\" rel=\"next\"") else { break };
            let next = before.rsplit_once("href=\"").unwrap().1.replace("&amp;", "&");
            // The back button shows a page again, with the same records.
            assert_eq!(handles(&self::page(&server, &target).text), handles(&page.text));
            target = next;
        }
        let mut sorted = found.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted.len(), found.len(), "{first}: a record is listed twice");
        found
    };
    assert_eq!(walk("/?q=parcel").len(), 120);
    let one = walk("/?q=parcel&account=cin_one");
    assert!(one.len() == 60 && one.iter().all(|handle| handle.starts_with("cin_one/")), "{one:?}");
    let even = walk("/?q=parcel&stream=even");
    assert!(even.len() == 60 && even.iter().all(|handle| handle.contains("/even:")), "{even:?}");
    assert_eq!(walk("/?account=cin_two").len(), 60, "an account is browsed without words");
    assert_eq!(walk("/?q=parcel&time=10y").len(), 120, "an unknown age is ignored");
    assert_eq!(page(&server, "/?q=parcel&account=nowhere").status, 404);
    assert_eq!(page(&server, "/?q=parcel&kind=nowhere").status, 404);
    for cursor in ["x", "fw1_x", "AAAA"] {
        let refused = page(&server, &format!("/?q=parcel&cursor={cursor}"));
        assert!(refused.status == 400 && refused.text.contains("Search again"), "{refused:?}");
    }
}

#[test]
fn hostile_queries_and_records_are_text() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store.db");
    let hostile = "parcel <script>alert(1)</script>\"'&<img src=x onerror=alert(1)>";
    let line = json!({"stream": "notes", "key": hostile, "data": {"subject": hostile, "body": hostile}});
    import_records(&store, "cin_one", &line.to_string());
    let server = HttpServer::start(["--store", text(&store)]);
    let target = "/?q=parcel+%3Cscript%3Ealert(1)%3C/script%3E&stream=%3Cb%3E&kind=&account=%22%3E%3Cb%3E";
    for target in ["/?q=parcel", "/", target, "/?account=cin_one"] {
        let page = page(&server, target);
        assert!(
            !page.text.contains("<script>alert") && !page.text.contains("<img"),
            "{target}: {}",
            page.text
        );
        assert!(!page.text.contains("<b>"), "{target}: {}", page.text);
    }
    let policy = page(&server, "/?q=parcel");
    let policy = policy.header("content-security-policy").unwrap();
    assert!(policy.contains("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
}
