//! Searches of a store that keeps texts of records and words of its index for the next searches.

use std::collections::BTreeMap;
use std::path::Path;

use fetchwell_core::record::{Hit, HitId};
use fetchwell_source::{BoundSource, SearchQuery};
use serde_json::json;

use crate::support::import_records;
use crate::support::stores::open_store;

const BODY: &str = "Dear all, the office is closed while the heating is repaired. Please take your plants home and leave \
                    the windows shut. The porter keeps a key for urgent cases.";

fn line(key: &str, body: &str) -> String {
    json!({"stream": "mail", "key": key, "data": {"subject": "Heating", "body": body}}).to_string()
}

/// Searches for the first hits. Returns the key of each with the number of its near-copies.
async fn copies(source: &BoundSource, text: &str) -> BTreeMap<String, u32> {
    let hits = source.search(&SearchQuery::new(text, 10)).await.unwrap().hits;
    let key = |hit: &Hit| match &hit.id {
        HitId::Record(address) => address.record.as_str().to_owned(),
        id => panic!("{id:?}"),
    };
    hits.iter().map(|hit| (key(hit), hit.near_copies)).collect()
}

#[tokio::test]
async fn a_changed_record_is_ranked_by_its_new_text() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mail.db");
    import_records(&path, "work", &[line("1", BODY), line("2", BODY), line("3", BODY)].join("\n"));
    let source = open_store(&path);
    let check = async |expect: &[(&str, u32)]| {
        let expect: BTreeMap<String, u32> =
            expect.iter().map(|(key, copies)| ((*key).to_owned(), *copies)).collect();
        for _ in 0..2 {
            assert_eq!(copies(&source, "heating office").await, expect);
        }
    };
    check(&[("1", 2), ("2", 0), ("3", 0)]).await;
    import_records(&path, "work", &line("2", &format!("{BODY} It costs 70 euros.")));
    check(&[("1", 1), ("2", 0), ("3", 0)]).await;
    import_records(&path, "work", &line("2", BODY));
    check(&[("1", 2), ("2", 0), ("3", 0)]).await;
    // Another program changes the text and leaves the version as it is.
    let database = rusqlite::Connection::open(&path).unwrap();
    let change =
        "UPDATE records SET data = json_set(data, '$.body', data ->> '$.body' || ?1) WHERE key = '3'";
    database.execute(change, ["It costs 80 euros."]).unwrap();
    check(&[("1", 1), ("2", 0), ("3", 0)]).await;
    let deletion = json!({"stream": "mail", "key": "2", "op": "delete"}).to_string();
    import_records(&path, "work", &deletion);
    check(&[("1", 0), ("3", 0)]).await;
}

/// Imports records while a source is searched that keeps what it has read.
fn import_beside(path: &Path, round: u64) -> std::thread::JoinHandle<()> {
    let bodies = [BODY.to_owned(), format!("{BODY} Best, Ann"), format!("{BODY} It costs {round} euros.")];
    let pick = |at: u64, count: u64| usize::try_from((round * 7 + at * 5) % 11 % count).unwrap();
    let record = |at: u64| {
        let key = ((round * 3 + at) % 8).to_string();
        match pick(at, 4) {
            3 => json!({"stream": "mail", "key": key, "op": "delete"}).to_string(),
            body => line(&key, &bodies[body]),
        }
    };
    let lines = (0..4).map(record).collect::<Vec<_>>().join("\n");
    let path = path.to_owned();
    std::thread::spawn(move || import_records(&path, "work", &lines))
}

#[tokio::test]
async fn searches_find_the_same_whatever_was_read_before() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mail.db");
    import_records(
        &path,
        "work",
        &(0..8).map(|key| line(&key.to_string(), BODY)).collect::<Vec<_>>().join("\n"),
    );
    let source = open_store(&path);
    for round in 0..8 {
        let import = import_beside(&path, round);
        while !import.is_finished() {
            source.search(&SearchQuery::new("heating euros", 10)).await.unwrap();
        }
        import.join().unwrap();
        for text in ["heating", "heatings offices", "euros ann", "heatng kyes", "office porter costs"] {
            let query = SearchQuery::new(text, 10);
            let cold = open_store(&path).search(&query).await.unwrap();
            let warm = source.search(&query).await.unwrap();
            assert_eq!(
                (warm.hits, warm.count, warm.next),
                (cold.hits, cold.count, cold.next),
                "{round} {text}"
            );
        }
    }
}
