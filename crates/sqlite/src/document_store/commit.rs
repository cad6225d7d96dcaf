//! Writes projects and documents in transactions of their own.

use std::collections::HashMap;
use std::time::Duration;

use fetchwell_core::handle::StreamName;
use fetchwell_core::saturate::saturated;
use fetchwell_source::contract::{Change, IncomingRecord, NewConnection, StoreError, Tally};
use fetchwell_source::documents::{
    CommitSummary, DOCS_KIND, DOCUMENTS_STREAM, DocumentChange, NewProject, Project, ProjectChange,
    ProjectRef, Uuid, incoming_documents,
};
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};

use crate::database::{Database, identity};
use crate::documents::{DocumentWriter, create_tables, delete_expired_of, has_tables, new_uuid, project};
use crate::import::{OpenStream, WriteOutcome, put_connection};
use crate::tables::NOW;
use crate::write_lock::{LOCK_TIMEOUT, WriteLock};

/// Creates a project with an empty stream of documents. Returns `None` if its slug is the id of another connection.
pub(super) fn create_project(database: &Database, new: &NewProject) -> Result<Option<Project>, StoreError> {
    let _lock = WriteLock::take_within(database.path(), LOCK_TIMEOUT)?;
    let mut sqlite = database.writer()?;
    let mut create = || -> Result<Option<Project>, rusqlite::Error> {
        let transaction = sqlite.transaction_with_behavior(TransactionBehavior::Immediate)?;
        create_tables(&transaction)?;
        let slug = new.slug.as_str();
        if transaction.prepare("SELECT 1 FROM connections WHERE connection_id = ?1")?.exists([slug])? {
            return Ok(None);
        }
        let connection = NewConnection {
            connection_id: new.slug.connection().clone(),
            connector_key: DOCS_KIND.to_owned(),
            display_name: Some(new.name.as_str().to_owned()),
            manifest: None,
        };
        let (connection, _manifest) = put_connection(&transaction, &connection)?;
        open_documents(&transaction, connection)?;
        let sql = format!(
            "INSERT INTO projects (id, slug, name, settings, connection, created_at, updated_at)
             VALUES (?1, ?2, ?3, ?4, ?5, {NOW}, {NOW})"
        );
        let id = new_uuid()?.to_string();
        let settings = serde_json::to_string(&new.settings).unwrap_or_default();
        transaction.execute(&sql, params![id, slug, new.name.as_str(), settings, connection])?;
        let created = project(&transaction, &ProjectRef::Slug(new.slug.clone()))?;
        transaction.commit()?;
        Ok(created)
    };
    create().map_err(|error| database.error(&error))
}

/// Changes a project and raises its version. Returns `None` if there is no such project.
pub(super) fn change_project(
    database: &Database,
    id: Uuid,
    change: &ProjectChange,
) -> Result<Option<Project>, StoreError> {
    let _lock = WriteLock::take_within(database.path(), LOCK_TIMEOUT)?;
    write(database, LOCK_TIMEOUT, |sqlite| {
        let Some(before) = project(sqlite, &ProjectRef::Id(id))? else { return Ok(None) };
        let (name, settings) = change.apply(&before);
        let sql = format!(
            "UPDATE projects SET name = ?2, settings = ?3, corpus_version = corpus_version + 1, updated_at = {NOW}
             WHERE id = ?1"
        );
        sqlite.execute(&sql, params![id.to_string(), name, settings])?;
        let sql = "UPDATE connections SET display_name = ?2 WHERE connection_id = ?1";
        sqlite.execute(sql, params![before.slug.as_str(), name])?;
        let after = project(sqlite, &ProjectRef::Id(id))?;
        if let Some(after) = &after {
            delete_expired_of(sqlite, after)?;
        }
        Ok(after)
    })
}

/// Opens the stream of the documents of a project.
fn open_documents(transaction: &Transaction<'_>, connection: i64) -> Result<OpenStream, rusqlite::Error> {
    let stream: StreamName = DOCUMENTS_STREAM.parse().map_err(|_invalid| rusqlite::Error::InvalidQuery)?;
    OpenStream::open(transaction, connection, &stream, None)
}

