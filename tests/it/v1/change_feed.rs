//! The changes of a record server with the reference server's quirks: `cursor` beside `changes_since` is ignored,
//! `next_changes_since` comes on every page, and `fields` empties deletions.

use std::collections::BTreeMap;

use fetchwell_source::{Change, ChangesToken, RecordsPage, RecordsQuery, Selection, SourceError, Start};
use serde_json::{Value, json};

use crate::support::remote::Remote;
use crate::support::{Reply, Request};

/// Changes of the stream. Every eighth is a deletion.
pub(crate) const CHANGES: usize = 400;

/// Maximum number of pages that a test reads.
const MAX_PAGES: usize = 200;

/// Answers as the reference server does, with its quirks.
pub(crate) fn quirky(request: &Request) -> Reply {
    let line = request.line.trim_start_matches("GET ").split(' ').next().unwrap_or_default().to_owned();
    let url = url::Url::parse(&format!("http://x{line}")).unwrap();
    let params: BTreeMap<String, String> = url.query_pairs().into_owned().collect();
    if url.path() != "/v1/streams/messages/records" {
        let error = json!({"message": "Route GET: not found", "error": "Not Found", "statusCode": 404});
        return Reply::Json(404, error.to_string());
    }
    let number = |name: &str| params.get(name).and_then(|value| value.parse::<usize>().ok());
    let limit = number("limit").filter(|limit| *limit > 0).unwrap_or(25).min(100);
    let from = match params.get("changes_since").map(String::as_str) {
        Some("beginning") => 0,
        Some(token) => token.trim_start_matches("version-").parse().unwrap(),
        None => number("cursor").unwrap(),
    };
    let until = (from + limit).min(CHANGES);
    let projected = params.contains_key("fields");
    let connection = params.get("connection_id").map_or("cin_work", String::as_str);
    let data: Vec<Value> = (from..until).map(|change| item(change, connection, projected)).collect();
    let mut body = json!({"object": "list", "data": data, "has_more": until < CHANGES,
        "next_changes_since": format!("version-{CHANGES}"), "meta": {"count": {"kind": "none"}, "warnings": []}});
    if until < CHANGES {
        body["next_cursor"] = json!(until.to_string());
    }
    Reply::Json(200, body.to_string())
}

fn item(change: usize, connection: &str, is_projected: bool) -> Value {
    match (change % 8 == 7, is_projected) {
        (true, true) => json!({}),
        (true, false) => json!({"id": format!("m{change}"), "stream": "messages", "deleted": true,
            "deleted_at": "2026-11-01T00:00:00Z"}),
        (false, _) => {
            json!({"id": format!("m{change}"), "stream": "messages", "emitted_at": "2026-11-01T00:00:00Z",
            "connection_id": connection, "data": {"subject": "s", "body": "b"}})
        }
    }
}

fn query(limit: usize, since: Option<ChangesToken>) -> RecordsQuery {
    RecordsQuery {
        connection: "cin_work".parse().ok(),
        start: Start::Changes(since),
        ..RecordsQuery::new("messages".parse().unwrap(), limit)
    }
}

/// Reads a feed to its end. Returns the changes and the last token.
async fn read_all(remote: &Remote, limit: usize, selection: Selection) -> (Vec<Change>, ChangesToken) {
    let (mut rows, mut since) = (Vec::new(), None);
    for _ in 0..MAX_PAGES {
        let asked = RecordsQuery { selection: selection.clone(), ..query(limit, since) };
        let RecordsPage { rows: page, has_more, next_changes, .. } =
            remote.pdpp.records(&asked).await.unwrap();
        rows.extend(page);
        if !has_more {
            return (rows, next_changes.unwrap());
        }
        since = next_changes;
    }
    panic!("the feed does not end");
}

fn names(rows: &[Change]) -> Vec<String> {
    let name = |row: &Change| match row {
        Change::Present(record) => record.address.record.to_string(),
        Change::Deleted { address, .. } => format!("-{}", address.record),
    };
    rows.iter().map(name).collect()
}

pub(crate) fn expected() -> Vec<String> {
    (0..CHANGES)
        .map(|change| if change % 8 == 7 { format!("-m{change}") } else { format!("m{change}") })
        .collect()
}

