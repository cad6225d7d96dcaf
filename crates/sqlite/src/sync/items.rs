//! The items of an import: the files of its origin as they were last read.

use std::collections::{BTreeSet, HashMap};

use fetchwell_source::contract::{ImportId, ItemId, ItemState, KnownItem, Role, ScopeRows};
use rusqlite::Connection;

use super::imports::has_tables;

/// Returns the items of an import by path.
pub(super) fn items(
    sqlite: &Connection,
    import: ImportId,
) -> Result<HashMap<String, KnownItem>, rusqlite::Error> {
    let mut statement = sqlite.prepare_cached(
        "SELECT path, id, stamp, fingerprint, is_recent, problem, absence <> 0 FROM import_items WHERE import = ?1",
    )?;
    let items = statement.query_map([import.0], |row| {
        let state = ItemState {
            stamp: row.get(2)?,
            fingerprint: row.get(3)?,
            is_recent: row.get(4)?,
            problem: row.get(5)?,
        };
        Ok((row.get(0)?, KnownItem { id: ItemId(row.get(1)?), state, is_gone: row.get(6)? }))
    })?;
    items.collect()
}

/// Returns the paths of the items that are present and could not be read completely, with the reasons.
pub(super) fn unreadable(
    sqlite: &Connection,
    import: ImportId,
) -> Result<Vec<(String, String)>, rusqlite::Error> {
    let mut statement = sqlite.prepare_cached(
        "SELECT path, problem FROM import_items
         WHERE import = ?1 AND problem IS NOT NULL AND absence = 0 ORDER BY path",
    )?;
    statement.query_map([import.0], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
}

/// Returns the given items, and all items of the import that share a record with one of them, directly or through
/// others.
pub(super) fn related(
    sqlite: &Connection,
    import: ImportId,
    items: &BTreeSet<ItemId>,
) -> Result<BTreeSet<ItemId>, rusqlite::Error> {
    let mut statement = sqlite.prepare_cached(
        "SELECT DISTINCT o.item FROM item_records m JOIN item_records o ON o.record = m.record
         JOIN import_items t ON t.id = o.item WHERE m.item = ?1 AND o.item <> ?1 AND t.import = ?2",
    )?;
    let (mut related, mut pending) = (items.clone(), Vec::from_iter(items.iter().copied()));
    while let Some(item) = pending.pop() {
        let mut others = statement.query((item.0, import.0))?;
        while let Some(row) = others.next()? {
            let other = ItemId(row.get(0)?);
            if related.insert(other) {
                pending.push(other);
            }
        }
    }
    Ok(related)
}

/// Notes the items that give records of a scope, before these are removed. A store without imports has none.
pub(crate) fn note_removed_items(sqlite: &Connection, place: &ScopeRows) -> Result<(), rusqlite::Error> {
    if !has_tables(sqlite)? {
        return Ok(());
    }
    // A store of an earlier release does not have all tables.
    sqlite.execute_batch(include_str!("schema.sql"))?;
    if let Some(record) = place.record {
        let sql = "INSERT OR IGNORE INTO removed_items SELECT item FROM item_records WHERE record = ?1";
        sqlite.execute(sql, [record.row])?;
        return Ok(());
    }
    let sql = "INSERT OR IGNORE INTO removed_items SELECT DISTINCT m.item FROM item_records m
         JOIN records r ON r.id = m.record WHERE r.stream = ?1";
    place.streams.iter().try_for_each(|stream| sqlite.execute(sql, [stream.row()]).map(drop))
}

/// Schedules the items of which records were removed to be read again.
pub(super) fn read_removed_again(sqlite: &Connection, import: ImportId) -> Result<(), rusqlite::Error> {
    sqlite.execute_batch(include_str!("schema.sql"))?;
    let items = "SELECT r.item FROM removed_items r JOIN import_items t ON t.id = r.item WHERE t.import = ?1";
    sqlite.execute(&format!("UPDATE import_items SET stamp = NULL WHERE id IN ({items})"), [import.0])?;
    sqlite.execute(&format!("DELETE FROM removed_items WHERE item IN ({items})"), [import.0])?;
    Ok(())
}

/// Begins an item: all of its records become stale.
pub(super) fn begin_item(
    sqlite: &Connection,
    import: Option<ImportId>,
    path: &str,
) -> Result<ItemId, rusqlite::Error> {
    let mut put = sqlite.prepare_cached(
        "INSERT INTO import_items (import, path) VALUES (?1, ?2)
         ON CONFLICT (import, path) DO UPDATE SET stamp = NULL, absence = 0 RETURNING id",
    )?;
    let item: i64 = put.query_row((import.map(|import| import.0), path), |row| row.get(0))?;
    let stale = "UPDATE item_records SET role = ?2 WHERE item = ?1";
    sqlite.prepare_cached(stale)?.execute((item, Role::Stale.number()))?;
    Ok(ItemId(item))
}

/// Saves the relation of an item to a record. An item that gives a record may have another one with the same key.
pub(super) fn put_relation(
    sqlite: &Connection,
    item: ItemId,
    record: i64,
    role: Role,
) -> Result<(), rusqlite::Error> {
    let sql = "INSERT INTO item_records (item, record, role) VALUES (?1, ?2, ?3)
         ON CONFLICT (item, record) DO UPDATE SET role = ?3 WHERE role <> ?4 OR ?3 <> ?5";
    let [role, gives, depends] = [role, Role::Gives, Role::Depends].map(Role::number);
    sqlite.prepare_cached(sql)?.execute((item.0, record, role, gives, depends)).map(drop)
}

/// Returns the other items of the import that have a record, which is not stale.
pub(super) fn sharing_items(
    sqlite: &Connection,
    import: Option<ImportId>,
    item: ItemId,
    record: i64,
) -> Result<Vec<ItemId>, rusqlite::Error> {
    let mut others = sqlite.prepare_cached(
        "SELECT o.item FROM item_records o JOIN import_items t ON t.id = o.item
         WHERE o.record = ?1 AND o.item <> ?2 AND o.role <> ?3 AND t.import = ?4",
    )?;
    let values = (record, item.0, Role::Stale.number(), import.map(|import| import.0));
    others.query_map(values, |row| row.get(0).map(ItemId))?.collect()
}

/// Ends an item. With a problem, the records that it gave before are no longer stale.
pub(super) fn end_item(sqlite: &Connection, item: ItemId, state: &ItemState) -> Result<(), rusqlite::Error> {
    if state.problem.is_some() {
        let sql = "UPDATE item_records SET role = ?2 WHERE item = ?1 AND role = ?3";
        let values = (item.0, Role::Gives.number(), Role::Stale.number());
        sqlite.prepare_cached(sql)?.execute(values)?;
    }
    save_state(sqlite, item, state)
}

/// Saves the state of an item with unchanged content.
pub(super) fn save_state(
    sqlite: &Connection,
    item: ItemId,
    state: &ItemState,
) -> Result<(), rusqlite::Error> {
    let mut update = sqlite.prepare_cached(
        "UPDATE import_items SET stamp = ?2, fingerprint = ?3, is_recent = ?4, problem = ?5, absence = 0 WHERE id = ?1",
    )?;
    let ItemState { stamp, fingerprint, is_recent, problem } = state;
    update.execute((item.0, stamp, fingerprint, is_recent, problem))?;
    Ok(())
}
