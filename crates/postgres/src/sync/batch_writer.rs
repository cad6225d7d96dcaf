//! Writes batches, each in one transaction.
//!
//! A batch locks the row of the store's version, so the batches of several imports follow each other and versions become
//! visible in their order.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use deadpool_postgres::{Object, Transaction};
use fetchwell_core::handle::StreamName;
use fetchwell_source::contract::{
    BATCH_BYTES, BATCH_RECORDS, ImportId, IncomingRecord, ItemId, ItemState, PostgresError, Role, StoreError,
    Tally,
};
use fetchwell_source::manifest::Manifest;
use fetchwell_source::sync::{ItemPart, ItemStart, RecordBatch, Relation, WrittenBatch};
use tokio_postgres::Error;

use super::bulk_import::BulkImport;
use super::items::{begin_items, end_items};
use super::relations::Relations;
use super::waiter::{STEP_TIMEOUT, Waiter};
use crate::administration::Lease;
use crate::batch::RecordPlace;
use crate::document_rows::DocumentRows;
use crate::preparation::Prepared;
use crate::terms::{merge_many_terms, warn_unmerged};
use crate::transaction::lock_version;
use crate::writer::{OpenBatch, OpenStream};

/// Writer of the batches of one import.
pub(super) struct BatchWriter {
    pub(super) database: Object,
    pub(super) state: State,
    /// Right to import into the connection.
    pub(super) lease: Arc<Lease>,
    pub(super) bulk: BulkImport,
    pub(super) waiter: Waiter,
}

/// State of batches.
pub(super) struct State {
    /// Import that is synchronized; `None` for an import to its end.
    pub(super) import: Option<ImportId>,
    pub(super) connection: i64,
    pub(super) manifest: Option<Manifest>,
    pub(super) streams: HashMap<StreamName, OpenStream>,
    /// Writer of the documents, if the connection is a project.
    pub(super) documents: Option<DocumentRows>,
}

impl fmt::Debug for BatchWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BatchWriter").field("waiter", &self.waiter).finish_non_exhaustive()
    }
}

/// Returns true for a batch that is written because it is full.
pub(super) fn is_full(batch: &RecordBatch) -> bool {
    batch.records.len() >= BATCH_RECORDS || batch.bytes >= BATCH_BYTES
}

impl BatchWriter {
    /// Writes a batch, and merges numbers of words if there are many.
    pub(super) fn write(
        &mut self,
        batch: RecordBatch,
        prepared: Vec<Prepared>,
    ) -> Result<WrittenBatch, StoreError> {
        let Self { database, state, lease, bulk, waiter } = self;
        if is_full(&batch) && state.import.is_none() {
            bulk.begin(waiter, database)?;
        }
        if !lease.is_held() {
            return Err(PostgresError::LeaseLost { database: waiter.address() }.into());
        }
        let written = waiter.wait(waiter.transact(database, async |transaction| {
            Box::pin(state.write(transaction, batch, prepared)).await
        }));
        match written {
            Ok(Some(written)) => {
                let merged = waiter.wait_long(merge_many_terms(database, waiter.pool()));
                if matches!(merged, Ok(true)) {
                    BulkImport::free_merged_rows(waiter, database);
                }
                warn_unmerged(merged);
                Ok(written)
            }
            Ok(None) => Err(StoreError::ImportRemoved(waiter.place())),
            Err(error) => {
                // A stream created in this transaction is rolled back with it.
                state.streams.clear();
                Err(error)
            }
        }
    }
}

