//! Deletes the records that no item gives any more.

use std::collections::HashSet;

use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Error, Row};

use super::items::{keep_stale, role};
use super::writer::PostgresSyncWriter;
use crate::source::contract::{
    Change, Fingerprint, ImportId, IncomingRecord, ItemId, MissingCounts, Role, StoreError,
};
use crate::source::postgres::tables::text;

/// Number of records that are deleted in one batch.
const REMOVED_AT_ONCE: usize = 1_000;

/// Returns the query for the records of the import `$1` that are stale or of a missing item, and that no present item gives.
fn candidates_sql() -> String {
    let (stale, gives) = (Role::Stale.number(), Role::Gives.number());
    format!(
        "SELECT DISTINCT m.stream, m.key FROM (
             SELECT s.stream, s.key, t.absence FROM fetchwell.item_records s
             JOIN fetchwell.import_items t ON t.id = s.item WHERE s.role = {stale} AND t.import = $1
             UNION ALL
             SELECT g.stream, g.key, t.absence FROM fetchwell.import_items t
             JOIN fetchwell.item_records g ON g.item = t.id WHERE t.import = $1 AND t.absence <> 0) m
         WHERE NOT EXISTS (SELECT 1 FROM fetchwell.item_records o JOIN fetchwell.import_items p ON p.id = o.item
             WHERE o.stream = m.stream AND o.key = m.key AND o.role = {gives} AND p.absence = 0)
           AND EXISTS (SELECT 1 FROM fetchwell.records r
             WHERE r.stream = m.stream AND r.key = m.key AND r.data IS NOT NULL)"
    )
}

/// Returns the condition of the items of the import `$1` that give records.
fn gives_records_sql() -> String {
    format!(
        "t.import = $1 AND t.absence = 0
         AND EXISTS (SELECT 1 FROM fetchwell.item_records m WHERE m.item = t.id AND m.role = {})",
        Role::Gives.number()
    )
}

async fn count(client: &Client, sql: &str, import: ImportId) -> Result<u64, Error> {
    Ok(client.query_one(sql, &[&import.0]).await?.get::<_, i64>(0).unsigned_abs())
}