#[tokio::test]
async fn every_change_comes_once() {
    let remote = Remote::start(quirky);
    for limit in [7, 25, 100] {
        let (rows, last) = read_all(&remote, limit, Selection::All).await;
        assert_eq!(names(&rows), expected(), "limit {limit}");
        let asked = remote.asked();
        assert!(
            asked.iter().all(|request| !(request.contains("cursor=") && request.contains("changes_since=")))
        );
        assert_eq!(remote.pdpp.records(&query(100, Some(last))).await.unwrap().rows.len(), 0);
        let asked = remote.asked();
        assert!(asked.last().unwrap().contains(&format!("changes_since=version-{CHANGES}")), "{asked:?}");
    }
    // The server's own token, which is not sealed, is accepted.
    let since = ChangesToken::Unverified(format!("version-{}", CHANGES - 3));
    assert_eq!(remote.pdpp.records(&query(100, Some(since))).await.unwrap().rows.len(), 3);
}

#[tokio::test]
async fn deletions_survive_selected_fields() {
    let remote = Remote::start(quirky);
    let (rows, _) = read_all(&remote, 100, Selection::Fields(vec!["subject".to_owned()])).await;
    assert_eq!(names(&rows), expected());
    for row in &rows {
        if let Change::Present(record) = row {
            assert_eq!(record.data.keys().collect::<Vec<_>>(), ["subject"]);
        }
    }
    assert!(remote.asked().iter().all(|request| !request.contains("fields=")));
}

#[tokio::test]
async fn feeds_of_two_connections_are_read_by_turns() {
    let remote = Remote::start(quirky);
    for selection in [Selection::All, Selection::Fields(vec!["subject".to_owned()])] {
        let mut feeds = ["cin_work", "cin_home"].map(|connection| (connection, Vec::new(), None, true));
        for _ in 0..MAX_PAGES {
            for (connection, rows, since, has_more) in &mut feeds {
                if !*has_more {
                    continue;
                }
                let query = RecordsQuery {
                    connection: connection.parse().ok(),
                    selection: selection.clone(),
                    ..query(30, since.take())
                };
                let page = remote.pdpp.records(&query).await.unwrap();
                rows.extend(page.rows);
                (*since, *has_more) = (page.next_changes, page.has_more);
            }
        }
        for (connection, rows, _, has_more) in &feeds {
            assert!(!has_more, "{connection}");
            assert_eq!(names(rows), expected(), "{connection}");
            let own = rows.iter().all(|row| {
                let address = match row {
                    Change::Present(record) => &record.address,
                    Change::Deleted { address, .. } => address,
                };
                address.connection.as_ref().is_some_and(|of_row| of_row.as_str() == *connection)
            });
            assert!(own, "{connection}");
        }
    }
}

#[tokio::test]
async fn feed_that_cannot_continue_is_an_error() {
    for body in [
        json!({"data": [], "has_more": true, "next_changes_since": "version-9"}),
        json!({"data": [], "has_more": true, "next_changes_since": "version-9", "next_cursor": "5"}),
    ] {
        let remote = Remote::start(move |_| Reply::Json(200, body.to_string()));
        let first = remote.pdpp.records(&query(10, None)).await;
        let answer = match first {
            Ok(page) => remote.pdpp.records(&query(10, page.next_changes)).await,
            error => error,
        };
        assert!(matches!(answer, Err(SourceError::Protocol(_))), "{answer:?}");
    }
}

#[tokio::test]
async fn ended_grants_ask_to_authorize_again() {
    for code in ["grant_revoked", "grant_expired", "grant_invalid", "grant_consumed", "insufficient_scope"] {
        let body = json!({"error": {"type": "permission_error", "code": code, "message": "Grant revoked"}});
        let remote = Remote::start(move |_| Reply::Json(403, body.to_string()));
        let answer = remote.pdpp.records(&query(10, None)).await;
        assert!(
            matches!(&answer, Err(SourceError::Reauthorize { remedy, .. }) if remedy.contains("pdpp connect")),
            "{code}: {answer:?}"
        );
    }
}