impl State {
    /// Writes a batch in a transaction. Returns `None` if the import was removed.
    async fn write(
        &mut self,
        transaction: &Transaction<'_>,
        batch: RecordBatch,
        prepared: Vec<Prepared>,
    ) -> Result<Option<WrittenBatch>, Error> {
        // A synchronization has the timeout of its role.
        if self.import.is_none() {
            let milliseconds = STEP_TIMEOUT.as_millis();
            transaction.batch_execute(&format!("SET LOCAL statement_timeout = {milliseconds}")).await?;
        }
        let version = lock_version(transaction).await?;
        if let Some(import) = self.import {
            let sql = "SELECT 1 FROM fetchwell.imports WHERE id = $1 AND connection = $2";
            if transaction.query_opt(sql, &[&import.0, &self.connection]).await?.is_none() {
                return Ok(None);
            }
            // Another process may have removed a stream.
            self.streams.clear();
        }
        let RecordBatch { records, items, finds_sharing, .. } = batch;
        let mut written = WrittenBatch::default();
        if !records.is_empty() {
            let mut open = OpenBatch {
                connection: self.connection,
                manifest: self.manifest.as_ref(),
                streams: &mut self.streams,
                documents: self.documents.as_mut(),
            };
            written.tally =
                Box::pin(open.apply(transaction, version, &records, prepared, Tally::default())).await?;
        }
        for parts in different(&items) {
            self.write_parts(transaction, parts, &records, finds_sharing, &mut written).await?;
        }
        Ok(Some(written))
    }

    /// Writes parts of different items.
    async fn write_parts(
        &self,
        transaction: &Transaction<'_>,
        parts: &[ItemPart],
        records: &[IncomingRecord],
        finds_sharing: bool,
        written: &mut WrittenBatch,
    ) -> Result<(), Error> {
        let path = |part: &'_ ItemPart| match &part.start {
            ItemStart::Path(path) => Some(path.clone()),
            ItemStart::Known(_) => None,
        };
        let paths: Vec<String> = parts.iter().filter_map(path).collect();
        let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
        let mut begun = begin_items(transaction, self.import, &paths).await?.into_iter();
        let items = parts.iter().map(|part| match &part.start {
            ItemStart::Path(_) => begun.next(),
            ItemStart::Known(item) => Some(*item),
        });
        let items: Vec<(ItemId, &ItemPart)> =
            items.zip(parts).filter_map(|(item, part)| Some((item?, part))).collect();
        let mut rows: HashMap<&StreamName, i64> =
            self.streams.iter().map(|(name, stream)| (name, stream.row)).collect();
        let mut places = Relations::default();
        for (item, part) in &items {
            for relation in &part.relations {
                let (stream, key, role) = match relation {
                    Relation::Depends { stream, key } => (stream, key, Role::Depends),
                    Relation::Written { at, role } => {
                        let Some(IncomingRecord { stream, key, .. }) = records.get(*at) else { continue };
                        (stream, key, *role)
                    }
                };
                if !rows.contains_key(stream) {
                    let sql = "SELECT id FROM fetchwell.streams WHERE connection = $1 AND name = $2";
                    let found = transaction.query_opt(sql, &[&self.connection, &stream.as_str()]).await?;
                    rows.extend(found.map(|row| (stream, row.get(0))));
                }
                let Some(row) = rows.get(stream) else { continue };
                places.add(*item, RecordPlace { stream: *row, key: key.as_str().to_owned() }, role);
            }
        }
        let sharing_in = self.import.filter(|_| finds_sharing);
        written.sharing.extend(places.write(transaction, sharing_in).await?);
        written.items.extend(items.iter().map(|(item, _)| *item));
        let ended = items.iter().filter_map(|(item, part)| Some((*item, part.end.as_ref()?)));
        let ended: Vec<(ItemId, &ItemState)> = ended.collect();
        end_items(transaction, &ended).await
    }
}

/// Divides parts so that each piece has an item once. Nearly always there is one piece.
fn different(items: &[ItemPart]) -> Vec<&[ItemPart]> {
    let (mut pieces, mut rest) = (Vec::new(), items);
    while !rest.is_empty() {
        let mut paths = HashSet::new();
        // An item that goes on from an earlier batch is alone: its path may follow.
        let is_other = |part: &&ItemPart| match &part.start {
            ItemStart::Path(path) => paths.insert(path.clone()),
            ItemStart::Known(_) => false,
        };
        let length = rest.iter().take_while(is_other).count().max(1);
        let (piece, after) = rest.split_at(length);
        pieces.push(piece);
        rest = after;
    }
    pieces
}
