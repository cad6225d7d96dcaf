//! Walks over a large stream while other processes write to it.

use std::collections::HashSet;
use std::fmt::Write;

use fetchwell_source::{BoundSource, CountMode, Direction, RecordsQuery, Start};
use fetchwell_sqlite::SqliteStore;
use serde_json::json;

use crate::sources::conformance::{name, records_of};
use crate::support::import_records;

/// Number of records of each of the two connections at the start of the walk. Their keys, times and missing times are
/// the same, so every record ties with one of the other connection.
const RECORDS: usize = 50_000;

const CONNECTIONS: [&str; 2] = ["c", "d"];

/// Number of pages between two writes of other processes.
const PAGES_PER_WRITE: usize = 40;

fn line(key: &str, number: usize) -> String {
    // Many records have the same time, and some have none.
    let at = format!("2026-04-{:02}T{:02}:00:00Z", 1 + number % 28, number % 24);
    let emitted_at = if number.is_multiple_of(1_000) { None } else { Some(at) };
    json!({"stream": "s", "key": key, "data": {"n": number}, "emitted_at": emitted_at}).to_string()
}

#[tokio::test]
async fn a_walk_under_writes_loses_and_repeats_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("walk.db");
    let mut lines = String::new();
    for number in 0..RECORDS {
        writeln!(lines, "{}", line(&format!("r{number}"), number)).unwrap();
    }
    for connection in CONNECTIONS {
        import_records(&path, connection, &lines);
    }
    let store = BoundSource::from(SqliteStore::open("store".parse().unwrap(), &path).unwrap());
    for direction in [Direction::Descending, Direction::Ascending] {
        let of = |connection: &'static str| (0..RECORDS).map(move |number| format!("{connection}/r{number}"));
        let mut alive: HashSet<String> = CONNECTIONS.iter().flat_map(|connection| of(connection)).collect();
        let mut query = RecordsQuery { limit: 100, direction, ..records_of("s") };
        let (mut seen, mut pages) = (Vec::new(), 0_usize);
        loop {
            let page = store.records(&query).await.unwrap();
            seen.extend(page.rows.iter().map(name));
            pages += 1;
            let Some(next) = page.next else { break };
            query.start = Start::After(next);
            if pages % PAGES_PER_WRITE == 0 {
                // New records have times all over the range. Deleted ones are records that were shown, records that
                // were not, and the record at which the next page begins.
                let gone = [format!("r{}", pages * 37 % RECORDS), format!("r{}", pages * 53 % RECORDS)];
                let (connection, last) = seen.last().unwrap().split_once('/').unwrap();
                let mut lines: Vec<String> =
                    (0..50).map(|n| line(&format!("new{pages}-{n}"), pages * 31 + n)).collect();
                for key in gone.iter().map(String::as_str).chain([last]) {
                    lines.push(json!({"stream": "s", "key": key, "op": "delete"}).to_string());
                    alive.remove(&format!("{connection}/{key}"));
                }
                import_records(&path, connection, &lines.join("\n"));
            }
        }
        let unique: HashSet<&String> = seen.iter().collect();
        assert_eq!(unique.len(), seen.len(), "{direction:?}: repeated");
        let lost: Vec<&String> = alive.iter().filter(|key| !unique.contains(key)).collect();
        assert!(lost.is_empty(), "{direction:?}: lost {} such as {:?}", lost.len(), lost.first());
        // The writes of this walk are undone for the next walk.
        let restored: Vec<String> = (0..RECORDS).map(|number| line(&format!("r{number}"), number)).collect();
        for connection in CONNECTIONS {
            import_records(&path, connection, &restored.join("\n"));
        }
    }
    let counted = store.records(&RecordsQuery { count: CountMode::Exact, ..records_of("s") }).await.unwrap();
    assert!(counted.count.unwrap().value > 2 * RECORDS as u64);
}
