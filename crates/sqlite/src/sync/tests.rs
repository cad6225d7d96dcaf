//! Synchronizations of a store that other writers change.

use std::path::{Path, PathBuf};

use fetchwell_conformance::documents as conformance;
use fetchwell_core::handle::{RecordId, StreamName};
use fetchwell_core::record::RecordData;
use fetchwell_source::contract::no_progress;
use fetchwell_source::contract::{
    Change, IncomingRecord, ItemState, NewConnection, NewImport, RememberedImport, StoreError,
};
use fetchwell_source::documents::{DOCS_KIND, DocumentRef, DocumentStore, Uuid};
use fetchwell_source::sync::{ImportTables, ImportTarget, ImportWriter, Removal, SyncStore};

use super::tables::SqliteImportTables;
use super::{SqliteSyncStore, SqliteTarget};
use crate::SqliteStore;
use crate::removal::{finish_removal, remove_records};

fn connection() -> NewConnection {
    NewConnection {
        connection_id: "notes".parse().unwrap(),
        connector_key: "files".to_owned(),
        display_name: None,
        manifest: None,
    }
}

fn stream() -> StreamName {
    "documents".parse().unwrap()
}

fn key(name: &str) -> RecordId {
    name.parse().unwrap()
}

fn put(name: &str, body: &str) -> IncomingRecord {
    let mut data = RecordData::new();
    data.insert("body".to_owned(), body.into());
    IncomingRecord { stream: stream(), key: key(name), change: Change::Put { data, emitted_at: None } }
}

/// Creates a store with an import and opens it.
fn remembered(path: &Path) -> (SqliteSyncStore, RememberedImport) {
    let store = SqliteSyncStore::open_or_create(path).unwrap();
    let import =
        NewImport { origin: PathBuf::from("/x/notes"), kind: "files".to_owned(), options: "{}".to_owned() };
    let import = store.remember(&connection(), &import).unwrap();
    (store, import)
}

fn open(store: &SqliteSyncStore, import: &RememberedImport) -> Result<ImportWriter, StoreError> {
    store.try_lock(import).unwrap().unwrap().writer(import)
}

/// Writes one item with records.
fn write_item(writer: &mut ImportWriter, path: &str, records: &[&str]) {
    writer.begin_item(path);
    for name in records {
        writer.write(put(name, "text"), 10).unwrap();
    }
    writer.end_item(ItemState { stamp: Some("1".to_owned()), ..ItemState::default() }).unwrap();
}

#[tokio::test]
async fn a_writer_notices_that_records_were_removed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notes.db");
    let (store, import) = remembered(&path);
    let mut writer = open(&store, &import).unwrap();
    write_item(&mut writer, "a.md", &["a", "b"]);
    writer.flush().unwrap();
    write_item(&mut writer, "c.md", &["c"]);
    remove_records(&path, &"notes/documents:a".parse().unwrap()).await.unwrap();
    // The rows of items and records may be others now, so nothing is written.
    assert!(matches!(writer.flush(), Err(StoreError::Replaced(_))));
    assert!(matches!(
        writer.save_states(&[(store.items(import.id).unwrap()["a.md"].id, ItemState::default())]),
        Err(StoreError::Replaced(_))
    ));
    assert!(!store.items(import.id).unwrap().contains_key("c.md"));
    // Another writer can have the lock of the import only now.
    drop(writer);
    assert!(open(&store, &import).is_ok());
    finish_removal(&path).unwrap();
    remove_records(&path, &"notes".parse().unwrap()).await.unwrap();
    assert!(matches!(open(&store, &import), Err(StoreError::ImportRemoved(_))));
}

#[test]
fn a_record_that_another_process_puts_during_a_removal_stays() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notes.db");
    let (store, import) = remembered(&path);
    let mut writer = open(&store, &import).unwrap();
    write_item(&mut writer, "a.md", &["a", "b"]);
    writer.flush().unwrap();
    let row = |name: &str| -> (i64, i64) {
        let sql = "SELECT id, version FROM records WHERE key = ?1";
        let read = |sqlite: &rusqlite::Connection| {
            sqlite.query_row(sql, [name], |row| Ok((row.get(0)?, row.get(1)?)))
        };
        store.shared.database.read(read).unwrap()
    };
    let removal = |name: &str| {
        let ((record, version), change) = (row(name), Change::Delete { deleted_at: None });
        Removal { record, version, incoming: IncomingRecord { stream: stream(), key: key(name), change } }
    };
    let removals = [removal("a"), removal("b")];
    // The item gives neither record any more, and an import writes one of them.
    writer.begin_item("a.md");
    writer.end_item(ItemState { stamp: Some("2".to_owned()), ..ItemState::default() }).unwrap();
    writer.flush().unwrap();
    let mut other = SqliteTarget::new(&path).open(&connection(), None, &no_progress).unwrap();
    other.write(put("a", "newer"), 10).unwrap();
    other.finish(&no_progress).unwrap();
    let mut tables = SqliteImportTables::open_import(&store.shared, &import, None).unwrap();
    assert_eq!(tables.remove(removals.into()).unwrap().deleted, 1);
    let kept = |name: &str| {
        let sql = "SELECT data IS NOT NULL FROM records WHERE key = ?1";
        store
            .shared
            .database
            .read(|sqlite| sqlite.query_row(sql, [name], |row| row.get::<_, bool>(0)))
            .unwrap()
    };
    assert!(kept("a") && !kept("b"));
}

#[tokio::test]
async fn a_project_takes_only_documents() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("docs.db");
    let sync = SqliteSyncStore::open_or_create(&path).unwrap();
    let store = SqliteStore::open("docs".parse().unwrap(), &path).unwrap();
    let project = conformance::project(&store, "docs").await;
    let connection = NewConnection {
        connection_id: project.slug.connection().clone(),
        connector_key: DOCS_KIND.to_owned(),
        display_name: None,
        manifest: None,
    };
    let (origin, kind, options) = (PathBuf::from("/x/docs"), DOCS_KIND.to_owned(), "{}".to_owned());
    let import = sync.remember(&connection, &NewImport { origin, kind, options }).unwrap();
    let mut writer = open(&sync, &import).unwrap();
    let id = Uuid::random().unwrap().to_string();
    let document = |stream: &str, key: &str, data: serde_json::Value| IncomingRecord {
        stream: stream.parse().unwrap(),
        key: key.parse().unwrap(),
        change: Change::Put { data: data.as_object().unwrap().clone(), emitted_at: None },
    };
    writer.begin_item("a.md");
    for other in [
        document("documents", &id, serde_json::json!({"path": "a.md"})),
        document("documents", &id, serde_json::json!({"path": "", "text": "x"})),
        document("documents", "a.md", serde_json::json!({"path": "a.md", "text": "x"})),
        document("notes", &id, serde_json::json!({"path": "a.md", "text": "x"})),
    ] {
        assert!(matches!(writer.write(other, 10), Err(StoreError::NoDocument(_))));
    }
    writer.write(document("documents", &id, serde_json::json!({"path": "a.md", "text": "x"})), 10).unwrap();
    writer.end_item(ItemState::default()).unwrap();
    assert_eq!(writer.finish(&no_progress).unwrap().tally.added, 1);
    let found = store.document(project.id, &DocumentRef::Id(id.parse().unwrap())).await.unwrap();
    assert_eq!(found.unwrap().path.as_str(), "a.md");
}
