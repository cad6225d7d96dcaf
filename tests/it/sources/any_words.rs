//! Searches of a record server that returns only records with all words of a query.

use std::collections::BTreeSet;

use fetchwell_core::record::{Coverage, Hit, HitId};
use fetchwell_source::{Purpose, SearchMode, SearchPage, SearchQuery, SearchText};
use serde_json::{Value, json};

use crate::support::remote::Remote;
use crate::support::{Reply, Request};

/// Records by key, with their text.
type Corpus = Vec<(String, String)>;

fn corpus(texts: &[(&str, &str)]) -> Corpus {
    texts.iter().map(|(key, text)| ((*key).to_owned(), (*text).to_owned())).collect()
}

/// Returns a decoded parameter of a request.
fn param(request: &Request, name: &str) -> Option<String> {
    let line = request.line.trim_start_matches("GET ");
    let url = url::Url::parse(&format!("http://x{line}")).unwrap();
    url.query_pairs().find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
}

fn words(text: &str) -> BTreeSet<String> {
    text.to_lowercase().split(|letter: char| !letter.is_alphanumeric()).map(str::to_owned).collect()
}

/// Answers as the reference server does: the newest records with the words, in pages with an offset as cursor.
fn search(
    corpus: &Corpus,
    request: &Request,
    matches: fn(&BTreeSet<String>, &BTreeSet<String>) -> bool,
) -> Reply {
    if !request.line.starts_with("GET /v1/search?") {
        return Reply::Json(404, "{}".to_owned());
    }
    let asked = words(&param(request, "q").unwrap());
    let limit: usize = param(request, "limit").unwrap().parse().unwrap();
    let start: usize = param(request, "cursor").map_or(0, |cursor| cursor.parse().unwrap());
    let found: Vec<_> = corpus.iter().filter(|(_, text)| matches(&asked, &words(text))).collect();
    let hits: Vec<Value> = found
        .iter()
        .skip(start)
        .take(limit)
        .map(|(key, text)| {
            json!({ "object": "search_result", "stream": "messages", "record_key": key,
                "connection_id": "cin_work", "display_name": "Work mail",
                "record_url": format!("/v1/streams/messages/records/{key}"), "emitted_at": "2026-04-01T00:00:00.000Z",
                "matched_fields": ["subject"], "snippet": { "field": "subject", "text": text } })
        })
        .collect();
    let end = start + hits.len();
    let has_more = end < found.len();
    let cursor = has_more.then(|| end.to_string());
    let meta = json!({ "count": found.len(), "count_accuracy": "exact", "recall": { "complete": true } });
    let body =
        json!({ "object": "list", "data": hits, "has_more": has_more, "next_cursor": cursor, "meta": meta });
    Reply::Json(200, body.to_string())
}

fn has_all(asked: &BTreeSet<String>, own: &BTreeSet<String>) -> bool {
    asked.is_subset(own)
}

fn has_any(asked: &BTreeSet<String>, own: &BTreeSet<String>) -> bool {
    !asked.is_disjoint(own)
}

fn keys(page: &SearchPage) -> Vec<&str> {
    fn key(hit: &Hit) -> &str {
        match &hit.id {
            HitId::Record(address) => address.record.as_str(),
            other => panic!("{other:?}"),
        }
    }
    page.hits.iter().map(key).collect()
}

/// Returns a search by words. Other modes read which searches the server has.
fn lexical(text: &str, limit: usize) -> SearchQuery {
    SearchQuery { mode: SearchMode::Lexical, ..SearchQuery::new(text, limit) }
}

/// Returns the query texts of all requests.
fn asked(remote: &Remote) -> Vec<String> {
    let requests = remote.server.requests();
    requests.iter().filter_map(|request| param(request, "q")).collect()
}

#[tokio::test]
async fn explanations_have_the_rank_and_the_words_of_a_server() {
    let texts = corpus(&[
        ("m1", "Moreno called about the boat"),
        ("m2", "Lease of the harbour office, Moreno & Sons"),
    ]);
    let remote = Remote::start(move |request| search(&texts, request, has_all));
    let query = SearchQuery { explains: true, ..lexical("Moreno, harbour lease 7731?", 10) };
    let page = remote.pdpp.search(&query).await.unwrap();
    assert_eq!(keys(&page), ["m2", "m1"]);
    let explanation = page.hits[0].explanation.as_deref().unwrap();
    let list = explanation.list.as_ref().unwrap();
    assert_eq!((list.rank, list.coverage_percent), (1, page.hits[0].coverage.map(Coverage::percent)));
    let words: Vec<(&str, bool)> =
        explanation.words.iter().map(|word| (word.word.as_str(), !word.matches.is_empty())).collect();
    assert_eq!(words, [("moreno", true), ("harbour", true), ("lease", true), ("7731", false)]);
    assert!(page.stages.iter().any(|stage| stage.name == "server"));
    let plain = remote.pdpp.search(&SearchQuery { explains: false, ..query }).await.unwrap();
    assert!(plain.stages.is_empty() && plain.hits.iter().all(|hit| hit.explanation.is_none()));
}

