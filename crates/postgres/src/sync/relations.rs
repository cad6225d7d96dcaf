//! The relations of items to records.

use std::collections::HashMap;

use deadpool_postgres::Transaction;
use fetchwell_source::contract::{ImportId, ItemId, Role};
use tokio_postgres::Error;

use super::items::role;
use crate::batch::RecordPlace;

/// Relations of items that wait to be written.
#[derive(Debug, Default)]
pub(super) struct Relations(HashMap<(ItemId, RecordPlace), Role>);

impl Relations {
    /// Adds a relation. An item that gives a record may have another one with the same key.
    pub(super) fn add(&mut self, item: ItemId, place: RecordPlace, role: Role) {
        let known = self.0.entry((item, place)).or_insert(role);
        if *known != Role::Gives || role != Role::Depends {
            *known = role;
        }
    }

    /// Writes the relations to records that exist. Returns each item with the other items of an import that have one of its
    /// records, which is not stale.
    pub(super) async fn write(
        self,
        transaction: &Transaction<'_>,
        sharing_in: Option<ImportId>,
    ) -> Result<Vec<(ItemId, ItemId)>, Error> {
        let Self(relations) = self;
        if relations.is_empty() {
            return Ok(Vec::new());
        }
        let items: Vec<i64> = relations.keys().map(|(item, _)| item.0).collect();
        let streams: Vec<i64> = relations.keys().map(|(_, place)| place.stream).collect();
        let keys: Vec<&str> = relations.keys().map(|(_, place)| place.key.as_str()).collect();
        let roles: Vec<i32> = relations.values().map(|known| role(*known)).collect();
        let sql = "INSERT INTO fetchwell.item_records (item, stream, key, role)
             SELECT p.item, p.stream, p.key, p.role
             FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::integer[]) AS p (item, stream, key, role)
             WHERE EXISTS (SELECT 1 FROM fetchwell.records r WHERE r.stream = p.stream AND r.key = p.key OFFSET 0)
             ON CONFLICT (item, stream, key) DO UPDATE SET role = excluded.role
             WHERE item_records.role <> $5 OR excluded.role <> $6";
        let statement = transaction.prepare_cached(sql).await?;
        let (gives, depends) = (role(Role::Gives), role(Role::Depends));
        transaction.execute(&statement, &[&items, &streams, &keys, &roles, &gives, &depends]).await?;
        let Some(import) = sharing_in else { return Ok(Vec::new()) };
        let sql = "SELECT DISTINCT p.item, o.item
             FROM unnest($1::bigint[], $2::bigint[], $3::text[]) AS p (item, stream, key)
             JOIN fetchwell.item_records o ON o.stream = p.stream AND o.key = p.key
             JOIN fetchwell.import_items t ON t.id = o.item
             WHERE o.item <> p.item AND o.role <> $4 AND t.import = $5";
        let statement = transaction.prepare_cached(sql).await?;
        let stale = role(Role::Stale);
        let others = transaction.query(&statement, &[&items, &streams, &keys, &stale, &import.0]).await?;
        Ok(others.iter().map(|row| (ItemId(row.get(0)), ItemId(row.get(1)))).collect())
    }
}
