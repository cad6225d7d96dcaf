//! Joined and separated forms of words, words with signs, and identifiers beside their words in prose.

use std::path::{Path, PathBuf};

use fetchwell_core::record::HitId;
use fetchwell_source::SearchQuery;
use serde_json::json;

use crate::support::import_records;
use crate::support::stores::{new_store, open_store};

/// Returns a store with a note for each text, of which the number is the key, beside notes about other matters.
fn notes(texts: &[&str]) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = new_store(&folder);
    let others = [
        "the set of plates is big",
        "look up the number of the house",
        "a log of wood in the garden",
        "net weight of the parcel",
        "js and a node of a graph",
        "in the bar, a foo and a baz",
        "555 bricks and 123 tiles, 4567 nails",
        "an article of 2119 words, and rfc as a word",
        "19 people and covid",
        "c is a letter",
    ];
    let others = others.iter().cycle().take(30).map(|text| (*text).to_owned());
    let bodies =
        texts.iter().map(|text| format!("{text}. The rest of the note is about the garden and the boat."));
    let line = |(key, body): (usize, String)| {
        json!({"stream": "notes", "key": key.to_string(), "data": {"body": body}}).to_string()
    };
    let lines: Vec<String> = bodies.chain(others).enumerate().map(line).collect();
    import_records(&path, "c", &lines.join("\n"));
    (folder, path)
}

/// Returns the keys of the first hits.
async fn first(path: &Path, query: &str, count: usize) -> Vec<String> {
    let page = open_store(path).search(&SearchQuery::new(query, count)).await.unwrap();
    let key = |id: &HitId| match id {
        HitId::Record(address) => address.record.as_str().to_owned(),
        other => panic!("{other:?}"),
    };
    page.hits.iter().map(|hit| key(&hit.id)).collect()
}

#[tokio::test]
async fn spellings_of_a_word_find_each_other() {
    for (texts, queries) in [
        (
            &["the wifi of the office", "the Wi-Fi of the office", "the Wi\u{2011}Fi of the office"][..],
            &["wifi", "wi-fi", "WiFi", "wi fi"][..],
        ),
        (&["as rfc2119 says", "as RFC 2119 says", "as RFC-2119 says"], &["rfc2119", "RFC 2119", "rfc-2119"]),
        (
            &["a setup for guests", "we set up the tent", "a set-up for guests"],
            &["setup", "set up", "set-up"],
        ),
        (&["the login of guests", "guests log in here"], &["login", "log in"]),
        (&["a covid19 test", "a COVID-19 test", "a covid 19 test"], &["covid19", "COVID-19", "covid 19"]),
        (&["an email to Ann", "an e-mail to Ann"], &["email", "e-mail", "e mail"]),
        (
            &["call 5551234567 today", "call (555) 123-4567 today", "ring 555 123 4567 tomorrow"],
            &["5551234567", "555 123 4567", "(555) 123-4567"],
        ),
        (&["it uses nodejs", "it uses node.js"], &["nodejs", "node.js"]),
        (&["a foo_bar_baz", "a fooBarBaz", "a foo-bar-baz"], &["foo_bar_baz", "fooBarBaz", "foo-bar-baz"]),
        // A word that no record has is separated everywhere.
        (&["a health check"], &["healthcheck"]),
    ] {
        let (_folder, path) = notes(texts);
        let expect: Vec<String> = (0..texts.len()).map(|key| key.to_string()).collect();
        for query in queries {
            let mut found = first(&path, query, texts.len()).await;
            found.sort();
            assert_eq!(found, expect, "{query}");
        }
    }
}

#[tokio::test]
async fn words_with_signs_come_before_their_letters() {
    let (_folder, path) = notes(&[
        "a course about C++ for everybody who likes long sentences about languages",
        "a course about C# for everybody who likes long sentences about languages",
        "a course about .NET for everybody who likes long sentences about languages",
        "a course about node.js for everybody who likes long sentences about languages",
        "C, C and C",
        "net of net",
        "node, js",
    ]);
    for (query, expect) in [("C++", "0"), ("C#", "1"), (".NET", "2"), ("node.js", "3"), ("c++ course", "0")] {
        assert_eq!(first(&path, query, 1).await, [expect], "{query}");
    }
    // The letter alone finds all of them.
    assert!(first(&path, "C", 30).await.contains(&"0".to_owned()));
}

#[tokio::test]
async fn an_identifier_comes_before_its_words_in_prose() {
    let long = "a longer text with many words about the house, the garden and the boat ".repeat(4);
    let (_folder, path) = notes(&[
        "foo bar baz",
        &format!("{long} calls foo_bar_baz {long}"),
        "authoritative for",
        &format!("{long} sets authoritative_for {long}"),
        "parse config file",
        &format!("{long} calls parseConfigFile {long}"),
    ]);
    for (query, expect) in [
        ("foo_bar_baz", "1"),
        ("fooBarBaz", "1"),
        ("authoritative_for", "3"),
        ("parseConfigFile", "5"),
        ("parse_config_file", "5"),
        ("foo bar baz", "0"),
        ("authoritative for", "2"),
    ] {
        assert_eq!(first(&path, query, 1).await, [expect], "{query}");
    }
}