#[tokio::test]
async fn rare_words_are_asked_for_where_all_are_needed() {
    let texts = corpus(&[
        ("m1", "Moreno called about the boat"),
        ("m2", "Lease of the harbour office, Moreno & Sons"),
        ("m3", "The lease"),
        ("m4", "Harbour fees, lease included"),
        ("m5", "Holiday"),
        ("m6", "Harbour at night"),
        ("m7", "Harbour at dawn"),
    ]);
    let remote = Remote::start(move |request| search(&texts, request, has_all));
    // The last word is in no record, so that none has all.
    let query = lexical("Moreno, harbour lease 7731?", 10);
    let page = remote.pdpp.search(&query).await.unwrap();
    assert_eq!(keys(&page), ["m2", "m4", "m1", "m3", "m6", "m7"]);
    let sent: BTreeSet<String> = asked(&remote).into_iter().collect();
    let expect = ["7731", "Moreno", "Moreno, harbour lease 7731?", "harbour", "lease"];
    assert_eq!(sent, expect.map(str::to_owned).into());
    assert_eq!(remote.server.requests().len(), 5);
    assert_eq!(page.notes, ["not all words of the query are in each result"]);
    assert!(page.hits.iter().all(|hit| hit.coverage.is_some_and(|share| share < Coverage::FULL)));
    assert!(page.next.is_none() && page.count.unwrap().value == 6, "{page:?}");
}

#[tokio::test]
async fn records_with_all_words_come_first() {
    let texts = corpus(&[("m1", "harbour"), ("m2", "lease"), ("m3", "a lease in the harbour")]);
    let remote = Remote::start(move |request| search(&texts, request, has_all));
    let page = remote.pdpp.search(&lexical("harbour lease", 10)).await.unwrap();
    assert_eq!(keys(&page), ["m3", "m1", "m2"]);
    assert_eq!(page.hits[0].coverage, Some(Coverage::FULL));
    let first = remote.pdpp.search(&lexical("harbour lease", 1)).await.unwrap();
    assert_eq!((keys(&first), first.notes.len(), first.next.is_none()), (vec!["m3"], 0, true));
}

#[tokio::test]
async fn a_walk_shows_each_record_once() {
    // 300 records with one of two words each, 30 with both, and none with all three.
    let text = |number: usize| match number % 11 {
        0 => "harbour and lease",
        _ if number < 150 => "harbour",
        _ => "lease",
    };
    let texts: Corpus = (0..330).map(|number| (format!("m{number}"), text(number).to_owned())).collect();
    let expect: BTreeSet<String> = texts.iter().map(|(key, _)| key.clone()).collect();
    let remote = Remote::start(move |request| search(&texts, request, has_all));
    let mut query = lexical("harbour lease moreno", 20);
    let mut seen: Vec<String> = Vec::new();
    for _ in 0..60 {
        let before = remote.server.requests().len();
        let page = remote.pdpp.search(&query).await.unwrap();
        assert!(remote.server.requests().len() - before <= 5 && page.hits.len() <= 20);
        assert!(!page.hits.is_empty() || page.next.is_none(), "an empty page before the end");
        seen.extend(keys(&page).into_iter().map(str::to_owned));
        query.position = page.next;
        if query.position.is_none() {
            break;
        }
    }
    assert!(query.position.is_none(), "the walk ends");
    assert_eq!(seen.len(), expect.len());
    assert_eq!(seen.into_iter().collect::<BTreeSet<_>>(), expect);
}

#[tokio::test]
async fn one_request_is_enough_where_words_by_themselves_add_nothing() {
    let texts: Corpus = (0..9).map(|number| (format!("m{number}"), "harbour lease".to_owned())).collect();
    let remote = Remote::start(move |request| search(&texts, request, has_all));
    let text = SearchText { phrases: vec!["lease moreno".to_owned()], ..SearchText::plain("harbour moreno") };
    let hint = SearchQuery { purpose: Purpose::Hint, ..lexical("harbour moreno", 10) };
    for query in [
        lexical("harbour lease", 10),
        lexical("harbour lease", 2),
        lexical("moreno", 10),
        lexical("Moreno moreno?", 10),
        SearchQuery { text, ..lexical("", 10) },
        hint,
    ] {
        let before = remote.server.requests().len();
        remote.pdpp.search(&query).await.unwrap();
        assert_eq!(remote.server.requests().len() - before, 1, "{query:?}");
    }
}

#[tokio::test]
async fn a_server_that_matches_any_word_is_not_asked_again() {
    let texts = corpus(&[("m1", "harbour"), ("m2", "lease")]);
    let remote = Remote::start(move |request| search(&texts, request, has_any));
    for requests in [3, 4, 5] {
        let page = remote.pdpp.search(&lexical("harbour lease", 10)).await.unwrap();
        assert_eq!((keys(&page), page.notes.len()), (vec!["m1", "m2"], 0));
        assert_eq!(remote.server.requests().len(), requests);
    }
}

#[tokio::test]
async fn a_word_that_fails_leaves_the_others() {
    for (broken, expect, notes) in [("lease", vec!["m1"], 1), ("", vec![], 0)] {
        let texts = corpus(&[("m1", "harbour"), ("m2", "lease")]);
        let remote = Remote::start(move |request| match param(request, "q").unwrap() {
            word if !word.contains(' ') && (broken.is_empty() || word == broken) => Reply::Reset,
            _ => search(&texts, request, has_all),
        });
        let page = remote.pdpp.search(&lexical("harbour lease", 10)).await.unwrap();
        assert_eq!((keys(&page), page.notes.len()), (expect, notes), "{broken}");
    }
}
