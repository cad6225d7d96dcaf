//! Writes the records of an import in batches.
//!
//! A batch is one transaction, so it is written completely or not at all. It locks the row of the store's version, so the
//! batches of several imports follow each other and versions become visible in their order. Writing an unchanged record
//! is a no-op, so an import can be repeated, and an interrupted one continues when it is run again.

use std::collections::HashMap;
use std::future::Future;
use std::time::Duration;

use deadpool_postgres::{Object, Transaction};
use tokio::runtime::Handle;
use tokio::time::timeout;
use tokio_postgres::Error;
use tokio_postgres::error::SqlState;

use super::administration::{Job, Lease, LeaseAttempt, import_lease};
use super::batch::{Batch, RecordPlace, sort_value, without_nul};
use super::bulk::indexes::{build_missing_indexes, drop_indexes_of_empty_tables, is_index_missing};
use super::bulk::rows::{existing, put_rows};
use super::document_rows::{DocumentRows, is_project};
use super::pool::PostgresPool;
use super::search::backfill::add_missing_words;
use super::search::index::put_words;
use super::search::terms::{merge_many_terms, merge_terms, warn_unmerged};
use super::sort_key::SortKey;
use super::transaction::{begin_write, lock_version};
use super::url::PostgresUrl;
use super::vectors::index::{create_index, drop_empty_index};
use super::words::WORDS_VERSION;
use crate::handle::StreamName;
use crate::record::RecordData;
use crate::source::contract::{
    BATCH_BYTES, BATCH_RECORDS, Change, ImportResult, IncomingRecord, NewConnection, PostgresError,
    StoreError, Tally,
};
use crate::source::documents::ChunkIds;
use crate::source::manifest::Manifest;
use crate::source::manifest::kinds::Kinds;
use crate::source::manifest::observed::ObservedFields;

/// Maximum time of a batch, in which it may also wait for the batch of another import.
const BATCH_TIMEOUT: Duration = Duration::from_secs(300);

/// Maximum time to build the indexes of records or vectors, or to merge the words of a large import.
pub(super) const INDEX_TIMEOUT: Duration = Duration::from_secs(6 * 3_600);

/// Number of records after which the server gets new statistics.
const MANY_RECORDS: u64 = 1_000;

/// Statements after an import of many records. New words are in a list until they are sorted into the index, and merged
/// changes of terms leave empty space.
const AFTER_MANY_RECORDS: [&str; 2] = [
    "SELECT gin_clean_pending_list('fetchwell.texts_by_word');
     ANALYZE fetchwell.records, fetchwell.texts, fetchwell.terms",
    "VACUUM fetchwell.term_changes",
];

/// Number of records that get new sort values at a time.
const UPDATED_RECORDS: i32 = 256;

/// Writer for one connection of a store. Its methods block, and are called on a thread that is not one of the runtime.
pub struct PostgresWriter {
    pool: PostgresPool,
    runtime: Handle,
    database: Object,
    connection: i64,
    manifest: Option<Manifest>,
    streams: HashMap<StreamName, OpenStream>,
    /// Writer of the documents of a project that is copied.
    documents: Option<DocumentRows>,
    batch: Vec<IncomingRecord>,
    batch_bytes: usize,
    tally: Tally,
    /// Right to import into the connection.
    lease: Lease,
    /// Right to build the indexes at the end, if the tables were empty.
    bulk: Option<Lease>,
    /// True until the first full batch.
    can_be_bulk: bool,
}

impl std::fmt::Debug for PostgresWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PostgresWriter").field("pool", &self.pool).finish_non_exhaustive()
    }
}

/// Stream that is being written to.
#[derive(Debug)]
pub(super) struct OpenStream {
    pub(super) row: i64,
    cursor_field: Option<String>,
    fields: ObservedFields,
}

impl PostgresWriter {
    /// Opens the connection, creating it and the tables if they do not exist.
    ///
    /// # Errors
    ///
    /// Returns an error if the database cannot be used.
    pub fn open(
        pool: &PostgresPool,
        runtime: &Handle,
        connection: &NewConnection,
    ) -> Result<Self, StoreError> {
        Self::open_with(pool, runtime, connection, None)
    }

