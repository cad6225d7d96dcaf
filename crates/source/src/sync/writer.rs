//! Collects the records of an import, and the items that give them, in batches.
//!
//! A batch is one transaction, so records and their relations to items are both written or none. Writing an unchanged record is
//! a no-op, so an import can be repeated, and an interrupted one continues when it is run again.

use std::collections::BTreeSet;
use std::mem::take;

use fetchwell_core::handle::{RecordId, StreamName};

use super::item_sql::ItemSql;
use super::tables::{ImportTables, ItemPart, ItemStart, RecordBatch, Relation, WrittenBatch};
use crate::contract::{
    BATCH_BYTES, BATCH_RECORDS, Change, ImportResult, IncomingRecord, IndexProgress, ItemId, ItemState, Role,
    StoreError, Tally,
};
use crate::documents::is_document;

/// Writer of one import. An import to its end writes records only; a synchronization writes them in items.
#[derive(Debug)]
pub struct ImportWriter {
    pub(super) tables: Box<dyn ImportTables>,
    pub(super) sql: ItemSql,
    pub(super) tally: Tally,
    /// True if other records than documents are refused.
    has_documents_only: bool,
    batch: RecordBatch,
    /// Number of steps in the batch: records, relations, beginnings and ends of items.
    steps: usize,
    /// Item that was begun in an earlier batch and not ended.
    open: Option<ItemId>,
    /// Items of this pass, and those that are missing. Others keep their records.
    scheduled: BTreeSet<ItemId>,
    /// True if there are items that are not scheduled.
    has_others: bool,
    /// Items that share a key, of which one is not scheduled.
    conflicts: BTreeSet<ItemId>,
}

impl ImportWriter {
    /// Creates a writer into tables, which refuses other records than documents with `has_documents_only`.
    #[must_use]
    pub fn new(tables: Box<dyn ImportTables>, sql: ItemSql, has_documents_only: bool) -> Self {
        Self {
            tables,
            sql,
            tally: Tally::default(),
            has_documents_only,
            batch: RecordBatch::default(),
            steps: 0,
            open: None,
            scheduled: BTreeSet::new(),
            has_others: false,
            conflicts: BTreeSet::new(),
        }
    }

    /// Saves the states of items with unchanged content.
    ///
    /// # Errors
    ///
    /// The store cannot be written.
    pub fn save_states(&self, states: &[(ItemId, ItemState)]) -> Result<(), StoreError> {
        if states.is_empty() { Ok(()) } else { self.tables.save_states(states) }
    }

    /// Begins a pass over items. `scheduled` are the known ones among them, and those that are missing; `has_others` is
    /// true if there are known items beside these.
    pub fn begin_pass(&mut self, scheduled: BTreeSet<ItemId>, has_others: bool) {
        (self.scheduled, self.has_others) = (scheduled, has_others);
    }

    /// Returns and clears the items that share keys with items outside of the pass. They have to be read together.
    #[must_use]
    pub fn take_conflicts(&mut self) -> BTreeSet<ItemId> {
        take(&mut self.conflicts)
    }

    /// Begins an item. Its earlier records stay until it has been read and [`Self::remove_missing`] is called.
    pub fn begin_item(&mut self, path: &str) {
        let start = ItemStart::Path(path.to_owned());
        self.batch.items.push(ItemPart { start, relations: Vec::new(), end: None });
        self.steps += 1;
    }

    /// Adds a record of the current item, if there is any, to the next batch. `bytes` is the size of its text.
    ///
    /// # Errors
    ///
    /// The batch was full and could not be written, or a project got a record that is no document. Earlier batches stay
    /// written.
    pub fn write(&mut self, record: IncomingRecord, bytes: usize) -> Result<(), StoreError> {
        if self.has_documents_only && !is_document(&record) {
            return Err(StoreError::NoDocument(record.key.to_string()));
        }
        let role = if matches!(record.change, Change::Put { .. }) { Role::Gives } else { Role::Stale };
        let at = self.batch.records.len();
        if let Some(part) = self.part() {
            part.relations.push(Relation::Written { at, role });
        }
        self.batch.records.push(record);
        self.batch.bytes += bytes;
        self.steps += 1;
        self.flush_full()
    }

