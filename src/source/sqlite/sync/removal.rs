//! Deletes the records that no item gives any more, unless so many are missing that the origin is probably broken.

use std::collections::HashSet;

use rusqlite::Connection;

use super::items::keep_stale;
use super::writer::{Removal, SqliteSyncWriter};
use crate::saturate::saturated;
use crate::source::contract::{
    Change, Fingerprint, ImportId, IncomingRecord, ItemId, MissingCounts, Role, StoreError,
};

/// Number of records that are deleted in one batch.
const REMOVED_AT_ONCE: usize = 1_000;

/// Returns the query for the records of the import `?1` that are stale or of a missing item, and that no present item gives.
fn candidates_sql() -> String {
    let (stale, gives) = (Role::Stale.number(), Role::Gives.number());
    format!(
        "SELECT DISTINCT m.record FROM (
             SELECT s.record, t.absence FROM item_records s JOIN import_items t ON t.id = s.item
             WHERE s.role = {stale} AND t.import = ?1
             UNION ALL
             SELECT g.record, t.absence FROM import_items t JOIN item_records g ON g.item = t.id
             WHERE t.import = ?1 AND t.absence <> 0) m
         WHERE NOT EXISTS (SELECT 1 FROM item_records o JOIN import_items p ON p.id = o.item
             WHERE o.record = m.record AND o.role = {gives} AND p.absence = 0)
           AND EXISTS (SELECT 1 FROM records r WHERE r.id = m.record AND r.data IS NOT NULL)"
    )
}

/// Returns the condition of the items of the import `?1` that give records.
fn gives_records_sql() -> String {
    format!(
        "t.import = ?1 AND t.absence = 0
         AND EXISTS (SELECT 1 FROM item_records m WHERE m.item = t.id AND m.role = {})",
        Role::Gives.number()
    )
}

