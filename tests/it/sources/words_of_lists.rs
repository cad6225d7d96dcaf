//! Lists by words and fields at once: `q` of `query_records`, on each kind of store.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::support::stores::new_store;
use crate::support::{CREDENTIAL, FakeServer, Model, Reply, connect, import_records, text};

/// Number of invoices, more than several pages.
const INVOICES: usize = 260;

fn invoice(number: usize, customer: &str) -> String {
    let status = if number.is_multiple_of(4) { "paid" } else { "open" };
    let draft = if number.is_multiple_of(5) { "A draft." } else { "" };
    let note = format!("The invoices of {customer}. {draft}");
    let data = json!({"note": note, "status": status, "amount": number * 37 % 101,
        "number": format!("INV-2026-{number:03}")});
    json!({"stream": "invoices", "key": format!("k{number:03}"), "data": data}).to_string()
}

fn customer(number: usize) -> &'static str {
    ["Acme Corp", "Globex", "Acme & Globex"][number % 3]
}

fn store_of_invoices() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let store = new_store(&folder);
    let lines: Vec<String> = (0..INVOICES).map(|number| invoice(number, customer(number))).collect();
    import_records(&store, "cin_books", &lines.join("\n"));
    (folder, store)
}

fn keys(page: &Value) -> Vec<String> {
    let records = page["records"].as_array().unwrap_or_else(|| panic!("{page}"));
    records
        .iter()
        .map(|record| record["id"].as_str().unwrap().rsplit([':', '/']).next().unwrap().to_owned())
        .collect()
}

/// Returns the keys of all pages of a list. Each page has the count of all records.
async fn walk(model: &Model, arguments: &Value) -> Vec<String> {
    let page = model.call("query_records", arguments.clone()).await;
    let count = page["count"].clone();
    let walked = [keys(&page), rest(model, page).await].concat();
    assert_eq!(count, json!(walked.len()), "{arguments}");
    walked
}

/// Returns the keys of all pages after a page.
async fn rest(model: &Model, mut page: Value) -> Vec<String> {
    let mut walked = Vec::new();
    while let Some(cursor) = page.get("next_cursor") {
        page = model.call("query_records", json!({"cursor": cursor, "limit": 25})).await;
        walked.extend(keys(&page));
    }
    walked
}

#[tokio::test]
async fn lists_by_words_have_each_record_once_in_the_order_of_the_list() {
    let (_folder, store) = store_of_invoices();
    let model = Model::over_stdio(["--store", text(&store)]).await;
    let is_draft = |number: usize| number.is_multiple_of(5);
    type IsListed = Box<dyn Fn(usize) -> bool>;
    let cases: [(&str, Value, IsListed); 7] = [
        ("acme", json!({"status": "open"}), Box::new(|number| number % 3 != 1 && !number.is_multiple_of(4))),
        ("ACME invoice globex", json!({}), Box::new(|number| number % 3 == 2)),
        (
            "globex -draft",
            json!({"amount": {"lt": 50}}),
            Box::new(move |number| !number.is_multiple_of(3) && !is_draft(number) && number * 37 % 101 < 50),
        ),
        ("\"acme corp\"", json!({}), Box::new(|number| number.is_multiple_of(3))),
        ("\"corp acme\"", json!({}), Box::new(|_| false)),
        ("INV-2026-017", json!({}), Box::new(|number| number == 17)),
        ("INV-2026 draft", json!({"status": ["open", "paid"]}), Box::new(is_draft)),
    ];
    for (q, filter, is_listed) in cases {
        let mut expect: Vec<usize> = (0..INVOICES).filter(|number| is_listed(*number)).collect();
        expect.reverse();
        let written = |numbers: &[usize]| -> Vec<String> {
            numbers.iter().map(|number| format!("k{number:03}")).collect()
        };
        let mut arguments =
            json!({"stream": "invoices", "q": q, "filter": filter, "count": "exact", "limit": 25});
        assert_eq!(walk(&model, &arguments).await, written(&expect), "{q}");
        arguments["sort"] = json!("-amount");
        expect.sort_by_key(|number| std::cmp::Reverse((number * 37 % 101, *number)));
        assert_eq!(walk(&model, &arguments).await, written(&expect), "{q}");
    }
    // Changes are found at once, also between two pages.
    let first = json!({"stream": "invoices", "q": "acme", "count": "exact", "limit": 25, "order": "asc"});
    let page = model.call("query_records", first.clone()).await;
    let lines = [invoice(900, "Acme"), invoice(0, "Initech")].join("\n");
    import_records(&store, "cin_books", &lines);
    let (before, later) = (keys(&page), rest(&model, page).await);
    assert_eq!((before.len() + later.len(), later.last().map(String::as_str)), (174, Some("k900")));
    let again = walk(&model, &first).await;
    assert_eq!((again.len(), again[0].as_str()), (173, "k002"));
}

