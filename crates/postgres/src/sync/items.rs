//! The items of an import: the files of its origin as they were last read.

use std::collections::{BTreeSet, HashMap};

use deadpool_postgres::Transaction;
use fetchwell_source::contract::{ImportId, ItemId, ItemState, KnownItem, Role};
use tokio_postgres::{Client, Error, Row};

use crate::preparation::without_nul;
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

/// Begins items with different paths: all of their records become stale. Returns the items in the order of the paths.
pub(super) async fn begin_items(
    transaction: &Transaction<'_>,
    import: Option<ImportId>,
    paths: &[&str],
) -> Result<Vec<ItemId>, Error> {
    if paths.is_empty() {
        return Ok(Vec::new());
    }
    let sql = "INSERT INTO fetchwell.import_items (import, path) SELECT $1, path FROM unnest($2::text[]) AS p (path)
         ON CONFLICT (import, path) DO UPDATE SET stamp = NULL, absence = 0 RETURNING path, id";
    let statement = transaction.prepare_cached(sql).await?;
    let import = import.map(|import| import.0);
    let rows = transaction.query(&statement, &[&import, &paths]).await?;
    let ids: HashMap<&str, i64> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
    let items: Vec<i64> = paths.iter().filter_map(|path| ids.get(path).copied()).collect();
    let stale = "UPDATE fetchwell.item_records SET role = $2 WHERE item = ANY ($1)";
    let statement = transaction.prepare_cached(stale).await?;
    transaction.execute(&statement, &[&items, &role(Role::Stale)]).await?;
    Ok(items.into_iter().map(ItemId).collect())
}

/// Ends items. The records that one with a problem gave before are no longer stale.
pub(super) async fn end_items(
    transaction: &Transaction<'_>,
    states: &[(ItemId, &ItemState)],
) -> Result<(), Error> {
    let problems = states.iter().filter(|(_, state)| state.problem.is_some());
    let problems: Vec<i64> = problems.map(|(item, _)| item.0).collect();
    if !problems.is_empty() {
        let sql = "UPDATE fetchwell.item_records SET role = $2 WHERE item = ANY ($1) AND role = $3";
        transaction.execute(sql, &[&problems, &role(Role::Gives), &role(Role::Stale)]).await?;
    }
    save_states(transaction.client(), states).await
}

/// Saves the states of different items.
pub(super) async fn save_states(client: &Client, states: &[(ItemId, &ItemState)]) -> Result<(), Error> {
    if states.is_empty() {
        return Ok(());
    }
    let sql = "UPDATE fetchwell.import_items i SET stamp = n.stamp, fingerprint = n.fingerprint, is_recent = n.is_recent,
             problem = n.problem, absence = 0
         FROM unnest($1::bigint[], $2::text[], $3::bytea[], $4::boolean[], $5::text[])
             AS n (id, stamp, fingerprint, is_recent, problem)
         WHERE i.id = n.id";
    let ids: Vec<i64> = states.iter().map(|(item, _)| item.0).collect();
    let stamps: Vec<Option<&str>> = states.iter().map(|(_, state)| state.stamp.as_deref()).collect();
    let fingerprints: Vec<Option<&[u8]>> =
        states.iter().map(|(_, state)| state.fingerprint.as_ref().map(|bytes| bytes.as_slice())).collect();
    let are_recent: Vec<bool> = states.iter().map(|(_, state)| state.is_recent).collect();
    let problems: Vec<Option<String>> =
        states.iter().map(|(_, state)| state.problem.as_deref().map(without_nul)).collect();
    client.execute(sql, &[&ids, &stamps, &fingerprints, &are_recent, &problems]).await.map(drop)
}

/// Returns the number of a role in the tables.
pub(super) fn role(role: Role) -> i32 {
    i32::try_from(role.number()).unwrap_or_default()
}