    /// Opens the connection of a project that is copied, with the ids of its chunks.
    ///
    /// # Errors
    ///
    /// As [`Self::open`].
    pub fn open_copy(
        pool: &PostgresPool,
        runtime: &Handle,
        connection: &NewConnection,
        chunks: ChunkIds,
    ) -> Result<Self, StoreError> {
        Self::open_with(pool, runtime, connection, Some(chunks))
    }

    fn open_with(
        pool: &PostgresPool,
        runtime: &Handle,
        connection: &NewConnection,
        chunks: Option<ChunkIds>,
    ) -> Result<Self, StoreError> {
        let NewConnection { connection_id, connector_key, display_name, manifest } = connection;
        let lease = import_lease(pool, runtime, connection_id)?;
        let opened = wait(runtime, pool, async {
            let mut database = pool.connection().await?;
            let failed = |error| pool.failure(&error);
            let transaction = begin_write(&mut database, pool.url()).await.map_err(failed)?;
            if is_project(transaction.client(), connection_id).await.map_err(failed)? && chunks.is_none() {
                return Ok(None);
            }
            let sql =
                "INSERT INTO fetchwell.connections (connection_id, connector_key, display_name, manifest)
                 VALUES ($1, $2, coalesce($3, $1), $4)
                 ON CONFLICT (connection_id) DO UPDATE SET
                     display_name = coalesce($3, connections.display_name),
                     manifest = coalesce($4, connections.manifest)
                 RETURNING id, manifest";
            let connector_key = without_nul(connector_key);
            let display_name = display_name.as_deref().map(without_nul);
            let row = transaction
                .query_one(sql, &[&connection_id.as_str(), &connector_key, &display_name, manifest])
                .await
                .map_err(failed)?;
            let connection: i64 = row.get(0);
            let documents = match chunks {
                None => None,
                Some(chunks) => {
                    let rows = DocumentRows::find(&transaction, connection).await.map_err(failed)?;
                    rows.map(|rows| rows.with_chunk_ids(chunks))
                }
            };
            transaction.commit().await.map_err(failed)?;
            if documents.is_some() {
                drop_empty_index(&mut database, pool.url()).await.map_err(failed)?;
            }
            Ok(Some((database, connection, row.get::<_, Option<String>>(1), documents)))
        });
        let Some((mut database, connection, manifest, documents)) = opened? else {
            return Err(StoreError::IsProject(connection_id.to_string()));
        };
        // Each step is a transaction of its own, so that an import can be interrupted.
        while wait(runtime, pool, async {
            add_missing_words(&mut database, pool.url()).await.map_err(|error| pool.failure(&error))
        })? {}
        warn_unmerged(wait_within(INDEX_TIMEOUT, runtime, pool, merge_terms(&mut database, pool)));
        Ok(Self {
            pool: pool.clone(),
            runtime: runtime.clone(),
            database,
            connection,
            manifest: manifest.and_then(|manifest| Manifest::from_stored(&manifest)),
            streams: HashMap::new(),
            documents,
            batch: Vec::with_capacity(BATCH_RECORDS),
            batch_bytes: 0,
            tally: Tally::default(),
            lease,
            bulk: None,
            can_be_bulk: true,
        })
    }

    /// Adds a record to the next batch.
    ///
    /// # Errors
    ///
    /// Returns an error if the batch was full and could not be written. Earlier batches stay written.
    pub fn write(&mut self, record: IncomingRecord, bytes: usize) -> Result<(), StoreError> {
        self.batch.push(record);
        self.batch_bytes += bytes;
        if self.batch.len() >= BATCH_RECORDS || self.batch_bytes >= BATCH_BYTES {
            if std::mem::take(&mut self.can_be_bulk) {
                self.begin_bulk()?;
            }
            self.flush()?;
        }
        Ok(())
    }

