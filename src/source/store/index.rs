//! The search index beside the store: what it holds, and how it is kept up to date.
//!
//! The index is a tantivy index of three rows and one text per record. Its commits carry, in
//! their payload, which store they belong to and the version of the last change they include; commit
//! and payload are one atomic file. So whatever happened, the index can be brought up to date from the
//! records with a later version, and an index that cannot be read is made again from nothing.

use std::fs;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use serde::{Deserialize, Serialize};
use tantivy::schema::{FAST, INDEXED, IndexRecordOption, Schema, TextFieldIndexing, TextOptions};
use tantivy::{Index, IndexReader, IndexWriter, ReloadPolicy, Searcher, TantivyDocument, TantivyError, Term};

use super::StoreError;
use super::database::Database;
use super::matching::collect_texts;
use super::read::identity;
use super::words::StoreTokenizer;
use super::write_lock::beside;
use crate::record::{RecordData, own_title};

/// Raised when the fields or the words change, which makes an older index be built again.
const LAYOUT: u32 = 1;

/// Memory for the documents of one commit, in bytes.
const WRITER_MEMORY: usize = 50_000_000;

/// Documents between commits while catching up, about a second's work, so that an interrupted catch-up goes
/// on where it was.
const COMMIT_EVERY: usize = 10_000;

/// A word in the title counts as often as this in the text.
const TITLE_WEIGHT: usize = 3;

/// Numbers and strings are searchable; more pieces than this of one record are not.
const TEXTS_PER_RECORD: usize = 10_000;

/// What a commit of the index reflects.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Reflects {
    layout: u32,
    store: String,
    version: i64,
}

/// The fields of the index.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fields {
    pub(super) record: tantivy::schema::Field,
    pub(super) connection: tantivy::schema::Field,
    pub(super) stream: tantivy::schema::Field,
    pub(super) text: tantivy::schema::Field,
}

impl Fields {
    fn schema() -> (Schema, Self) {
        let mut schema = Schema::builder();
        let words = TextFieldIndexing::default()
            .set_tokenizer("fetchwell")
            .set_index_option(IndexRecordOption::WithFreqsAndPositions);
        let words = TextOptions::default().set_indexing_options(words);
        let fields = Self {
            record: schema.add_u64_field("record", FAST | INDEXED),
            connection: schema.add_u64_field("connection", INDEXED),
            stream: schema.add_u64_field("stream", INDEXED),
            text: schema.add_text_field("text", words),
        };
        (schema.build(), fields)
    }
}

/// Where a record stands in the store.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rows {
    pub(super) record: i64,
    pub(super) stream: i64,
    pub(super) connection: i64,
}

/// One record's entry, ready to be written.
#[derive(Debug)]
pub(super) struct Entry {
    /// The row of the record.
    pub(super) record: i64,
    /// What is searchable of it; `None` removes it.
    document: Option<TantivyDocument>,
    /// Whether the index may hold an entry of it already.
    replaces: bool,
}

impl Entry {
    /// The entry of a record as it is now.
    pub(super) fn new(fields: Fields, rows: Rows, key: &str, data: &RecordData) -> Self {
        let Rows { record, stream, connection } = rows;
        let mut document = TantivyDocument::new();
        document.add_u64(fields.record, row_term(record));
        document.add_u64(fields.stream, row_term(stream));
        document.add_u64(fields.connection, row_term(connection));
        document.add_text(fields.text, key);
        if let Some(title) = own_title(data) {
            (1..TITLE_WEIGHT).for_each(|_| document.add_text(fields.text, title));
        }
        let mut texts = Vec::new();
        for value in data.values() {
            collect_texts(value, &mut texts);
            if let serde_json::Value::Number(number) = value {
                document.add_text(fields.text, number.to_string());
            }
        }
        for text in texts.into_iter().take(TEXTS_PER_RECORD) {
            document.add_text(fields.text, text);
        }
        Self { record, document: Some(document), replaces: true }
    }

    /// The same for a record that the index cannot know yet, which spares looking for it.
    pub(super) fn of_new_record(self) -> Self {
        Self { replaces: false, ..self }
    }

    /// The removal of a record.
    pub(super) fn removal(record: i64) -> Self {
        Self { record, document: None, replaces: true }
    }
}