    /// Notes that the current item has another record with the key of this one. The caller writes or calls
    /// [`Self::flush_full`] next.
    pub fn depend(&mut self, stream: StreamName, key: RecordId) {
        if let Some(part) = self.part() {
            part.relations.push(Relation::Depends { stream, key });
            self.steps += 1;
        }
    }

    /// Ends the current item. With a problem, its earlier records are kept.
    ///
    /// # Errors
    ///
    /// The batch was full and could not be written.
    pub fn end_item(&mut self, state: ItemState) -> Result<(), StoreError> {
        if let Some(part) = self.part() {
            part.end = Some(state);
        }
        self.steps += 1;
        self.flush_full()
    }

    /// Writes the last batch and completes the search index. Calls `progress` with the numbers of changes that were added to
    /// the index, and of those that it lacks.
    ///
    /// # Errors
    ///
    /// The last batch could not be written. Earlier batches stay written, and the next import or search completes the index.
    pub fn finish(mut self, progress: IndexProgress<'_>) -> Result<ImportResult, StoreError> {
        self.flush()?;
        self.tally += self.tables.complete()?;
        Ok(ImportResult { tally: self.tally, index_problem: self.tables.finish(self.tally, progress) })
    }

    /// Writes the steps that were added, if they are a full batch.
    ///
    /// # Errors
    ///
    /// They could not be written; they are dropped. Earlier batches stay written.
    pub fn flush_full(&mut self) -> Result<(), StoreError> {
        if self.steps >= BATCH_RECORDS || self.batch.bytes >= BATCH_BYTES { self.flush() } else { Ok(()) }
    }

    /// Writes the steps that were added and not yet written.
    ///
    /// # Errors
    ///
    /// They could not be written; they are dropped. Earlier batches stay written.
    pub fn flush(&mut self) -> Result<(), StoreError> {
        let batch = RecordBatch { finds_sharing: self.has_others, ..take(&mut self.batch) };
        if take(&mut self.steps) == 0 {
            return Ok(());
        }
        let is_open = batch.items.last().map(|part| part.end.is_none());
        let WrittenBatch { tally, items, sharing } = self.tables.write(batch)?;
        self.tally += tally;
        if let Some(is_open) = is_open {
            self.open = items.last().copied().filter(|_| is_open);
        }
        self.scheduled.extend(items);
        let conflicts = sharing.into_iter().filter(|(_, other)| !self.scheduled.contains(other));
        self.conflicts.extend(conflicts.flat_map(|(item, other)| [item, other]));
        Ok(())
    }

