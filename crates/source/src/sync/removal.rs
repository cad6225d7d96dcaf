//! Deletes the records that no item gives any more, unless so many are missing that the origin is probably broken.

use std::collections::HashSet;

use super::tables::ItemChange;
use super::writer::ImportWriter;
use crate::contract::{Change, Fingerprint, ItemId, MissingCounts, StoreError};

/// Number of records that are deleted in one batch.
const REMOVED_AT_ONCE: usize = 1_000;

impl ImportWriter {
    /// Returns the number of records that the import gives now as `of_records`. If items are missing, the number of items
    /// is in `of_items`.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    pub fn present(&self, has_missing: bool) -> Result<MissingCounts, StoreError> {
        let items = self.sql.items_with_records(if has_missing { "true" } else { "false" });
        let [of_items, of_records] = self.counts(&[items, self.sql.given_records()])?;
        Ok(MissingCounts { of_items, of_records, ..MissingCounts::default() })
    }

    /// Returns true if an earlier synchronization was interrupted before it deleted what is stale.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    pub fn has_stale(&self) -> Result<bool, StoreError> {
        let [stale] = self.counts(&[self.sql.any_stale()])?;
        Ok(stale > 0)
    }

    /// Returns the fingerprints of the present items that were read without a problem and give records.
    ///
    /// # Errors
    ///
    /// The store cannot be read or written.
    pub fn fingerprints(&mut self, missing: &HashSet<ItemId>) -> Result<HashSet<Fingerprint>, StoreError> {
        self.flush()?;
        let found = self.tables.fingerprints(&self.sql.fingerprints())?.into_iter();
        Ok(found.filter(|(item, _)| !missing.contains(item)).map(|(_, fingerprint)| fingerprint).collect())
    }

    /// Marks the items that are missing at the origin, and those with content that was found at another path. The records of
    /// `unreadable` items are kept, of which an interrupted synchronization may have read a part. Returns what would be
    /// deleted, with the numbers of `present`.
    ///
    /// # Errors
    ///
    /// The store cannot be read or written.
    pub fn mark_missing(
        &mut self,
        gone: &[ItemId],
        moved: &[ItemId],
        unreadable: &[ItemId],
        present: MissingCounts,
    ) -> Result<MissingCounts, StoreError> {
        self.flush()?;
        let sql = &self.sql;
        let has_marks = !(gone.is_empty() && moved.is_empty() && unreadable.is_empty());
        if has_marks || self.counts(&[sql.any_marked()])? != [0] {
            self.tables.change(&[
                ItemChange { sql: sql.reset_marks(), items: None },
                ItemChange { sql: sql.keep_stale(), items: Some(unreadable) },
                ItemChange { sql: sql.mark(1), items: Some(gone) },
                ItemChange { sql: sql.mark(2), items: Some(moved) },
            ])?;
        }
        // The first condition is that of an index.
        let items = sql.items_with_records("t.absence <> 0 AND t.absence = 1");
        let [items, records, giving] = self.counts(&[items, sql.missing_records(), sql.any_giving()])?;
        Ok(MissingCounts { items, records, is_all: records > 0 && giving == 0, ..present })
    }

    /// Deletes the records that no item gives any more, and the items that are missing.
    ///
    /// # Errors
    ///
    /// The store cannot be read or written. Earlier batches stay written.
    pub fn remove_missing(&mut self, deleted_at: &str) -> Result<(), StoreError> {
        self.flush()?;
        loop {
            let mut removals = self.tables.removals(&self.sql.removals(REMOVED_AT_ONCE))?;
            if removals.is_empty() {
                break;
            }
            for removal in &mut removals {
                removal.incoming.change = Change::Delete { deleted_at: Some(deleted_at.to_owned()) };
            }
            self.tally += self.tables.remove(removals)?;
        }
        self.tables.change(&[
            ItemChange { sql: self.sql.forget_stale(), items: None },
            ItemChange { sql: self.sql.forget_missing(), items: None },
        ])
    }

    /// Returns the numbers of several queries.
    fn counts<const NUMBERS: usize>(
        &self,
        queries: &[String; NUMBERS],
    ) -> Result<[u64; NUMBERS], StoreError> {
        let sql = format!("SELECT ({})", queries.join("), ("));
        Ok(self.tables.count(&sql, NUMBERS)?.try_into().unwrap_or([0; NUMBERS]))
    }
}