/// Row ids are positive, so they are their own terms.
pub(super) fn row_term(row: i64) -> u64 {
    row.unsigned_abs()
}

/// The folder of a store's index.
pub(super) fn folder_of(store: &Path) -> PathBuf {
    beside(store, "-index")
}

/// The index as a reader sees it.
pub(super) struct IndexView {
    index: Index,
    reader: IndexReader,
    pub(super) fields: Fields,
    /// The version that the searchers of [`IndexView::searcher`] reflect.
    pub(super) version: i64,
}

impl std::fmt::Debug for IndexView {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IndexView").field("version", &self.version).finish_non_exhaustive()
    }
}

impl IndexView {
    /// The index of this store, or `None` when there is none that can be used.
    pub(super) fn open(store: &Path, uuid: &str) -> Option<Self> {
        let (index, fields) = open_index(&folder_of(store)).ok()?;
        let version = reflected_version(&index, uuid)?;
        let reader = index.reader_builder().reload_policy(ReloadPolicy::Manual).try_into().ok()?;
        Some(Self { index, reader, fields, version })
    }

    /// Moves to the newest commit. `None` when the index was made anew since it was opened.
    pub(super) fn refresh(mut self, uuid: &str) -> Option<Self> {
        // The version is read first: the searcher may be newer than it says, never older.
        self.version = reflected_version(&self.index, uuid)?;
        self.reader.reload().ok()?;
        Some(self)
    }

    pub(super) fn searcher(&self) -> Searcher {
        self.reader.searcher()
    }
}

/// The index as the one writer sees it. Whoever makes one holds the store's write lock.
pub(super) struct IndexEditor {
    store: PathBuf,
    uuid: String,
    pub(super) fields: Fields,
    writer: IndexWriter,
    /// The version that the last commit reflects.
    version: i64,
}

impl std::fmt::Debug for IndexEditor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IndexEditor").field("version", &self.version).finish_non_exhaustive()
    }
}

impl IndexEditor {
    /// Opens the index to change it, making it anew when there is none that can be used.
    pub(super) fn open(database: &Database) -> Result<Self, StoreError> {
        let store = database.path().to_owned();
        let (uuid, newest) = database.read(identity)?;
        let folder = folder_of(&store);
        let usable = open_index(&folder).ok().and_then(|(index, fields)| {
            let version = reflected_version(&index, &uuid).filter(|version| *version <= newest)?;
            Some((index, fields, version))
        });
        let (index, fields, version) = match usable {
            Some(usable) => usable,
            None => create_index(&folder)
                .map_err(|problem| StoreError::Index { path: folder.clone(), problem })?,
        };
        let writer = index
            .writer_with_num_threads(1, WRITER_MEMORY)
            .map_err(|error| StoreError::from_index(&store, &folder, &error))?;
        Ok(Self { store, uuid, fields, writer, version })
    }

    /// How many changes the index does not reflect yet.
    pub(super) fn behind(&self, database: &Database) -> Result<i64, StoreError> {
        changes_since(database, self.version)
    }

    /// Adds every change that the index does not reflect yet, and commits. `progress` is told the number
    /// of records done.
    pub(super) fn catch_up(
        &mut self,
        database: &Database,
        progress: &dyn Fn(usize),
    ) -> Result<(), StoreError> {
        let (mut done, mut after) = (0, self.version);
        loop {
            let (changes, last) = database.read(|sqlite| changes_after(sqlite, self.fields, after))?;
            let Some(last) = last else { break };
            done += changes.len();
            self.add(changes)?;
            after = last;
            if done % COMMIT_EVERY < CHANGES_AT_ONCE {
                self.commit(after)?;
            }
            progress(done);
        }
        let newest = database.read(identity)?.1;
        self.commit(newest)
    }

    /// Replaces the entries of some records. Nothing is searchable before the next commit, and until then
    /// what was added may wait in memory.
    pub(super) fn add(&self, entries: Vec<Entry>) -> Result<(), StoreError> {
        for Entry { record, document, replaces } in entries {
            if replaces {
                self.writer.delete_term(Term::from_field_u64(self.fields.record, row_term(record)));
            }
            if let Some(document) = document {
                self.writer.add_document(document).map_err(|error| self.error(&error))?;
            }
        }
        Ok(())
    }