    /// Returns the part of the current item in the batch. An import to its end has no items.
    fn part(&mut self) -> Option<&mut ItemPart> {
        if let (Some(item), true) = (self.open, self.batch.items.is_empty()) {
            let start = ItemStart::Known(item);
            self.batch.items.push(ItemPart { start, relations: Vec::new(), end: None });
        }
        self.batch.items.last_mut().filter(|part| part.end.is_none())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::super::item_sql::TableNames;
    use super::super::tables::{ItemChange, Removal};
    use super::*;
    use crate::contract::{Fingerprint, no_progress};

    /// Tables that note the parts of batches, and in which item 7 has each record of other items.
    #[derive(Debug, Clone, Default)]
    struct NotedTables(Arc<Mutex<Vec<String>>>);

    impl ImportTables for NotedTables {
        fn write(&mut self, batch: RecordBatch) -> Result<WrittenBatch, StoreError> {
            let mut written = WrittenBatch::default();
            let mut noted = vec![batch.records.len().to_string()];
            for (number, part) in (1..).zip(&batch.items) {
                let item = match &part.start {
                    ItemStart::Path(_) => ItemId(number),
                    ItemStart::Known(item) => *item,
                };
                written.items.push(item);
                if batch.finds_sharing {
                    written.sharing.push((item, ItemId(7)));
                }
                let end = if part.end.is_some() { " end" } else { "" };
                noted.push(format!("{} {}{end}", item.0, part.relations.len()));
            }
            self.0.lock().unwrap().push(noted.join(", "));
            Ok(written)
        }

        fn remove(&mut self, _removals: Vec<Removal>) -> Result<Tally, StoreError> {
            Ok(Tally::default())
        }

        fn save_states(&self, _states: &[(ItemId, ItemState)]) -> Result<(), StoreError> {
            Ok(())
        }

        fn count(&self, _sql: &str, numbers: usize) -> Result<Vec<u64>, StoreError> {
            Ok(vec![0; numbers])
        }

        fn fingerprints(&self, _sql: &str) -> Result<Vec<(ItemId, Fingerprint)>, StoreError> {
            Ok(Vec::new())
        }

        fn removals(&self, _sql: &str) -> Result<Vec<Removal>, StoreError> {
            Ok(Vec::new())
        }

        fn change(&self, _changes: &[ItemChange<'_>]) -> Result<(), StoreError> {
            Ok(())
        }

        fn finish(self: Box<Self>, _tally: Tally, _progress: IndexProgress<'_>) -> Option<StoreError> {
            None
        }
    }

    const NAMES: TableNames = TableNames { schema: "", record: &["record"], row: &["id"], listed: "= ?1" };

    fn writer(tables: &NotedTables) -> ImportWriter {
        ImportWriter::new(Box::new(tables.clone()), ItemSql::new(&NAMES, None), false)
    }

    fn record(key: &str) -> IncomingRecord {
        let change = Change::Delete { deleted_at: None };
        IncomingRecord { stream: "notes".parse().unwrap(), key: key.parse().unwrap(), change }
    }

    #[test]
    fn an_item_continues_in_the_next_batch() {
        let tables = NotedTables::default();
        let mut writer = writer(&tables);
        writer.begin_item("a.md");
        writer.write(record("a"), 1).unwrap();
        writer.end_item(ItemState::default()).unwrap();
        writer.begin_item("b.md");
        writer.flush().unwrap();
        writer.write(record("b"), 1).unwrap();
        writer.depend("notes".parse().unwrap(), "a".parse().unwrap());
        writer.end_item(ItemState::default()).unwrap();
        writer.flush().unwrap();
        // After its end there is no item, as in an import to its end.
        writer.write(record("c"), 1).unwrap();
        writer.depend("notes".parse().unwrap(), "a".parse().unwrap());
        writer.finish(&no_progress).unwrap();
        assert_eq!(*tables.0.lock().unwrap(), ["1, 1 1 end, 2 0", "1, 2 2 end", "1"]);
    }

    #[test]
    fn items_outside_of_the_pass_are_conflicts() {
        let tables = NotedTables::default();
        let mut writer = writer(&tables);
        for (scheduled, has_others, expect) in
            [(vec![], false, vec![]), (vec![7], true, vec![]), (vec![], true, vec![1, 7])]
        {
            writer.begin_pass(scheduled.into_iter().map(ItemId).collect(), has_others);
            writer.begin_item("a.md");
            writer.flush().unwrap();
            let conflicts: Vec<i64> = writer.take_conflicts().into_iter().map(|item| item.0).collect();
            assert_eq!(conflicts, expect);
        }
    }

    #[test]
    fn repeated_keys_are_written_in_batches() {
        let tables = NotedTables::default();
        let mut writer = writer(&tables);
        writer.begin_item("b.md");
        for _ in 0..BATCH_RECORDS * 2 {
            writer.depend("notes".parse().unwrap(), "a".parse().unwrap());
            writer.flush_full().unwrap();
        }
        let first = format!("0, 1 {}", BATCH_RECORDS - 1);
        let second = format!("0, 1 {BATCH_RECORDS}");
        assert_eq!(*tables.0.lock().unwrap(), [first, second]);
    }
}
