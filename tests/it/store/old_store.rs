//! Stores of earlier versions: `fixtures/store-57c6a20.zip` has a store that commit 57c6a20 made with its own index,
//! the imported files, and the handles that `search` of that version printed.

use std::collections::BTreeSet;
use std::path::Path;

use fetchwell_core::record::{Hit, HitId};
use fetchwell_source::{BoundSource, SearchPosition, SearchQuery};
use fetchwell_sqlite::SqliteStore;

use crate::support::{binary, fetchwell, stderr, stdout, text};

/// Returns the keys of all records, deleted ones too.
fn keys(store: &Path) -> BTreeSet<(String, String, String)> {
    let store = rusqlite::Connection::open(store).unwrap();
    let mut rows = store
        .prepare(
            "SELECT c.connection_id, s.name, r.key FROM records r
             JOIN streams s ON s.id = r.stream JOIN connections c ON c.id = s.connection",
        )
        .unwrap();
    let rows = rows.query_map((), |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).unwrap();
    rows.map(Result::unwrap).collect()
}

#[test]
fn store_of_an_earlier_version_opens_and_its_handles_fetch() {
    let folder = tempfile::tempdir().unwrap();
    let archive = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/store-57c6a20.zip");
    zip::ZipArchive::new(std::fs::File::open(archive).unwrap()).unwrap().extract(folder.path()).unwrap();
    let file = |name: &str| folder.path().join(name);
    let store = file("store.db");
    let handles = std::fs::read_to_string(file("handles.txt")).unwrap();
    assert_eq!(handles.lines().count(), 20);
    let fetch_all = || {
        for handle in handles.lines() {
            let output = fetchwell(["fetch", handle, "--store", text(&store)]);
            assert!(output.status.success() && !stdout(&output).is_empty(), "{handle}: {}", stderr(&output));
        }
    };
    fetch_all();
    let found = stdout(&fetchwell(["search", "zebra", "--store", text(&store)]));
    assert!(found.contains("acme/messages/a%2Fb%3D1%40x.test"), "{found}");

    // Importing the same files again changes records, and no keys.
    let before = keys(&store);
    for (kind, name, options) in [
        ("records", "records.ndjson", "--connection acme"),
        ("csv", "people.csv", "--connection sheet --stream people --key id"),
        ("csv", "people.csv", "--connection sheet --stream pairs --key id --key Name"),
        ("json", "notes.json", "--connection notes"),
        ("markdown", "vault", "--connection vault"),
        ("mbox", "mail.mbox", "--connection mail"),
    ] {
        let mut command = binary();
        command.args(["import", kind, text(&file(name)), "--store", text(&store)]);
        let output = command.args(options.split(' ')).output().unwrap();
        assert!(output.status.success(), "{kind}: {}", stderr(&output));
    }
    assert_eq!(keys(&store), before);
    fetch_all();
    let found = stdout(&fetchwell(["search", "\"inner text\"", "--store", text(&store)]));
    assert!(found.contains("mail/messages:same@x.test-18c071c59a9af920"), "{found}");
}

/// Returns the keys of the hits of a search, with the position of the next page.
async fn search(source: &BoundSource, query: &SearchQuery) -> (Vec<String>, Option<SearchPosition>) {
    let page = source.search(query).await.unwrap();
    assert!(page.notes.is_empty(), "{:?}", page.notes);
    let key = |hit: &Hit| match &hit.id {
        HitId::Record(address) => address.record.as_str().to_owned(),
        other => panic!("{other:?}"),
    };
    (page.hits.iter().map(key).collect(), page.next)
}

/// `fixtures/store-layout-2.zip` has a store with an index of layout 2, in which `alpha` is in eight of twelve records.
/// `store-layout-3.zip` to `store-layout-5.zip` have the same records in indexes of layouts 3 to 5.
#[tokio::test]
async fn index_of_a_previous_layout_answers_until_the_next_takes_its_place() {
    for layout in [2, 3, 4, 5] {
        answers_until_the_next(layout).await;
    }
}

async fn answers_until_the_next(previous: u32) {
    let folder = tempfile::tempdir().unwrap();
    let archive = format!("fixtures/store-layout-{previous}.zip");
    let archive = Path::new(env!("CARGO_MANIFEST_DIR")).join(archive);
    zip::ZipArchive::new(std::fs::File::open(archive).unwrap()).unwrap().extract(folder.path()).unwrap();
    let file = |name: &str| folder.path().join(name);
    let is_layout = |layout: u32| {
        std::fs::read_to_string(file("store.db-index/meta.json"))
            .unwrap()
            .contains(&format!("layout\\\":{layout},"))
    };
    let query = SearchQuery::new("alpha gamma", 5);
    // Another process writes to the index, so it cannot be rebuilt.
    let lock = std::fs::File::create(file("store.db-index-lock")).unwrap();
    lock.lock().unwrap();
    let source = BoundSource::from(SqliteStore::open("store".parse().unwrap(), &file("store.db")).unwrap());
    let (first, next) = search(&source, &query).await;
    assert_eq!(first.len(), 5);
    assert!(first.iter().take(4).all(|key| ["1", "4", "7", "10"].contains(&key.as_str())), "{first:?}");
    assert!(is_layout(previous));
    lock.unlock().unwrap();
    let (again, _) = search(&source, &query).await;
    assert_eq!(again.len(), 5);
    assert!(is_layout(6));
    // A walk that began in the earlier index continues there.
    let (rest, _) = search(&source, &SearchQuery { position: next, ..query.clone() }).await;
    let walked: BTreeSet<String> = first.into_iter().chain(rest).collect();
    assert_eq!(walked.len(), 8);
    // A crash between the two renames.
    drop(source);
    std::fs::rename(file("store.db-index"), file("store.db-index-next")).unwrap();
    let source = BoundSource::from(SqliteStore::open("store".parse().unwrap(), &file("store.db")).unwrap());
    assert_eq!(search(&source, &query).await.0, again);
    assert!(is_layout(6));
    for left in ["store.db-index-next", "store.db-index-old"] {
        assert!(!file(left).exists(), "{left}");
    }
}