impl SqliteSyncWriter<'_> {
    /// Returns the number of records that the import gives now as `of_records`. If items are missing, the number of items
    /// is in `of_items`.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    pub fn present(&self, has_missing: bool) -> Result<MissingCounts, StoreError> {
        let import = self.import();
        self.store().database.read(|sqlite| {
            let items = "SELECT count(*) FROM import_items t WHERE t.import = ?1
                 AND EXISTS (SELECT 1 FROM item_records m WHERE m.item = t.id)";
            let records = format!(
                "SELECT count(*) FROM import_items t JOIN item_records m ON m.item = t.id
                 WHERE t.import = ?1 AND m.role IN ({}, {})",
                Role::Stale.number(),
                Role::Gives.number()
            );
            Ok(MissingCounts {
                of_items: if has_missing { count(sqlite, items, import)? } else { 0 },
                of_records: count(sqlite, &records, import)?,
                ..MissingCounts::default()
            })
        })
    }

    /// Returns true if an earlier synchronization was interrupted before it deleted what is stale.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    pub fn has_stale(&self) -> Result<bool, StoreError> {
        let import = self.import();
        self.store().database.read(|sqlite| {
            let sql = format!(
                "SELECT 1 FROM item_records s JOIN import_items t ON t.id = s.item
                 WHERE s.role = {} AND t.import = ?1",
                Role::Stale.number()
            );
            sqlite.prepare_cached(&sql)?.exists([import.0])
        })
    }

    /// Returns the fingerprints of the present items that were read without a problem and give records.
    ///
    /// # Errors
    ///
    /// The store cannot be read or written.
    pub fn fingerprints(&mut self, missing: &HashSet<ItemId>) -> Result<HashSet<Fingerprint>, StoreError> {
        self.flush()?;
        let import = self.import();
        self.store().database.read(|sqlite| {
            let sql = format!(
                "SELECT t.id, t.fingerprint FROM import_items t
                 WHERE t.fingerprint IS NOT NULL AND t.problem IS NULL AND {}",
                gives_records_sql()
            );
            let mut statement = sqlite.prepare_cached(&sql)?;
            let mut rows = statement.query([import.0])?;
            let mut found = HashSet::new();
            while let Some(row) = rows.next()? {
                if !missing.contains(&ItemId(row.get(0)?)) {
                    found.insert(row.get(1)?);
                }
            }
            Ok(found)
        })
    }

    /// Marks the items that are missing at the origin, and those with content that was found at another path. The records of
    /// `unreadable` items are kept. Returns what would be deleted, with the numbers of `present`.
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
        let import = self.import();
        let absences = gone.iter().map(|item| (item, 1)).chain(moved.iter().map(|item| (item, 2)));
        let absences: Vec<(&ItemId, i64)> = absences.collect();
        let is_marked = self.store().database.read(|sqlite| {
            let marked = "SELECT count(*) FROM import_items WHERE import = ?1 AND absence <> 0";
            Ok(count(sqlite, marked, import)? > 0)
        })?;
        if is_marked || !absences.is_empty() || !unreadable.is_empty() {
            self.mark(&absences, unreadable)?;
        }
        self.store().database.read(|sqlite| {
            // The first condition is that of an index.
            let items = "SELECT count(*) FROM import_items t
                 WHERE t.import = ?1 AND t.absence <> 0 AND t.absence = 1
                 AND EXISTS (SELECT 1 FROM item_records m WHERE m.item = t.id)";
            let records = format!("SELECT count(*) FROM ({} AND m.absence <> 2)", candidates_sql());
            let (items, records) = (count(sqlite, items, import)?, count(sqlite, &records, import)?);
            let giving = format!(
                "SELECT count(*) FROM (SELECT 1 FROM import_items t WHERE {} LIMIT 1)",
                gives_records_sql()
            );
            let is_all = records > 0 && count(sqlite, &giving, import)? == 0;
            Ok(MissingCounts { items, records, is_all, ..present })
        })
    }

    /// Replaces the marks of an earlier synchronization, and keeps the records of items that cannot be read, of which an
    /// interrupted one may have read a part.
    fn mark(&mut self, absences: &[(&ItemId, i64)], unreadable: &[ItemId]) -> Result<(), StoreError> {
        let import = self.import();
        self.change(|sqlite| {
            let reset = "UPDATE import_items SET absence = 0 WHERE import = ?1 AND absence <> 0";
            sqlite.prepare_cached(reset)?.execute([import.0])?;
            unreadable.iter().try_for_each(|item| keep_stale(sqlite, *item))?;
            let mark = "UPDATE import_items SET absence = ?2 WHERE id = ?1 AND import = ?3";
            let mut mark = sqlite.prepare_cached(mark)?;
            absences
                .iter()
                .try_for_each(|(item, absence)| mark.execute((item.0, absence, import.0)).map(drop))
        })
    }

    /// Deletes the records that no item gives any more, and the items that are missing.
    ///
    /// # Errors
    ///
    /// The store cannot be read or written. Earlier batches stay written.
    pub fn remove_missing(&mut self, deleted_at: &str) -> Result<(), StoreError> {
        loop {
            let candidates = self.candidates()?;
            let is_last = candidates.len() < REMOVED_AT_ONCE;
            for mut removal in candidates {
                removal.incoming.change = Change::Delete { deleted_at: Some(deleted_at.to_owned()) };
                self.remove(removal)?;
            }
            self.flush()?;
            if is_last {
                break;
            }
        }
        let import = self.import();
        self.change(|sqlite| {
            let stale = format!(
                "DELETE FROM item_records WHERE role = {}
                 AND item IN (SELECT id FROM import_items WHERE import = ?1)",
                Role::Stale.number()
            );
            sqlite.execute(&stale, [import.0])?;
            sqlite.execute("DELETE FROM import_items WHERE import = ?1 AND absence <> 0", [import.0])?;
            Ok(())
        })
    }

    /// Returns the next records to delete.
    fn candidates(&self) -> Result<Vec<Removal>, StoreError> {
        let import = self.import();
        self.store().database.read(|sqlite| {
            let sql = format!(
                "SELECT r.id, s.name, r.key, r.version FROM ({} LIMIT ?2) c
                 JOIN records r ON r.id = c.record JOIN streams s ON s.id = r.stream",
                candidates_sql()
            );
            let mut statement = sqlite.prepare_cached(&sql)?;
            let limit = saturated::<i64>(REMOVED_AT_ONCE);
            let mut rows = statement.query((import.0, limit))?;
            let mut candidates = Vec::new();
            while let Some(row) = rows.next()? {
                let names = (row.get_ref(1)?.as_str()?.parse(), row.get_ref(2)?.as_str()?.parse());
                let (Ok(stream), Ok(key)) = names else { continue };
                let change = Change::Delete { deleted_at: None };
                let incoming = IncomingRecord { stream, key, change };
                candidates.push(Removal { record: row.get(0)?, version: row.get(3)?, incoming });
            }
            Ok(candidates)
        })
    }
}

fn count(sqlite: &Connection, sql: &str, import: ImportId) -> Result<u64, rusqlite::Error> {
    sqlite.prepare_cached(sql)?.query_row([import.0], |row| row.get::<_, i64>(0)).map(i64::unsigned_abs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_half_and_more_than_twenty_are_suspicious() {
        let items =
            |items, of_items| MissingCounts { items, of_items, ..MissingCounts::default() }.is_suspicious();
        let records = |records, of_records| {
            MissingCounts { records, of_records, ..MissingCounts::default() }.is_suspicious()
        };
        for (missing, of, expect) in [
            (20, 20, false),
            (21, 21, true),
            (21, 41, true),
            (21, 42, false),
            (500, 1_000, false),
            (501, 1_000, true),
        ] {
            assert_eq!(items(missing, of), expect, "{missing} of {of}");
            assert_eq!(records(missing, of), expect, "{missing} of {of}");
        }
    }
}
