//! Walking a large stream while somebody else writes to it.

use std::collections::HashSet;
use std::fmt::Write;

use fetchwell::source::store::Store;
use fetchwell::source::{CountMode, Direction, RecordsQuery, Source, Start};
use serde_json::json;

use crate::conformance::{name, records_of};
use crate::support::import_records;

/// Records at the start of the walk.
const RECORDS: usize = 100_000;

/// Pages between two writes of the others.
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
    import_records(&path, "c", &lines);
    let store = Store::open("store".parse().unwrap(), &path).unwrap();
    for direction in [Direction::Descending, Direction::Ascending] {
        let mut alive: HashSet<String> = (0..RECORDS).map(|number| format!("c/r{number}")).collect();
        let mut query = RecordsQuery { limit: 100, direction, ..records_of("s") };
        let (mut seen, mut pages) = (Vec::new(), 0_usize);
        loop {
            let page = store.records(&query).await.unwrap();
            seen.extend(page.rows.iter().map(name));
            pages += 1;
            let Some(next) = page.next else { break };
            query.start = Start::After(next);
            if pages % PAGES_PER_WRITE == 0 {
                // Newcomers with times all over, and some records go: seen ones, unseen ones, and the very
                // one at which the next page begins.
                let gone = [format!("r{}", pages * 37 % RECORDS), format!("r{}", pages * 53 % RECORDS)];
                let last = seen.last().unwrap().trim_start_matches("c/").to_owned();
                let mut lines: Vec<String> =
                    (0..50).map(|n| line(&format!("new{pages}-{n}"), pages * 31 + n)).collect();
                for key in gone.iter().chain([&last]) {
                    lines.push(json!({"stream": "s", "key": key, "op": "delete"}).to_string());
                    alive.remove(&format!("c/{key}"));
                }
                import_records(&path, "c", &lines.join("\n"));
            }
        }
        let unique: HashSet<&String> = seen.iter().collect();
        assert_eq!(unique.len(), seen.len(), "{direction:?}: repeated");
        let lost: Vec<&String> = alive.iter().filter(|key| !unique.contains(key)).collect();
        assert!(lost.is_empty(), "{direction:?}: lost {} such as {:?}", lost.len(), lost.first());
        // The writes of this walk are undone for the next one.
        let restored: Vec<String> = (0..RECORDS).map(|number| line(&format!("r{number}"), number)).collect();
        import_records(&path, "c", &restored.join("\n"));
    }
    let counted = store.records(&RecordsQuery { count: CountMode::Exact, ..records_of("s") }).await.unwrap();
    assert!(counted.count.unwrap().value > RECORDS as u64);
}
