//! The reader of SQLite databases: a stream for each table, a record for each row.
//!
//! The database is opened for reading only. Views, virtual tables and triggers are not used, and functions of a schema
//! that could have effects are disabled. No file stays beside the database: one in WAL mode that no other process has
//! open is read without locks, or from a copy if its log has changes.

use std::ffi::OsStr;
use std::fs::{self, File, Metadata};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use fetchwell_core::record::{RecordData, authored_values};
use fetchwell_source::contract::is_store_application;
use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags};
use serde_json::Value;
use url::Url;

use super::intake::Intake;
use super::item::{FileRecord, Item, ReadError, changed};
use super::values::{SizeLimits, time_of_value};

/// Maximum number of tables.
const MAX_TABLES: i64 = 1_000;

/// Maximum size of a value or row in bytes.
const MAX_VALUE_BYTES: i32 = 64 * 1024 * 1024;

/// Reads all tables of a database.
pub(crate) fn read_sqlite(item: &mut Item<'_>, intake: &mut Intake<'_>) -> Result<(), ReadError> {
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
    let original = file;
    let access = Access::for_file(file).map_err(|error| error.to_string())?;
    let copy = match access {
        Access::Copied => Some(copy_with_log(file).map_err(|error| error.to_string())?),
        Access::Locked | Access::Frozen(_) => None,
    };
    let file = copy.as_ref().map_or_else(|| file.to_owned(), |folder| folder.path().join(COPY));
    let database = open(&file, &access).map_err(|error| error.to_string())?;
    harden(&database).map_err(|error| error.to_string())?;
    check_application(&database)?;
    let tables = tables(&database).map_err(|error| format!("it is no readable database: {error}"))?;
    if tables.is_empty() {
        return Err("it has no tables".into());
    }
    let mut limits = SizeLimits::new(fs::metadata(&file).map_or(0, |metadata| metadata.len()));
    for table in tables {
        match read_table(&database, &table, item, &mut limits, intake) {
            Err(ReadError::Rejected(problem)) => {
                intake.reject_file(&format!("{}: table {table}", item.path), &problem);
            }
            other => other?,
        }
    }
    match access {
        Access::Frozen(before) if !before.is_current(original) => Err(changed().into()),
        Access::Locked | Access::Copied | Access::Frozen(_) => Ok(()),
    }
}

/// Name of the copy of a database.
const COPY: &str = "copy.db";

/// The way in which a database is read.
enum Access {
    /// With the locks of SQLite.
    Locked,
    /// Without locks: it is in WAL mode, has no log, and SQLite would create one.
    Frozen(State),
    /// From a copy: its log has changes, but no process has both open.
    Copied,
}

impl Access {
    fn for_file(file: &Path) -> io::Result<Self> {
        let state = State::read(file)?;
        let has_log = fs::metadata(beside(file, "-wal")).is_ok_and(|log| log.len() > 0);
        if !is_in_wal_mode(file)? || beside(file, "-shm").exists() {
            return Ok(Self::Locked);
        }
        Ok(if has_log { Self::Copied } else { Self::Frozen(state) })
    }
}

/// The properties of a database that a writer changes.
#[derive(PartialEq, Eq)]
struct State {
    bytes: u64,
    changed_at: Option<std::time::SystemTime>,
    log_bytes: u64,
}

impl State {
    fn read(file: &Path) -> io::Result<Self> {
        let metadata = fs::metadata(file)?;
        let log = fs::metadata(beside(file, "-wal")).as_ref().map_or(0, Metadata::len);
        Ok(Self { bytes: metadata.len(), changed_at: metadata.modified().ok(), log_bytes: log })
    }

    fn is_current(&self, file: &Path) -> bool {
        Self::read(file).is_ok_and(|now| now == *self)
    }
}

/// Returns the path of a file that SQLite keeps beside a database.
fn beside(file: &Path, ending: &str) -> PathBuf {
    let mut path = file.as_os_str().to_owned();
    path.push(OsStr::new(ending));
    path.into()
}

/// Returns true if the header of a database says that changes are written to a log first (WAL).
fn is_in_wal_mode(file: &Path) -> io::Result<bool> {
    let mut header = Vec::new();
    File::open(file)?.take(20).read_to_end(&mut header)?;
    Ok(header.get(18..20) == Some([2_u8, 2].as_slice()))
}

/// Copies a database and its log to a folder of its own, which is deleted with the returned value.
fn copy_with_log(file: &Path) -> io::Result<tempfile::TempDir> {
    let folder = tempfile::tempdir()?;
    let copy = folder.path().join(COPY);
    fs::copy(file, &copy)?;
    fs::copy(beside(file, "-wal"), beside(&copy, "-wal"))?;
    Ok(folder)
}

fn open(file: &Path, access: &Access) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    match access {
        Access::Frozen(_) => {
            let file = fs::canonicalize(file).unwrap_or_else(|_missing| file.to_owned());
            let mut address = Url::from_file_path(&file).map_err(|()| rusqlite::Error::InvalidPath(file))?;
            address.set_query(Some("immutable=1"));
            Connection::open_with_flags(address.as_str(), flags | OpenFlags::SQLITE_OPEN_URI)
        }
        Access::Locked | Access::Copied => Connection::open_with_flags(file, flags),
    }
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
    limits: &mut SizeLimits,
    intake: &mut Intake<'_>,
) -> Result<(), ReadError> {
    let broken = |error: rusqlite::Error| error.to_string();
    let key = key_columns(database, table).map_err(broken)?;
    // A row without a primary key is known by its number.
    let mut columns = if key.is_empty() { vec!["rowid AS \"_rowid\"".to_owned()] } else { Vec::new() };
    columns.extend(stored_columns(database, table).map_err(broken)?.iter().map(|name| quote(name)));
    let columns = columns.join(", ");
    let mut query = database.prepare(&format!("SELECT {columns} FROM {}", quote(table))).map_err(broken)?;
    let names: Vec<String> = query.column_names().map(str::to_owned).collect();
    let names_bytes: usize = names.iter().map(String::len).sum();
    // The path and the table are parts of the key and of its address.
    let own_bytes = names_bytes + item.path.len() + table.len();
    let mut rows = query.query([]).map_err(broken)?;
    let mut number = 0_u64;
    while let Some(row) = rows.next().map_err(broken)? {
        number += 1;
        let values = (0..names.len()).map(|at| row.get_ref(at).map(value_bytes));
        let bytes: usize = values.sum::<rusqlite::Result<_>>().map_err(broken)?;
        limits.take_row(own_bytes.saturating_add(bytes))?;
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

/// Returns the columns of a table, without those that are computed from others: a small row can have any number of
/// large ones.
fn stored_columns(database: &Connection, table: &str) -> rusqlite::Result<Vec<String>> {
    let mut query =
        database.prepare("SELECT name FROM pragma_table_xinfo(?1) WHERE hidden = 0 ORDER BY cid")?;
    query.query_map([table], |row| row.get(0))?.collect()
}

/// Returns a name as an identifier of SQL.
fn quote(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Returns the size of a value in bytes.
fn value_bytes(value: ValueRef<'_>) -> usize {
    match value {
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => bytes.len(),
        ValueRef::Null | ValueRef::Integer(_) | ValueRef::Real(_) => size_of::<Value>(),
    }
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