    /// Drops the indexes if the tables are empty: building them at the end takes less time.
    fn begin_bulk(&mut self) -> Result<(), StoreError> {
        let Self { pool, runtime, database, .. } = self;
        self.bulk = wait(runtime, pool, async {
            let LeaseAttempt::Taken(lease) = Lease::try_take(pool, Job::BuildIndexes).await? else {
                return Ok(None);
            };
            match drop_indexes_of_empty_tables(database, pool.url()).await {
                Ok(is_dropped) => Ok(is_dropped.then_some(lease)),
                // A reader uses the tables.
                Err(error)
                    if matches!(
                        error.code(),
                        Some(&(SqlState::LOCK_NOT_AVAILABLE | SqlState::T_R_DEADLOCK_DETECTED))
                    ) =>
                {
                    Ok(None)
                }
                Err(error) => Err(pool.failure(&error)),
            }
        })?;
        Ok(())
    }

    /// Builds indexes that are missing after a large import, this one or an interrupted one.
    fn build_indexes(&mut self) -> Result<(), StoreError> {
        let Self { pool, runtime, database, bulk, documents, .. } = self;
        let has_documents = documents.is_some();
        let building = async {
            if has_documents {
                create_index(database, pool.url()).await.map_err(|error| pool.failure(&error))?;
            }
            let is_missing = is_index_missing(database, pool.url()).await;
            if !is_missing.map_err(|error| pool.failure(&error))? {
                return Ok(());
            }
            let lease = match bulk.take() {
                Some(lease) => LeaseAttempt::Taken(lease),
                None => Lease::try_take(pool, Job::BuildIndexes).await?,
            };
            // The import that has the lease builds them.
            if let LeaseAttempt::Taken(_lease) = lease {
                build_missing_indexes(database, pool.url()).await.map_err(|error| pool.failure(&error))?;
            }
            Ok::<(), PostgresError>(())
        };
        wait_within(INDEX_TIMEOUT, runtime, pool, building)
    }

    /// Writes the last batch.
    ///
    /// # Errors
    ///
    /// Returns an error if it could not be written. Earlier batches stay written.
    pub fn finish(mut self) -> Result<ImportResult, StoreError> {
        self.flush()?;
        let Self { pool, runtime, database, .. } = &mut self;
        let merged = wait_within(INDEX_TIMEOUT, runtime, pool, merge_terms(database, pool));
        let index_problem = self.build_indexes().and(merged).err();
        if self.tally.added + self.tally.changed >= MANY_RECORDS {
            let Self { pool, runtime, database, .. } = &self;
            for statement in AFTER_MANY_RECORDS {
                // Only the owner of the tables may do this. The server does it by itself, too, but later.
                let _refused = wait(runtime, pool, async {
                    database.batch_execute(statement).await.map_err(|error| pool.failure(&error))
                });
            }
        }
        Ok(ImportResult { tally: self.tally, index_problem })
    }

    /// Writes the records that were added and not yet written.
    ///
    /// # Errors
    ///
    /// Returns an error if they could not be written; they are dropped. Earlier batches stay written.
    pub fn flush(&mut self) -> Result<(), StoreError> {
        let incoming = std::mem::take(&mut self.batch);
        self.batch_bytes = 0;
        if incoming.is_empty() {
            return Ok(());
        }
        let Self { pool, runtime, database, connection, manifest, streams, documents, tally, lease, .. } =
            self;
        if !lease.is_held() {
            return Err(PostgresError::LeaseLost { database: pool.url().to_string() }.into());
        }
        let written = wait(runtime, pool, async {
            let writing = OpenBatch {
                connection: *connection,
                manifest: manifest.as_ref(),
                streams: &mut *streams,
                documents: documents.as_mut(),
            };
            let written = Box::pin(writing.write(database, pool.url(), &incoming, *tally)).await;
            written.map_err(|error| pool.failure(&error))
        });
        match written {
            Ok(written) => *tally = written,
            Err(error) => {
                // A stream created in this transaction is rolled back with it.
                streams.clear();
                return Err(error);
            }
        }
        let merged = wait_within(INDEX_TIMEOUT, runtime, pool, merge_many_terms(database, pool));
        warn_unmerged(merged);
        Ok(())
    }
}