#[tokio::test]
async fn empty_lists_by_words_say_which_word_no_record_has() {
    let (_folder, store) = store_of_invoices();
    let model = Model::over_stdio(["--store", text(&store)]).await;
    for (arguments, part) in [
        (json!({"q": "acme zebra"}), "No record of `invoices` has `zebra`."),
        (json!({"q": "\"corp acme\" globex"}), "has `corp acme`."),
        (json!({"q": "INV-2026-001 INV-2026-002"}), "no record has all"),
        (json!({"q": "acme", "filter": {"status": "void"}}), "none of these passes `filter`."),
        (
            json!({"q": "INV-2026-004", "filter": {"status": "open"}}),
            "Records have the words of `q`, none of these",
        ),
        (json!({"q": "INV-2026-005 -draft"}), "with the words of `q` have `draft`, which it excludes"),
    ] {
        let mut arguments = arguments;
        arguments["stream"] = json!("invoices");
        let page = model.call("query_records", arguments).await;
        assert_eq!(page["records"], json!([]));
        assert!(page["hint"].as_str().unwrap().contains(part), "{page}");
    }
    let first = model.call("query_records", json!({"stream": "invoices", "query": "acme", "limit": 5})).await;
    let cursor = &first["next_cursor"];
    let refused = |arguments: Value| model.refusal("query_records", arguments);
    for (arguments, code) in [
        (json!({"stream": "invoices", "q": "globex", "cursor": cursor}), "invalid_cursor"),
        (json!({"stream": "invoices", "q": "acme", "changes_since": "beginning"}), "invalid_argument"),
        (json!({"stream": "invoices", "q": "x".repeat(1_001)}), "invalid_argument"),
    ] {
        let error = refused(arguments).await;
        assert_eq!(error["code"], code, "{error}");
    }
    for (q, problem) in [
        ("acme from:ann", "`from:` is an operator of `search`, not of a list. Use `filter` on"),
        ("acme stream:invoices", "arguments of their own"),
        ("acme since:3d", "`since:`, `after:` or `before:` is an operator of `search`"),
        ("acme -from:ann", "`-from:ann` cannot be read"),
        ("-acme", "`-acme` cannot be read: there are only words to exclude"),
        ("?!", "no word that records must have"),
        (&"word ".repeat(60), "more than 50 words and phrases"),
        ("acme -2026", "Write `-\"2026\"` to exclude it"),
        ("acme -.net", "excludes nothing"),
    ] {
        let error = refused(json!({"stream": "invoices", "q": q})).await;
        assert_eq!(error["code"], "invalid_argument", "{error}");
        assert!(error["message"].as_str().unwrap().contains(problem), "{q}: {error}");
    }
}

#[tokio::test]
async fn many_records_with_a_word_are_listed_in_order() {
    const COUNT: usize = 20_600;
    /// Number of the last records, which do not have the word.
    const OTHERS: usize = 300;
    let folder = tempfile::tempdir().unwrap();
    let store = new_store(&folder);
    let line = |number: usize| {
        let note = if number < COUNT - OTHERS { "bulk" } else { "other" };
        json!({"stream": "s", "key": format!("k{number:05}"), "data": {"note": note, "n": number}})
            .to_string()
    };
    let lines: Vec<String> = (0..COUNT).map(line).collect();
    import_records(&store, "cin_books", &lines.join("\n"));
    let model = Model::over_stdio(["--store", text(&store)]).await;
    let first = json!({"stream": "s", "q": "bulk", "count": "exact", "limit": 3});
    let page = model.call("query_records", first).await;
    assert_eq!(
        (page["count"].as_u64(), keys(&page)),
        (Some(20_300), ["k20299", "k20298", "k20297"].map(str::to_owned).to_vec())
    );
    let page = model.call("query_records", json!({"cursor": page["next_cursor"]})).await;
    assert_eq!(keys(&page)[0], "k20296");
    let few = json!({"stream": "s", "q": "bulk", "filter": {"n": {"lt": 2}}, "count": "exact"});
    let page = model.call("query_records", few).await;
    assert_eq!(
        (page["count"].as_u64(), keys(&page)),
        (Some(2), ["k00001", "k00000"].map(str::to_owned).to_vec())
    );
}

#[tokio::test]
async fn a_record_server_cannot_list_by_words() {
    let (folder, store) = store_of_invoices();
    let server = FakeServer::start(|_| Reply::Json(200, json!({"data": [], "has_more": false}).to_string()));
    connect(folder.path(), &server.url, CREDENTIAL);
    let alone = Model::over_stdio(["--provider-url", &server.url, "--cache-root", text(folder.path())]).await;
    let refused = alone.refusal("query_records", json!({"stream": "invoices", "q": "acme"})).await;
    assert_eq!(refused["code"], "not_supported", "{refused}");
    assert!(refused["hint"].as_str().unwrap().contains("`search` with `streams`"), "{refused}");
    let config = folder.path().join("fetchwell.toml");
    let sources = format!(
        "[[source]]\nname = \"books\"\nstore = \"{}\"\n[[source]]\nname = \"far\"\nurl = \"{}\"\ncache_root = \".\"\n",
        store.display(),
        server.url
    );
    std::fs::write(&config, sources).unwrap();
    let model = Model::over_stdio(["--config", text(&config)]).await;
    let page = model.call("query_records", json!({"stream": "invoices", "q": "acme", "limit": 2})).await;
    assert_eq!(keys(&page).len(), 2, "{page}");
    assert_eq!(page["unavailable"][0]["source"], "far", "{page}");
    assert_eq!(page["unavailable"][0]["code"], "not_supported", "{page}");
}
