//! The grammar of handles against each row of `fixtures/handles.json`.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use fetchwell_core::handle::{Handle, RecordAddress};
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Vectors {
    #[serde(rename = "about")]
    _about: String,
    legal: Vec<Legal>,
    illegal: Vec<Illegal>,
    mint: Vec<Mint>,
}

#[derive(Deserialize)]
struct Legal {
    handle: String,
    connection: Option<String>,
    stream: String,
    record: String,
    part: Option<u32>,
}

#[derive(Deserialize)]
struct Illegal {
    handle: String,
    reason: String,
    canonical: Option<String>,
}

#[derive(Deserialize)]
struct Mint {
    connection: Option<String>,
    stream: String,
    record: String,
    handle: Option<String>,
}

fn vectors() -> Vectors {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/handles.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn address(connection: Option<&str>, stream: &str, record: &str) -> RecordAddress {
    RecordAddress {
        connection: connection.map(|name| name.parse().unwrap()),
        stream: stream.parse().unwrap(),
        record: record.parse().unwrap(),
    }
}

#[test]
fn the_file_has_at_least_eighty_rows() {
    let Vectors { legal, illegal, mint, .. } = vectors();
    assert!(legal.len() + illegal.len() + mint.len() >= 80);
}

#[test]
fn legal_handles_mean_what_the_file_says() {
    for row in vectors().legal {
        let handle: Handle = row.handle.parse().unwrap_or_else(|refused| panic!("{}: {refused}", row.handle));
        let expect = address(row.connection.as_deref(), &row.stream, &row.record);
        assert_eq!(handle.address(), &expect, "{}", row.handle);
        assert_eq!(handle.part(), row.part, "{}", row.handle);
        assert_eq!(handle.to_string(), row.handle);
    }
}

#[test]
fn illegal_handles_are_refused_for_the_reason_the_file_gives() {
    for row in vectors().illegal {
        let refused = row.handle.parse::<Handle>().expect_err(&row.handle);
        assert_eq!(refused.fault.reason(), row.reason, "{:?}", row.handle);
        assert_eq!(refused.canonical, row.canonical, "{:?}", row.handle);
    }
}

#[test]
fn minted_handles_are_those_of_the_file() {
    for row in vectors().mint {
        let address = address(row.connection.as_deref(), &row.stream, &row.record);
        assert_eq!(Handle::mint(&address).map(|handle| handle.to_string()), row.handle);
    }
}
