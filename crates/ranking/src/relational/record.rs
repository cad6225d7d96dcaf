//! Reads single records and their versions.

use fetchwell_core::handle::RecordAddress;
use fetchwell_core::record::Record;
use fetchwell_source::{ConnectionChoice, RecordQuery, Selection, SourceError};

use super::allowance::Allowance;
use super::expand;
use super::interrupt::ReadBounds;
use super::projection::Projection;
use super::streams::{stream_rows, unknown};
use super::tables::Tables;

/// Returns one record.
///
/// # Errors
///
/// The record does not exist, several connections have it, or the tables cannot be read.
pub fn record<T: Tables>(
    tables: &T,
    query: &RecordQuery,
    bounds: ReadBounds<'_>,
) -> Result<Record, T::Error> {
    let mut record = find(tables, query, bounds.allowance)?;
    if !query.expand.is_empty() {
        let streams = stream_rows(tables, &query.address.stream, record.address.connection.as_ref())?;
        for stream in &streams {
            expand::check(&query.expand, &stream.detail)?;
            expand::expand(tables, stream, &query.expand, std::slice::from_mut(&mut record), bounds)?;
        }
    }
    select_fields(tables, record, &query.fields)
}

/// Returns the complete record at an address, without related records.
pub(super) fn find<T: Tables>(
    tables: &T,
    query: &RecordQuery,
    allowance: &Allowance,
) -> Result<Record, T::Error> {
    let RecordAddress { stream, record, .. } = &query.address;
    let mut found = tables.find(&query.address, allowance)?;
    match (found.pop(), found.as_slice()) {
        (Some(only), []) => Ok(only),
        (Some(last), others) => Err(SourceError::AmbiguousConnection {
            what: format!("record `{record}` of stream `{stream}`"),
            choices: others.iter().chain([&last]).filter_map(choice_of).collect(),
        }
        .into()),
        (None, _) => Err(missing_record_error(tables, &query.address)?.into()),
    }
}

/// Returns the version of the one record at an address.
pub fn version<T: Tables>(tables: &T, address: &RecordAddress) -> Result<Option<String>, T::Error> {
    match <[String; 1]>::try_from(tables.record_versions(address)?) {
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
fn select_fields<T: Tables>(tables: &T, mut record: Record, fields: &[String]) -> Result<Record, T::Error> {
    if fields.is_empty() {
        return Ok(record);
    }
    if fields.iter().any(|field| !record.data.contains_key(field)) {
        let streams = stream_rows(tables, &record.address.stream, record.address.connection.as_ref())?;
        Projection::new(&Selection::Fields(fields.to_vec()), &streams)?;
    }
    record.data.retain(|name, _| fields.contains(name));
    Ok(record)
}

/// Returns the error that says which part of an address is unknown: the connection, the stream, or the key.
fn missing_record_error<T: Tables>(tables: &T, address: &RecordAddress) -> Result<SourceError, T::Error> {
    let RecordAddress { connection, stream, record } = address;
    let unknown = unknown(tables, connection.as_ref(), stream)?;
    Ok(unknown.unwrap_or_else(|| SourceError::NotFound {
        what: format!("there is no record `{record}` in stream `{stream}`"),
    }))
}
