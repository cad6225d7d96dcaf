//! Reads single records, their versions and the schema of a store.

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::allowance::Allowance;
use super::database::Database;
use super::expand;
use super::interrupt::ReadBounds;
use super::manifest::Manifest;
use super::selection::Projection;
use super::streams::stream_rows;
use crate::handle::{ConnectionId, RecordAddress, StreamName};
use crate::record::{ConnectionSchema, Record, RecordData, Schema, StreamSchema};
use crate::source::unknown_place::unknown_place;
use crate::source::{ConnectionChoice, RecordQuery, Selection, SourceError};

/// Columns of a record in the order that [`record_of`] reads. SQLite returns the length without loading the text.
pub(super) const RECORD_COLUMNS: &str = "r.key, r.data, r.emitted_at, s.name, c.connection_id, c.display_name, c.connector_key, octet_length(r.data)";

/// Tables of [`RECORD_COLUMNS`], for queries that know the row of the record or of its stream.
pub(super) const RECORD_TABLES: &str =
    "records r JOIN streams s ON s.id = r.stream JOIN connections c ON c.id = s.connection";

/// Returns the length in bytes of a record's text, or 0 for a deleted record.
pub(super) fn bytes_of_row(row: &Row<'_>) -> Result<usize, rusqlite::Error> {
    length_at(row, 7)
}

/// Reads a length from a column, or 0 if it is NULL.
pub(super) fn length_at(row: &Row<'_>, column: usize) -> Result<usize, rusqlite::Error> {
    let length = row.get::<_, Option<i64>>(column)?;
    Ok(length.and_then(|length| usize::try_from(length).ok()).unwrap_or(0))
}

/// Builds a record from a row. Returns `None` if it was deleted, exceeds the memory limit, or was damaged by another
/// program.
pub(super) fn record_of(row: &Row<'_>, allowance: &Allowance) -> Result<Option<Record>, rusqlite::Error> {
    if !allowance.take(bytes_of_row(row)?) {
        return Ok(None);
    }
    let Some(data) = row.get_ref(1)?.as_str_or_null()? else { return Ok(None) };
    let Ok(data) = serde_json::from_str::<RecordData>(data) else { return Ok(None) };
    let names = (name(row, 4)?, name(row, 3)?, name(row, 0)?);
    let (Some(connection), Some(stream), Some(record)) = names else { return Ok(None) };
    let address = RecordAddress { connection: Some(connection), stream, record };
    Ok(Some(Record {
        emitted_at: row.get(2)?,
        display_name: Some(row.get(5)?),
        connector_key: Some(row.get(6)?),
        ..Record::of(address, data)
    }))
}

fn name<Name: std::str::FromStr>(row: &Row<'_>, column: usize) -> Result<Option<Name>, rusqlite::Error> {
    Ok(row.get_ref(column)?.as_str()?.parse().ok())
}

pub(super) fn record(
    database: &Database,
    query: &RecordQuery,
    bounds: ReadBounds<'_>,
) -> Result<Record, SourceError> {
    let mut record = find(database, query, bounds.allowance)?;
    if !query.expand.is_empty() {
        let streams = stream_rows(database, &query.address.stream, record.address.connection.as_ref())?;
        for stream in &streams {
            expand::check(&query.expand, &stream.detail)?;
            database.ask(|sqlite| {
                let records = std::slice::from_mut(&mut record);
                expand::expand(sqlite, stream, &query.expand, records, bounds)
            })?;
        }
    }
    select_fields(database, record, &query.fields)
}

/// Returns the SQL for a record by key (?1), stream (?2) and connection (?3, NULL for any). CROSS JOIN fixes the
/// order of the join: first the few streams of that name, then the record in each by its key. SQLite has no
/// statistics on these tables and would otherwise scan all records.
fn find_sql() -> String {
    format!(
        "SELECT {RECORD_COLUMNS} FROM streams s CROSS JOIN connections c CROSS JOIN records r
         WHERE s.name = ?2 AND c.id = s.connection AND (?3 IS NULL OR c.connection_id = ?3)
           AND r.stream = s.id AND r.key = ?1"
    )
}

/// Returns the SQL for a record by the row id of its stream (?1) and its key (?2).
pub(super) fn by_key_sql() -> String {
    format!("SELECT {RECORD_COLUMNS} FROM {RECORD_TABLES} WHERE r.stream = ?1 AND r.key = ?2")
}

/// Returns the complete record at an address, without related records.
pub(super) fn find(
    database: &Database,
    query: &RecordQuery,
    allowance: &Allowance,
) -> Result<Record, SourceError> {
    let RecordAddress { connection, stream, record } = &query.address;
    let mut found = database.read(|sqlite| {
        let sql = find_sql();
        let asked = params![record.as_str(), stream.as_str(), connection.as_ref().map(ConnectionId::as_str)];
        let mut statement = sqlite.prepare_cached(&sql)?;
        let rows = statement.query_map(asked, |row| record_of(row, allowance))?;
        rows.filter_map(Result::transpose).collect::<Result<Vec<Record>, _>>()
    })?;
    match (found.pop(), found.as_slice()) {
        (Some(only), []) => Ok(only),
        (Some(last), others) => Err(SourceError::ChooseConnection {
            what: format!("record `{record}` of stream `{stream}`"),
            choices: others.iter().chain([&last]).filter_map(choice_of).collect(),
        }),
        (None, _) => Err(missing_record_error(database, &query.address)?),
    }
}