impl PostgresSyncWriter<'_> {
    /// Returns the number of records that the import gives now as `of_records`. If items are missing, the number of items
    /// is in `of_items`.
    ///
    /// # Errors
    ///
    /// The database cannot be used.
    pub fn present(&self, has_missing: bool) -> Result<MissingCounts, StoreError> {
        let import = self.import();
        let items = "SELECT count(*) FROM fetchwell.import_items t WHERE t.import = $1
             AND EXISTS (SELECT 1 FROM fetchwell.item_records m WHERE m.item = t.id)";
        let records = format!(
            "SELECT count(*) FROM fetchwell.import_items t JOIN fetchwell.item_records m ON m.item = t.id
             WHERE t.import = $1 AND m.role IN ({}, {})",
            Role::Stale.number(),
            Role::Gives.number()
        );
        self.store.run(async |database| {
            Ok(MissingCounts {
                of_items: if has_missing { count(database.client(), items, import).await? } else { 0 },
                of_records: count(database.client(), &records, import).await?,
                ..MissingCounts::default()
            })
        })
    }

    /// Returns true if an earlier synchronization was interrupted before it deleted what is stale.
    ///
    /// # Errors
    ///
    /// The database cannot be used.
    pub fn has_stale(&self) -> Result<bool, StoreError> {
        let import = self.import();
        let sql = "SELECT EXISTS (SELECT 1 FROM fetchwell.item_records s JOIN fetchwell.import_items t ON t.id = s.item
             WHERE s.role = $2 AND t.import = $1)";
        self.store
            .run(async |database| Ok(database.query_one(sql, &[&import.0, &role(Role::Stale)]).await?.get(0)))
    }

    /// Returns the fingerprints of the present items that were read without a problem and give records.
    ///
    /// # Errors
    ///
    /// The database cannot be read or written.
    pub fn fingerprints(&mut self, missing: &HashSet<ItemId>) -> Result<HashSet<Fingerprint>, StoreError> {
        self.flush()?;
        let import = self.import();
        let sql = format!(
            "SELECT t.id, t.fingerprint FROM fetchwell.import_items t
             WHERE t.fingerprint IS NOT NULL AND t.problem IS NULL AND {}",
            gives_records_sql()
        );
        let fingerprint = |row: &Row| -> Option<Fingerprint> {
            let is_missing = missing.contains(&ItemId(row.get(0)));
            row.get::<_, &[u8]>(1).try_into().ok().filter(|_| !is_missing)
        };
        self.store.run(async |database| {
            Ok(database.query(&sql, &[&import.0]).await?.iter().filter_map(fingerprint).collect())
        })
    }

    /// Marks the items that are missing at the origin, and those with content that was found at another path. The records of
    /// `unreadable` items are kept. Returns what would be deleted, with the numbers of `present`.
    ///
    /// # Errors
    ///
    /// The database cannot be read or written.
    pub fn mark_missing(
        &mut self,
        gone: &[ItemId],
        moved: &[ItemId],
        unreadable: &[ItemId],
        present: MissingCounts,
    ) -> Result<MissingCounts, StoreError> {
        self.flush()?;
        let import = self.import();
        let ids = |items: &[ItemId]| items.iter().map(|item| item.0).collect::<Vec<i64>>();
        let (gone, moved, unreadable) = (ids(gone), ids(moved), ids(unreadable));
        self.store.run(async |database| {
            let reset = "UPDATE fetchwell.import_items SET absence = 0 WHERE import = $1 AND absence <> 0";
            database.execute(reset, &[&import.0]).await?;
            if !unreadable.is_empty() {
                keep_stale(database.client(), &unreadable).await?;
            }
            let mark = "UPDATE fetchwell.import_items SET absence = $2 WHERE id = ANY ($3) AND import = $1";
            for (items, absence) in [(&gone, 1_i32), (&moved, 2_i32)] {
                let values: [&(dyn ToSql + Sync); 3] = [&import.0, &absence, items];
                database.execute(mark, &values).await?;
            }
            let items = "SELECT count(*) FROM fetchwell.import_items t WHERE t.import = $1 AND t.absence = 1
                 AND EXISTS (SELECT 1 FROM fetchwell.item_records m WHERE m.item = t.id)";
            let records = format!("SELECT count(*) FROM ({} AND m.absence <> 2) c", candidates_sql());
            let client = database.client();
            let (items, records) =
                (count(client, items, import).await?, count(client, &records, import).await?);
            let giving = format!(
                "SELECT count(*) FROM (SELECT 1 FROM fetchwell.import_items t WHERE {} LIMIT 1) s",
                gives_records_sql()
            );
            let is_all = records > 0 && count(client, &giving, import).await? == 0;
            Ok(MissingCounts { items, records, is_all, ..present })
        })
    }

    /// Deletes the records that no item gives any more, and the items that are missing.
    ///
    /// # Errors
    ///
    /// The database cannot be read or written. Earlier batches stay written.
    pub fn remove_missing(&mut self, deleted_at: &str) -> Result<(), StoreError> {
        self.flush()?;
        let import = self.import();
        let sql = format!(
            "SELECT s.name, c.key FROM ({} LIMIT {REMOVED_AT_ONCE}) c JOIN fetchwell.streams s ON s.id = c.stream",
            candidates_sql()
        );
        loop {
            let deleted = |row: &Row| {
                let change = Change::Delete { deleted_at: Some(deleted_at.to_owned()) };
                Some(IncomingRecord {
                    stream: text(row, 0).parse().ok()?,
                    key: text(row, 1).parse().ok()?,
                    change,
                })
            };
            let deleted: Vec<IncomingRecord> = self.store.run(async |database| {
                Ok(database.query(&sql, &[&import.0]).await?.iter().filter_map(deleted).collect())
            })?;
            if deleted.is_empty() {
                break;
            }
            self.delete(&deleted)?;
        }
        self.store.run(async |database| {
            let stale = "DELETE FROM fetchwell.item_records WHERE role = $2
                 AND item IN (SELECT id FROM fetchwell.import_items WHERE import = $1)";
            database.execute(stale, &[&import.0, &role(Role::Stale)]).await?;
            let gone = "DELETE FROM fetchwell.import_items WHERE import = $1 AND absence <> 0";
            database.execute(gone, &[&import.0]).await.map(drop)
        })
    }
}