/// Waits for a step of an import on its own thread.
pub(super) fn wait<Answer>(
    runtime: &Handle,
    pool: &PostgresPool,
    step: impl Future<Output = Result<Answer, PostgresError>>,
) -> Result<Answer, StoreError> {
    wait_within(BATCH_TIMEOUT, runtime, pool, step)
}

fn wait_within<Answer>(
    limit: Duration,
    runtime: &Handle,
    pool: &PostgresPool,
    step: impl Future<Output = Result<Answer, PostgresError>>,
) -> Result<Answer, StoreError> {
    let answer = runtime.block_on(async { timeout(limit, step).await });
    let late = || PostgresError::Timeout { database: pool.url().to_string() };
    Ok(answer.unwrap_or_else(|_elapsed| Err(late()))?)
}

/// Batch that is being written.
pub(super) struct OpenBatch<'a> {
    pub(super) connection: i64,
    pub(super) manifest: Option<&'a Manifest>,
    pub(super) streams: &'a mut HashMap<StreamName, OpenStream>,
    /// Writer of the documents, if the connection is a project.
    pub(super) documents: Option<&'a mut DocumentRows>,
}

impl OpenBatch<'_> {
    /// Writes a batch. Returns the counts of the import.
    async fn write(
        mut self,
        database: &mut Object,
        url: &PostgresUrl,
        incoming: &[IncomingRecord],
        tally: Tally,
    ) -> Result<Tally, Error> {
        let transaction = begin_write(database, url).await?;
        let milliseconds = BATCH_TIMEOUT.as_millis();
        transaction.batch_execute(&format!("SET LOCAL statement_timeout = {milliseconds}")).await?;
        let version = lock_version(&transaction).await?;
        let tally = Box::pin(self.apply(&transaction, version, incoming, tally)).await?;
        transaction.commit().await?;
        Ok(tally)
    }

    /// Writes records in a transaction that has the lock of the store's version. Returns the counts of the import.
    pub(super) async fn apply(
        &mut self,
        transaction: &Transaction<'_>,
        version: i64,
        incoming: &[IncomingRecord],
        tally: Tally,
    ) -> Result<Tally, Error> {
        for record in incoming {
            self.open_stream(transaction, &record.stream).await?;
        }
        let places: Vec<RecordPlace> = incoming.iter().filter_map(|record| self.place(record)).collect();
        let states = existing(transaction, &places).await?;
        let mut batch = Batch::new(self.connection, states, tally, version);
        for (record, place) in incoming.iter().zip(places) {
            let Some(stream) = self.streams.get_mut(&record.stream) else { continue };
            // Done for unchanged records too: an older import may have known fewer types.
            if let Change::Put { data, .. } = &record.change {
                stream.fields.observe(data);
            }
            batch.apply(place, &record.change, stream.cursor_field.as_deref());
        }
        let rows = batch.take_rows();
        put_rows(transaction, &rows).await?;
        if let Some(documents) = &mut self.documents {
            let data = |data: &String| serde_json::from_str::<RecordData>(data).ok();
            let changed = rows.key.iter().zip(&rows.data);
            let changed = changed.map(|(key, text)| (key.clone(), text.as_ref().and_then(data)));
            documents.write(transaction, changed.collect()).await?;
            documents.commit(transaction).await?;
        }
        put_words(transaction, rows).await?;
        for (stream, by) in &batch.counts {
            let sql = "UPDATE fetchwell.streams SET record_count = record_count + $2 WHERE id = $1";
            transaction.execute(sql, &[stream, by]).await?;
        }
        for stream in self.streams.values_mut() {
            stream.save_fields(transaction).await?;
        }
        transaction
            .execute("UPDATE fetchwell.store SET version = $1 WHERE id = 1", &[&batch.version])
            .await?;
        Ok(batch.tally)
    }

    fn place(&self, record: &IncomingRecord) -> Option<RecordPlace> {
        let stream = self.streams.get(&record.stream)?.row;
        Some(RecordPlace { stream, key: record.key.as_str().to_owned() })
    }

    /// Opens a stream, creating it if there is none. A changed cursor field updates the sort value of every record in it.
    async fn open_stream(&mut self, transaction: &Transaction<'_>, name: &StreamName) -> Result<(), Error> {
        if self.streams.contains_key(name) {
            return Ok(());
        }
        let declared = self.manifest.and_then(|manifest| manifest.stream(name.as_str()).ok());
        let cursor_field = declared.and_then(|declared| declared.cursor_field.clone());
        let insert =
            "INSERT INTO fetchwell.streams (connection, name, cursor_field, indexed) VALUES ($1, $2, $3, $4)
             ON CONFLICT (connection, name) DO NOTHING";
        transaction
            .execute(insert, &[&self.connection, &name.as_str(), &cursor_field, &WORDS_VERSION])
            .await?;
        let select = "SELECT id, cursor_field FROM fetchwell.streams WHERE connection = $1 AND name = $2";
        let found = transaction.query_one(select, &[&self.connection, &name.as_str()]).await?;
        let row: i64 = found.get(0);
        let before: Option<String> = found.get(1);
        let fields =
            transaction.query("SELECT name, kinds FROM fetchwell.fields WHERE stream = $1", &[&row]).await?;
        let fields = fields.iter().map(|field| (field.get(0), Kinds::from_bits(field.get(1)))).collect();
        if before != cursor_field {
            update_sort_values(transaction, row, cursor_field.as_deref()).await?;
        }
        let stream = OpenStream { row, cursor_field, fields: ObservedFields::new(fields) };
        self.streams.insert(name.clone(), stream);
        Ok(())
    }
}

