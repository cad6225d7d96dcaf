//! The reader of SQLite databases: a stream for each table, a record for each row.
//!
//! The database is opened for reading only. Views, virtual tables and triggers are not used, and functions of a schema
//! that could have effects are disabled.

use std::io::Write;
use std::path::Path;

use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags};
use serde_json::Value;

use super::intake::Intake;
use super::item::{FileRecord, Item, ReadError};
use super::values::time_of_value;
use crate::record::{RecordData, authored_values};
use crate::source::store::is_store_application;

/// Maximum number of tables.
const MAX_TABLES: i64 = 1_000;

/// Maximum size of a value or row in bytes.
const MAX_VALUE_BYTES: i32 = 64 * 1024 * 1024;

/// Reads all tables of a database.
pub(super) fn read_sqlite(item: &mut Item<'_>, intake: &mut Intake<'_>) -> Result<(), ReadError> {
    if let Some(file) = item.on_disk.clone() {
        return read_tables(&file, item, intake);
    }
    // SQLite reads files only. An entry of an archive is copied to one, which is deleted afterwards.
    let bytes = item.read_all()?;
    let mut file = tempfile::NamedTempFile::new().map_err(|error| error.to_string())?;
    file.write_all(&bytes).and_then(|()| file.flush()).map_err(|error| error.to_string())?;
    read_tables(file.path(), item, intake)
}

fn read_tables(file: &Path, item: &Item<'_>, intake: &mut Intake<'_>) -> Result<(), ReadError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let database = Connection::open_with_flags(file, flags).map_err(|error| error.to_string())?;
    harden(&database).map_err(|error| error.to_string())?;
    check_application(&database)?;
    let tables = tables(&database).map_err(|error| format!("it is no readable database: {error}"))?;
    if tables.is_empty() {
        return Err("it has no tables".into());
    }
    for table in tables {
        match read_table(&database, &table, item, intake) {
            Err(ReadError::Rejected(reason)) => {
                intake.reject(&format!("{}: table {table}", item.path), &reason);
            }
            other => other?,
        }
    }
    Ok(())
}

/// Refuses stores and their vectors. An import into such a store would make it larger each time.
fn check_application(database: &Connection) -> Result<(), ReadError> {
    // A file that is no database has no id, and is refused when its tables are read.
    let id = database.pragma_query_value(None, "application_id", |row| row.get(0));
    if id.is_ok_and(is_store_application) {
        return Err("it is a store of fetchwell or belongs to one; import the original files".into());
    }
    Ok(())
}

/// Disables what a hostile schema could use.
fn harden(database: &Connection) -> rusqlite::Result<()> {
    database.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    database.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    database.set_limit(Limit::SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES)?;
    database.pragma_update(None, "cell_size_check", true)
}

/// Returns the names of the tables, without those of SQLite and of its extensions.
fn tables(database: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut query = database.prepare(
        "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'
         ORDER BY name LIMIT ?1",
    )?;
    query.query_map([MAX_TABLES], |row| row.get(0))?.collect()
}

fn read_table(
    database: &Connection,
    table: &str,
    item: &Item<'_>,
    intake: &mut Intake<'_>,
) -> Result<(), ReadError> {
    let broken = |error: rusqlite::Error| error.to_string();
    let quoted = table.replace('"', "\"\"");
    let key = key_columns(database, table).map_err(broken)?;
    // A row without a primary key is known by its number.
    let columns = if key.is_empty() { "rowid AS \"_rowid\", *" } else { "*" };
    let mut query = database.prepare(&format!("SELECT {columns} FROM \"{quoted}\"")).map_err(broken)?;
    let names: Vec<String> = query.column_names().map(str::to_owned).collect();
    let mut rows = query.query([]).map_err(broken)?;
    let mut number = 0_u64;
    while let Some(row) = rows.next().map_err(broken)? {
        number += 1;
        let mut data = RecordData::new();
        for (at, name) in names.iter().enumerate() {
            data.insert(name.clone(), value_of(row.get_ref(at).map_err(broken)?));
        }
        let id = match data.shift_remove("_rowid").filter(|_| key.is_empty()) {
            Some(id) => id.to_string(),
            None => key.iter().map(|column| key_text(data.get(column))).collect::<Vec<_>>().join(","),
        };
        let emitted_at = authored_values(&data).find_map(time_of_value).or_else(|| item.changed_at.clone());
        let key = format!("{}/{id}", item.path);
        let record = FileRecord { stream: table.to_owned(), key, data, emitted_at, identity: None };
        record.take_into(&format!("{}: row {number} of {table}", item.path), intake)?;
    }
    Ok(())
}

/// Returns the columns of the primary key in their order.
fn key_columns(database: &Connection, table: &str) -> rusqlite::Result<Vec<String>> {
    let mut query = database.prepare("SELECT name FROM pragma_table_info(?1) WHERE pk > 0 ORDER BY pk")?;
    query.query_map([table], |row| row.get(0))?.collect()
}

/// Returns a value as JSON. Bytes that are no text are left out.
fn value_of(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => Value::from(number),
        ValueRef::Real(number) => Value::from(number),
        ValueRef::Text(text) => Value::from(String::from_utf8_lossy(text)),
        ValueRef::Blob(bytes) => std::str::from_utf8(bytes).map_or(Value::Null, Value::from),
    }
}

fn key_text(value: Option<&Value>) -> String {
    match value {
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stores_and_vectors_are_refused() {
        for (id, expect) in [(0x6677_656C, true), (0x6677_7665, true), (0, false), (7, false)] {
            let database = Connection::open_in_memory().unwrap();
            database.pragma_update(None, "application_id", id).unwrap();
            assert_eq!(check_application(&database).is_err(), expect, "{id:x}");
        }
    }
}