/// Returns the version of the one record at an address.
pub(super) fn version(database: &Database, address: &RecordAddress) -> Result<Option<String>, SourceError> {
    let RecordAddress { connection, stream, record } = address;
    let versions = database.read(|sqlite| {
        let mut statement = sqlite.prepare_cached(
            "SELECT o.uuid || '.' || r.version FROM store o CROSS JOIN streams s CROSS JOIN connections c CROSS JOIN records r
             WHERE s.name = ?2 AND c.id = s.connection AND (?3 IS NULL OR c.connection_id = ?3)
               AND r.stream = s.id AND r.key = ?1 AND r.data IS NOT NULL",
        )?;
        let asked = params![record.as_str(), stream.as_str(), connection.as_ref().map(ConnectionId::as_str)];
        let rows = statement.query_map(asked, |row| row.get(0))?;
        rows.collect::<Result<Vec<String>, _>>()
    })?;
    match <[String; 1]>::try_from(versions) {
        Ok([only]) => Ok(Some(only)),
        // The error, if there is one, is reported when the record is read.
        Err(_none_or_several) => Ok(None),
    }
}

fn choice_of(record: &Record) -> Option<ConnectionChoice> {
    let connection_id = record.address.connection.clone()?;
    Some(ConnectionChoice { connection_id, display_name: record.display_name.clone() })
}

/// Keeps only the named fields. A field that only this record lacks is left out; a field that its stream lacks is an
/// error.
fn select_fields(database: &Database, mut record: Record, fields: &[String]) -> Result<Record, SourceError> {
    if fields.is_empty() {
        return Ok(record);
    }
    if fields.iter().any(|field| !record.data.contains_key(field)) {
        let streams = stream_rows(database, &record.address.stream, record.address.connection.as_ref())?;
        Projection::new(&Selection::Fields(fields.to_vec()), &streams)?;
    }
    record.data.retain(|name, _| fields.contains(name));
    Ok(record)
}

/// Returns the error that says which part of an address is unknown: the connection, the stream, or the key.
fn missing_record_error(database: &Database, address: &RecordAddress) -> Result<SourceError, SourceError> {
    let RecordAddress { connection, stream, record } = address;
    let unknown = unknown_place(&schema(database)?, connection.as_ref(), Some(stream));
    Ok(unknown.unwrap_or_else(|| SourceError::SearchAgain {
        what: format!("there is no record `{record}` in stream `{stream}`"),
    }))
}

pub(super) fn schema(database: &Database) -> Result<Schema, SourceError> {
    Ok(database.read(read_schema)?)
}

fn read_schema(sqlite: &Connection) -> Result<Schema, rusqlite::Error> {
    let mut statement = sqlite.prepare_cached(
        "SELECT c.connection_id, c.display_name, c.connector_key, s.name, s.record_count, c.manifest
         FROM connections c LEFT JOIN streams s ON s.connection = c.id ORDER BY c.id, s.id",
    )?;
    let mut rows = statement.query(())?;
    let mut schema = Schema::default();
    while let Some(row) = rows.next()? {
        let Some(connection_id) = name::<ConnectionId>(row, 0)? else { continue };
        if schema.connections.last().is_none_or(|last| last.connection_id != connection_id) {
            let manifest = row.get_ref(5)?.as_str_or_null()?.and_then(Manifest::cached);
            schema.connections.push(ConnectionSchema {
                connection_id,
                source: None,
                display_name: Some(row.get(1)?),
                connector_key: Some(row.get(2)?),
                streams: Vec::new(),
                routes: manifest.map(|manifest| manifest.routes().to_vec()).unwrap_or_default(),
            });
        }
        let Some(last) = schema.connections.last_mut() else { continue };
        if let Some(stream) =
            row.get_ref(3)?.as_str_or_null()?.and_then(|stream| stream.parse::<StreamName>().ok())
        {
            let record_count = row.get::<_, i64>(4)?.try_into().ok();
            last.streams.push(StreamSchema { name: stream, record_count });
        }
    }
    Ok(schema)
}

/// Returns the row id of a connection.
pub(super) fn connection_row(sqlite: &Connection, id: &ConnectionId) -> Result<Option<i64>, rusqlite::Error> {
    let mut statement = sqlite.prepare_cached("SELECT id FROM connections WHERE connection_id = ?1")?;
    statement.query_row([id.as_str()], |row| row.get(0)).optional()
}

/// Returns the store's unique id and the version of its newest change.
pub(super) fn identity(sqlite: &Connection) -> Result<(String, i64), rusqlite::Error> {
    let mut statement = sqlite.prepare_cached("SELECT uuid, version FROM store WHERE id = 1")?;
    statement.query_row((), |row| Ok((row.get(0)?, row.get(1)?)))
}

#[cfg(test)]
mod tests {
    use super::super::changes::changes_sql;
    use super::*;

    /// Checks the query plans, because a store of a million records is too large for a test: no plan may scan all
    /// records.
    #[test]
    fn single_record_reads_do_not_scan() {
        let sqlite = Connection::open_in_memory().unwrap();
        sqlite.execute_batch(include_str!("schema.sql")).unwrap();
        for sql in [find_sql(), by_key_sql(), changes_sql()] {
            let mut statement = sqlite.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
            let (mut rows, mut plan) = (statement.raw_query(), Vec::new());
            while let Some(row) = rows.next().unwrap() {
                plan.push(row.get::<_, String>(3).unwrap());
            }
            assert!(plan.iter().any(|step| step.starts_with("SEARCH r USING")), "{sql}: {plan:?}");
        }
    }
}
