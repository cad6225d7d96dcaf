//! Reads single records and their versions.

use rusqlite::params;

use super::allowance::Allowance;
use super::expand;
use super::interrupt::ReadBounds;
use super::projection::Projection;
use super::rows::{RECORD_COLUMNS, record_of};
use super::schema::schema;
use super::streams::stream_rows;
use crate::handle::{ConnectionId, RecordAddress};
use crate::record::Record;
use crate::source::store::database::Database;
use crate::source::unknown_place::unknown_place;
use crate::source::{ConnectionChoice, RecordQuery, Selection, SourceError};

pub(in crate::source::store) fn record(
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

/// Returns the complete record at an address, without related records.
pub(in crate::source::store) fn find(
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
        (Some(last), others) => Err(SourceError::AmbiguousConnection {
            what: format!("record `{record}` of stream `{stream}`"),
            choices: others.iter().chain([&last]).filter_map(choice_of).collect(),
        }),
        (None, _) => Err(missing_record_error(database, &query.address)?),
    }
}

/// Returns the version of the one record at an address.
pub(in crate::source::store) fn version(
    database: &Database,
    address: &RecordAddress,
) -> Result<Option<String>, SourceError> {
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
    Ok(unknown.unwrap_or_else(|| SourceError::NotFound {
        what: format!("there is no record `{record}` in stream `{stream}`"),
    }))
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    use super::*;
    use crate::source::store::read::changes::changes_sql;
    use crate::source::store::read::rows::by_key_sql;

    /// Checks the query plans, because a store of a million records is too large for a test: no plan may scan all
    /// records.
    #[test]
    fn single_record_reads_do_not_scan() {
        let sqlite = Connection::open_in_memory().unwrap();
        sqlite.execute_batch(include_str!("../schema.sql")).unwrap();
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
