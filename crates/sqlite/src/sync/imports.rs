//! The imports that a store remembers.

use std::path::PathBuf;

use fetchwell_core::saturate::saturated;
use fetchwell_source::contract::{ImportId, ImportStatus, NewImport, RememberedImport, Tally};
use jiff::Timestamp;
use rusqlite::{Connection, Row, params};

use crate::tables::has_table;

/// Columns of an import, in the order of [`from_row`].
const COLUMNS: &str =
    "SELECT i.id, c.connection_id, c.connector_key, c.manifest, i.origin, i.kind, i.options,
     i.last_attempt, i.last_sync, i.added, i.changed, i.deleted, i.held, i.problem,
     (SELECT count(*) FROM import_items t WHERE t.import = i.id AND t.problem IS NOT NULL)
     FROM imports i JOIN connections c ON c.id = i.connection";

/// Returns true if the store has the tables of imports.
pub(super) fn has_tables(sqlite: &Connection) -> Result<bool, rusqlite::Error> {
    has_table(sqlite, "imports")
}

/// Returns all imports in the order in which they were added.
pub(super) fn imports(sqlite: &Connection) -> Result<Vec<RememberedImport>, rusqlite::Error> {
    let mut statement = sqlite.prepare_cached(&format!("{COLUMNS} ORDER BY i.id"))?;
    statement.query_map((), from_row)?.filter_map(Result::transpose).collect()
}

/// Returns an import, or `None` if it was removed.
pub(super) fn import(sqlite: &Connection, id: ImportId) -> Result<Option<RememberedImport>, rusqlite::Error> {
    Ok(imports(sqlite)?.into_iter().find(|import| import.id == id))
}

/// Inserts an import, or replaces the settings of that of the connection.
pub(super) fn put_import(
    sqlite: &Connection,
    connection: i64,
    new: &NewImport,
) -> Result<ImportId, rusqlite::Error> {
    let (origin, NewImport { kind, options, .. }) = (new.origin.to_string_lossy(), new);
    // Items that were read with other settings are read again.
    sqlite.execute(
        "UPDATE import_items SET stamp = NULL WHERE import IN (SELECT id FROM imports
         WHERE connection = ?1 AND (origin <> ?2 OR kind <> ?3 OR options <> ?4))",
        params![connection, origin, kind, options],
    )?;
    let values = params![connection, origin, kind, options];
    let sql = "INSERT INTO imports (connection, origin, kind, options) VALUES (?1, ?2, ?3, ?4)
         ON CONFLICT (connection) DO UPDATE SET origin = ?2, kind = ?3, options = ?4 RETURNING id";
    sqlite.query_row(sql, values, |row| row.get(0)).map(ImportId)
}

/// Saves the result of a synchronization.
pub(super) fn save_status(
    sqlite: &Connection,
    id: ImportId,
    status: &ImportStatus,
) -> Result<(), rusqlite::Error> {
    let ImportStatus { last_attempt, last_sync, tally, held, problem, .. } = status;
    let text = |time: &Option<Timestamp>| time.map(|time| time.to_string());
    let number = |count: u64| saturated::<i64>(count);
    sqlite.execute(
        "UPDATE imports SET last_attempt = ?2, last_sync = coalesce(?3, last_sync), added = ?4, changed = ?5,
             deleted = ?6, held = ?7, problem = ?8 WHERE id = ?1",
        params![
            id.0,
            text(last_attempt),
            text(last_sync),
            number(tally.added),
            number(tally.changed),
            number(tally.deleted),
            number(*held),
            problem
        ],
    )?;
    Ok(())
}

/// Reads an import. Returns `None` if its connection has no valid id.
fn from_row(row: &Row<'_>) -> Result<Option<RememberedImport>, rusqlite::Error> {
    let Ok(connection_id) = row.get_ref(1)?.as_str()?.parse() else { return Ok(None) };
    let time = |column| -> Result<Option<Timestamp>, rusqlite::Error> {
        Ok(row.get::<_, Option<String>>(column)?.and_then(|text| text.parse().ok()))
    };
    let number = |column| -> Result<u64, rusqlite::Error> { Ok(row.get::<_, i64>(column)?.unsigned_abs()) };
    Ok(Some(RememberedImport {
        id: ImportId(row.get(0)?),
        connection_id,
        connector_key: row.get(2)?,
        manifest: row.get(3)?,
        settings: NewImport {
            origin: PathBuf::from(row.get::<_, String>(4)?),
            kind: row.get(5)?,
            options: row.get(6)?,
        },
        status: ImportStatus {
            last_attempt: time(7)?,
            last_sync: time(8)?,
            tally: Tally { added: number(9)?, changed: number(10)?, deleted: number(11)?, unchanged: 0 },
            held: number(12)?,
            problem: row.get(13)?,
            unreadable: number(14)?,
        },
    }))
}