/// Writes changes of documents in one transaction. Returns `None` if there is no such project.
pub(super) fn commit(
    database: &Database,
    id: Uuid,
    changes: Vec<DocumentChange>,
) -> Result<Option<CommitSummary>, StoreError> {
    if !database.read(has_tables)? {
        return Ok(None);
    }
    let _lock = WriteLock::take_within(database.path(), LOCK_TIMEOUT)?;
    let mut sqlite = database.writer()?;
    let commit = || -> Result<Option<CommitSummary>, rusqlite::Error> {
        let transaction = sqlite.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let sql = "SELECT connection FROM projects WHERE id = ?1";
        let connection = transaction.query_row(sql, [id.to_string()], |row| row.get(0)).optional()?;
        let Some(connection) = connection else { return Ok(None) };
        let Some(documents) = DocumentWriter::find(&transaction, connection)? else { return Ok(None) };
        let stream = open_documents(&transaction, connection)?;
        let version = identity(&transaction)?.1;
        let mut commit =
            Commit { transaction: &transaction, documents, stream, version, tally: Tally::default() };
        let ids = commit.known_ids(&changes)?;
        for IncomingRecord { key, change, .. } in incoming_documents(changes, ids, || new_uuid().map(Some))? {
            commit.write(key.as_str(), &change)?;
        }
        let tally = commit.finish()?;
        let after = project(&transaction, &ProjectRef::Id(id))?;
        transaction.commit()?;
        Ok(after.map(|after| CommitSummary {
            added: tally.added,
            changed: tally.changed,
            deleted: tally.deleted,
            corpus_version: after.corpus_version,
        }))
    };
    commit().map_err(|error| database.error(&error))
}

/// A commit in progress.
struct Commit<'t> {
    transaction: &'t Transaction<'t>,
    documents: DocumentWriter,
    stream: OpenStream,
    /// Version of the store.
    version: i64,
    tally: Tally,
}

impl Commit<'_> {
    /// Returns the ids of the documents at the paths of changes.
    fn known_ids(&self, changes: &[DocumentChange]) -> Result<HashMap<String, String>, rusqlite::Error> {
        let sql = "SELECT path, id FROM documents WHERE project_id = ?1 AND path = ?2";
        let mut find = self.transaction.prepare_cached(sql)?;
        let mut ids = HashMap::new();
        for change in changes {
            let values = [self.documents.project(), change.path().as_str()];
            ids.extend(find.query_row(values, |row| Ok((row.get(0)?, row.get(1)?))).optional()?);
        }
        Ok(ids)
    }

    fn write(&mut self, key: &str, change: &Change) -> Result<(), rusqlite::Error> {
        let written = self.stream.put(self.transaction, key, change, self.version + 1)?;
        written.count_in(&mut self.tally);
        self.version += i64::from(!matches!(written, WriteOutcome::Unchanged(_)));
        match (written, change) {
            (WriteOutcome::Added(row) | WriteOutcome::Changed(row), Change::Put { data, .. }) => {
                self.documents.put(self.transaction, row, key, data)
            }
            (WriteOutcome::Deleted(row), _) => self.documents.delete(self.transaction, row),
            _ => Ok(()),
        }
    }

    /// Saves what the commit changed of the store and of the project.
    fn finish(mut self) -> Result<Tally, rusqlite::Error> {
        self.stream.save_fields(self.transaction)?;
        let Tally { added, deleted, .. } = self.tally;
        let count = |number: u64| saturated::<i64>(number);
        self.transaction.execute(
            "UPDATE streams SET record_count = record_count + ?2 WHERE id = ?1",
            params![self.stream.row, count(added) - count(deleted)],
        )?;
        self.transaction.execute("UPDATE store SET version = ?1 WHERE id = 1", [self.version])?;
        self.documents.commit(self.transaction)?;
        Ok(self.tally)
    }
}

/// Runs a small write of the tables of projects, which waits at most `timeout` for other writers. Records are not changed,
/// so that the write lock is not needed.
pub(super) fn write<Answer: Default>(
    database: &Database,
    timeout: Duration,
    change: impl FnOnce(&Connection) -> Result<Answer, rusqlite::Error>,
) -> Result<Answer, StoreError> {
    if !database.read(has_tables)? {
        return Ok(Answer::default());
    }
    let mut sqlite = database.writer()?;
    sqlite.busy_timeout(timeout).map_err(|error| database.error(&error))?;
    let run = || {
        let transaction = sqlite.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let answer = change(&transaction)?;
        transaction.commit()?;
        Ok(answer)
    };
    run().map_err(|error: rusqlite::Error| database.error(&error))
}
