//! Words of requests, and dates in plain text.

use fetchwell_core::handle::Handle;
use fetchwell_core::record::{Hit, HitId};
use fetchwell_source::SearchQuery;
use fetchwell_tools::parse_query;
use serde_json::{Value, json};

use crate::support::stores::{new_store, open_store};
use crate::support::{fetchwell, import_records, stdout};

const NOW: &str = "2026-11-28T12:00:00[UTC]";

/// Returns a store with records of a stream, a key, a day and a text each.
fn store(records: &[(&str, &str, &str, &str)]) -> (tempfile::TempDir, std::path::PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = new_store(&folder);
    let line = |(stream, key, day, body): &(&str, &str, &str, &str)| {
        let emitted_at = format!("{day}T09:00:00Z");
        json!({"stream": stream, "key": key, "data": {"body": body}, "emitted_at": emitted_at}).to_string()
    };
    import_records(&path, "c", &records.iter().map(line).collect::<Vec<_>>().join("\n"));
    (folder, path)
}

/// Returns the keys of the hits of a query in their order.
async fn keys(path: &std::path::Path, query: &str) -> Vec<String> {
    let parsed = parse_query(query, &NOW.parse().unwrap());
    let query = parsed.apply(SearchQuery::new("", 20)).unwrap();
    let page = open_store(path).search(&query).await.unwrap();
    let key = |hit: &Hit| match &hit.id {
        HitId::Record(address) => address.record.to_string(),
        HitId::Opaque(_) | HitId::Nameless => panic!("{hit:?}"),
    };
    page.hits.iter().map(key).collect()
}

/// Texts in which words of requests are frequent, and the one that is asked for.
fn request_records() -> Vec<(&'static str, &'static str, &'static str, &'static str)> {
    let day = "2026-01-01";
    let mut records = vec![
        (
            "notes",
            "chapter",
            day,
            "Show me where somebody deals with the page, find the mail and tell me about the commit",
        ),
        ("notes", "lease", day, "The lease of the house beside the harbour ends in spring"),
        (
            "messages",
            "asks",
            day,
            "Who can find it? Tell me, I want to know what somebody said about the mail",
        ),
        ("commits", "lines", day, "Update the handles of lines"),
    ];
    records.extend(
        ["a", "b", "c", "d"].map(|key| ("notes", key, day, "Other words of a text without any of it")),
    );
    records
}

#[tokio::test]
async fn words_of_a_request_do_not_hide_what_it_is_about() {
    let (_folder, path) = store(&request_records());
    for (query, expect) in [
        ("Show me the commit where somebody deals with update handles lines", "lines"),
        ("can you find the mail in which somebody tells me about the harbour lease", "lease"),
        ("harbour lease, where did somebody mention it?", "lease"),
        // Words of requests alone, in quotes and as identifiers are searched as they are.
        ("show me where somebody deals with the page", "chapter"),
        ("\"somebody said about\" harbour", "asks"),
        ("tell me what somebody said about the mail", "asks"),
    ] {
        assert_eq!(keys(&path, query).await.first().map(String::as_str), Some(expect), "{query}");
    }
    let many = "show me the mail about harbour ".repeat(2_000);
    assert_eq!(keys(&path, &many).await[0], "lease");
}

#[tokio::test]
async fn a_noun_of_a_kind_raises_its_streams() {
    let day = "2026-01-01";
    let text = "the lease of the harbour";
    let (_folder, path) = store(&[("notes", "note", day, text), ("messages", "mail", day, text)]);
    for (query, expect) in
        [("find the mail about the harbour", "mail"), ("find the note about the harbour", "note")]
    {
        assert_eq!(keys(&path, query).await[0], expect, "{query}");
    }
}

/// Records of which one is of the day that is asked for.
fn dated_records() -> Vec<(&'static str, &'static str, &'static str, &'static str)> {
    vec![
        ("messages", "day", "2025-03-05", "Global variables are evil"),
        ("messages", "next", "2025-03-20", "Global variables are fine"),
        ("messages", "other", "2024-05-03", "Global variables are old"),
        ("messages", "told", "2023-01-01", "Minutes of 5 March 2025, number 3 of 5"),
        ("messages", "topic", "2023-01-02", "Global variables, global variables"),
        ("messages", "yesterday", "2026-11-27", "Lunch"),
    ]
}

#[tokio::test]
async fn a_date_raises_records_of_its_time_and_excludes_none() {
    let (_folder, path) = store(&dated_records());
    for query in [
        "global variables 2025-03-05",
        "global variables 5 March 2025",
        "global variables March 5, 2025",
        "global variables 5.3.2025",
        "global variables 3/5/2025",
        "global variables 5. März 2025",
        "global variables 5 de marzo de 2025",
        "what did we say about global variables on 5 March 2025",
    ] {
        let found = keys(&path, query).await;
        assert_eq!(found[0], "day", "{query} {found:?}");
        for key in ["next", "other", "topic"] {
            assert!(found.contains(&key.to_owned()), "{query} {found:?}");
        }
    }
    let found = keys(&path, "global variables March 2025").await;
    assert!(found[..2].contains(&"day".to_owned()) && found[..2].contains(&"next".to_owned()), "{found:?}");
    assert_eq!(keys(&path, "minutes 5 March 2025").await[0], "told", "words of dates match texts");
    // Of a time alone, the newest records are found.
    assert_eq!(keys(&path, "what did I write yesterday").await[0], "yesterday");
    assert_eq!(keys(&path, "yesterday").await, ["yesterday"]);
    for query in ["31 February", "1/1/1", "version 2024.1", "part 12-03"] {
        assert!(!keys(&path, query).await.contains(&"yesterday".to_owned()), "{query}");
    }
}

#[tokio::test]
async fn records_of_the_day_are_found_behind_many_better_ones() {
    let mut records: Vec<(&str, String, String, &str)> = (0..600)
        .map(|at| ("messages", format!("m{at}"), format!("20{:02}-01-01", at % 20), "harbour harbour lease"))
        .collect();
    let long = "a lease, and many other words of a long text that is about something else ".repeat(20);
    records.push(("messages", "day".to_owned(), "2025-03-05".to_owned(), &long));
    let records: Vec<_> =
        records.iter().map(|(stream, key, day, body)| (*stream, key.as_str(), day.as_str(), *body)).collect();
    let (_folder, path) = store(&records);
    let found = keys(&path, "harbour lease 5 March 2025").await;
    assert!(found[..10].contains(&"day".to_owned()), "{found:?}");
    assert!(!keys(&path, "harbour lease").await.contains(&"day".to_owned()));
}

#[test]
fn the_answer_says_how_a_date_was_read() {
    let (_folder, path) = store(&dated_records());
    let search = |query: &str| -> Value {
        let output = fetchwell(["search", query, "--json", "--store", path.to_str().unwrap()]);
        serde_json::from_str(&stdout(&output)).unwrap()
    };
    let found = search("global variables 3/5/2025");
    assert_eq!(found["dates"], "3/5/2025: 2025-03-05 or 2025-05-03");
    let first: Handle = found["results"][0]["id"].as_str().unwrap().parse().unwrap();
    assert_eq!(first.address().record.as_str(), "day");
    assert_eq!(search("global variables").get("dates"), None);
}