impl OpenStream {
    /// Saves the fields that are new since the last save. Another import may have seen other types.
    async fn save_fields(&mut self, transaction: &Transaction<'_>) -> Result<(), Error> {
        let unsaved = self.fields.take_unsaved();
        // A field name with a NUL character, which PostgreSQL does not store, is not listed.
        let unsaved: Vec<_> = unsaved.into_iter().filter(|field| !field.name.contains('\0')).collect();
        let kinds: HashMap<&str, i64> =
            unsaved.iter().map(|field| (field.name.as_str(), field.kinds.bits())).collect();
        if kinds.is_empty() {
            return Ok(());
        }
        let (names, kinds): (Vec<&str>, Vec<i64>) = kinds.into_iter().unzip();
        let sql = "INSERT INTO fetchwell.fields (stream, name, kinds)
             SELECT $1, name, kinds FROM unnest($2::text[], $3::bigint[]) AS new (name, kinds)
             ON CONFLICT (stream, name) DO UPDATE SET kinds = fields.kinds | excluded.kinds";
        transaction.execute(sql, &[&self.row, &names, &kinds]).await?;
        Ok(())
    }
}

/// Gives every record of a stream the sort value of another cursor field.
async fn update_sort_values(
    transaction: &Transaction<'_>,
    stream: i64,
    cursor_field: Option<&str>,
) -> Result<(), Error> {
    transaction
        .execute("UPDATE fetchwell.streams SET cursor_field = $2 WHERE id = $1", &[&stream, &cursor_field])
        .await?;
    let select = "SELECT key, data, emitted_at FROM fetchwell.records WHERE stream = $1 AND data IS NOT NULL";
    let statement = transaction.prepare_cached(select).await?;
    let portal = transaction.bind(&statement, &[&stream]).await?;
    loop {
        let rows = transaction.query_portal(&portal, UPDATED_RECORDS).await?;
        if rows.is_empty() {
            return Ok(());
        }
        let (mut keys, mut values): (Vec<&str>, Vec<Vec<u8>>) = (Vec::new(), Vec::new());
        for row in &rows {
            let data: RecordData = serde_json::from_str(row.get(1)).unwrap_or_default();
            let emitted_at: Option<&str> = row.get(2);
            keys.push(row.get(0));
            values.push(SortKey::new(&sort_value(cursor_field, &data, emitted_at)).bytes);
        }
        let update = "UPDATE fetchwell.records r SET sort_value = n.sort_value
             FROM unnest($2::text[], $3::bytea[]) AS n (key, sort_value) WHERE r.stream = $1 AND r.key = n.key";
        transaction.execute(update, &[&stream, &keys, &values]).await?;
    }
}
