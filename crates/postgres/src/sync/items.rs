//! The items of an import: the files of its origin as they were last read.

use std::collections::{BTreeSet, HashMap};

use deadpool_postgres::Transaction;
use fetchwell_source::contract::{ImportId, ItemId, ItemState, KnownItem, Role};
use tokio_postgres::{Client, Error, Row};

use crate::batch::without_nul;
use crate::tables::{optional_text, text};

/// Returns the items of an import by path.
pub(super) async fn items(client: &Client, import: ImportId) -> Result<HashMap<String, KnownItem>, Error> {
    let sql =
        "SELECT path, id, stamp, fingerprint, is_recent, problem, absence <> 0 FROM fetchwell.import_items
         WHERE import = $1";
    let item = |row: &Row| {
        let fingerprint = row.try_get::<_, Option<&[u8]>>(3).ok().flatten();
        let state = ItemState {
            stamp: optional_text(row, 2).map(str::to_owned),
            fingerprint: fingerprint.and_then(|bytes| bytes.try_into().ok()),
            is_recent: row.try_get(4).unwrap_or_default(),
            problem: optional_text(row, 5).map(str::to_owned),
        };
        let id = ItemId(row.try_get(1).unwrap_or_default());
        (text(row, 0).to_owned(), KnownItem { id, state, is_gone: row.try_get(6).unwrap_or_default() })
    };
    Ok(client.query(sql, &[&import.0]).await?.iter().map(item).collect())
}

/// Returns the paths of the items that are present and could not be read completely, with the reasons.
pub(super) async fn unreadable(client: &Client, import: ImportId) -> Result<Vec<(String, String)>, Error> {
    let sql = "SELECT path, problem FROM fetchwell.import_items
         WHERE import = $1 AND problem IS NOT NULL AND absence = 0 ORDER BY path";
    let rows = client.query(sql, &[&import.0]).await?;
    Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
}

/// Returns the given items, and all items of the import that share a record with one of them, directly or through others.
pub(super) async fn related(
    client: &Client,
    import: ImportId,
    items: &BTreeSet<ItemId>,
) -> Result<BTreeSet<ItemId>, Error> {
    let sql = "SELECT DISTINCT o.item FROM fetchwell.item_records m
         JOIN fetchwell.item_records o ON o.stream = m.stream AND o.key = m.key
         JOIN fetchwell.import_items t ON t.id = o.item WHERE m.item = ANY ($1) AND t.import = $2";
    let (mut related, mut pending) = (items.clone(), Vec::from_iter(items.iter().map(|item| item.0)));
    while !pending.is_empty() {
        let found = client.query(sql, &[&pending, &import.0]).await?;
        pending = found.iter().map(|row| row.get(0)).filter(|item| related.insert(ItemId(*item))).collect();
    }
    Ok(related)
}

/// Schedules the items that gave records which were removed since to be read again.
pub(super) async fn read_removed_again(client: &Client, import: ImportId) -> Result<(), Error> {
    let sql = "UPDATE fetchwell.import_items SET stamp = NULL WHERE import = $1 AND id IN (
             SELECT m.item FROM fetchwell.item_records m WHERE m.role = $2 AND NOT EXISTS (
                 SELECT 1 FROM fetchwell.records r WHERE r.stream = m.stream AND r.key = m.key AND r.data IS NOT NULL))";
    let gives = role(Role::Gives);
    client.execute(sql, &[&import.0, &gives]).await.map(drop)
}

/// Begins an item: all of its records become stale.
pub(super) async fn begin_item(
    transaction: &Transaction<'_>,
    import: Option<ImportId>,
    path: &str,
) -> Result<ItemId, Error> {
    let sql = "INSERT INTO fetchwell.import_items (import, path) VALUES ($1, $2)
         ON CONFLICT (import, path) DO UPDATE SET stamp = NULL, absence = 0 RETURNING id";
    let statement = transaction.prepare_cached(sql).await?;
    let import = import.map(|import| import.0);
    let item: i64 = transaction.query_one(&statement, &[&import, &path]).await?.get(0);
    let stale = "UPDATE fetchwell.item_records SET role = $2 WHERE item = $1";
    let statement = transaction.prepare_cached(stale).await?;
    transaction.execute(&statement, &[&item, &role(Role::Stale)]).await?;
    Ok(ItemId(item))
}

/// Ends an item. With a problem, the records that it gave before are no longer stale.
pub(super) async fn end_item(
    transaction: &Transaction<'_>,
    item: ItemId,
    state: &ItemState,
) -> Result<(), Error> {
    if state.problem.is_some() {
        let sql = "UPDATE fetchwell.item_records SET role = $2 WHERE item = $1 AND role = $3";
        transaction.execute(sql, &[&item.0, &role(Role::Gives), &role(Role::Stale)]).await?;
    }
    save_state(transaction.client(), item, state).await
}

/// Saves the state of an item.
pub(super) async fn save_state(client: &Client, item: ItemId, state: &ItemState) -> Result<(), Error> {
    let ItemState { stamp, fingerprint, is_recent, problem } = state;
    let fingerprint = fingerprint.as_ref().map(|bytes| bytes.as_slice());
    let problem = problem.as_deref().map(without_nul);
    let sql = "UPDATE fetchwell.import_items SET stamp = $2, fingerprint = $3, is_recent = $4, problem = $5, absence = 0
         WHERE id = $1";
    client.execute(sql, &[&item.0, stamp, &fingerprint, is_recent, &problem]).await.map(drop)
}

/// Returns the number of a role in the tables.
pub(super) fn role(role: Role) -> i32 {
    i32::try_from(role.number()).unwrap_or_default()
}