    /// Makes what was added searchable, reflecting all changes up to `version`.
    pub(super) fn commit(&mut self, version: i64) -> Result<(), StoreError> {
        if version == self.version {
            return Ok(());
        }
        let reflects = Reflects { layout: LAYOUT, store: self.uuid.clone(), version };
        let payload = serde_json::to_string(&reflects).unwrap_or_default();
        let mut commit = || {
            let mut commit = self.writer.prepare_commit()?;
            commit.set_payload(&payload);
            commit.commit()
        };
        let committed = commit();
        committed.map_err(|error| self.error(&error))?;
        self.version = version;
        Ok(())
    }

    /// Waits until segments are merged, which makes searching fast.
    pub(super) fn finish(self) -> Result<(), StoreError> {
        let folder = folder_of(&self.store);
        self.writer
            .wait_merging_threads()
            .map_err(|error| StoreError::from_index(&self.store, &folder, &error))
    }

    fn error(&self, error: &TantivyError) -> StoreError {
        StoreError::from_index(&self.store, &folder_of(&self.store), error)
    }
}

/// How many records changed after a version.
pub(super) fn changes_since(database: &Database, version: i64) -> Result<i64, StoreError> {
    database.read(|sqlite| {
        let mut statement = sqlite.prepare_cached("SELECT count(*) FROM records WHERE version > ?1")?;
        statement.query_row([version], |row| row.get(0))
    })
}

/// Changes read at once while catching up.
const CHANGES_AT_ONCE: usize = 2_000;

type Changes = (Vec<Entry>, Option<i64>);

/// The next changes after a version, and the version of the last of them.
fn changes_after(sqlite: &Connection, fields: Fields, after: i64) -> Result<Changes, rusqlite::Error> {
    let mut statement = sqlite.prepare_cached(
        "SELECT r.id, s.connection, r.key, r.data, r.version, s.id
         FROM records r JOIN streams s ON s.id = r.stream
         WHERE r.version > ?1 ORDER BY r.version LIMIT ?2",
    )?;
    let mut rows = statement.query((after, i64::try_from(CHANGES_AT_ONCE).unwrap_or(i64::MAX)))?;
    let (mut entries, mut last) = (Vec::new(), None);
    while let Some(row) = rows.next()? {
        let record = row.get(0)?;
        let data = row.get_ref(3)?.as_str_or_null()?.and_then(|data| serde_json::from_str(data).ok());
        entries.push(match data {
            Some(data) => {
                let rows = Rows { record, stream: row.get(5)?, connection: row.get(1)? };
                Entry::new(fields, rows, row.get_ref(2)?.as_str()?, &data)
            }
            None => Entry::removal(record),
        });
        last = Some(row.get(4)?);
    }
    Ok((entries, last))
}

fn open_index(folder: &Path) -> Result<(Index, Fields), TantivyError> {
    let (schema, fields) = Fields::schema();
    let index = Index::open_in_dir(folder)?;
    if index.schema() != schema {
        return Err(TantivyError::SchemaError("the index has another layout".to_owned()));
    }
    index.tokenizers().register("fetchwell", StoreTokenizer::default());
    Ok((index, fields))
}

fn create_index(folder: &Path) -> Result<(Index, Fields, i64), String> {
    if folder.exists() {
        fs::remove_dir_all(folder).map_err(|error| error.to_string())?;
    }
    fs::create_dir_all(folder).map_err(|error| error.to_string())?;
    let (schema, fields) = Fields::schema();
    let index = Index::create_in_dir(folder, schema).map_err(|error| error.to_string())?;
    index.tokenizers().register("fetchwell", StoreTokenizer::default());
    Ok((index, fields, 0))
}

/// The version an index reflects: 0 before its first commit, `None` when it is another store's.
fn reflected_version(index: &Index, uuid: &str) -> Option<i64> {
    let Some(payload) = index.load_metas().ok()?.payload else { return Some(0) };
    let reflects: Reflects = serde_json::from_str(&payload).ok()?;
    (reflects.layout == LAYOUT && reflects.store == uuid).then_some(reflects.version)
}
