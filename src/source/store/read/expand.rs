//! Expansion of declared relations: adds related records, one level deep, to the records of a page.
//!
//! The related records of one page are bounded in number per record and in bytes in total.

use std::collections::HashMap;

use rusqlite::Connection;

use super::field_reader::FieldReader;
use super::interrupt::ReadBounds;
use super::rows::{MAX_PAGE_BYTES, by_key_sql, bytes_of_row, length_at, record_of};
use super::streams::{StreamRow, sibling};
use crate::record::{Expanded, Record, RelationKind, Scalar, StreamDetail};
use crate::source::store::database::ReadError;
use crate::source::{Expansion, QueryFault, SourceError};

/// Number of related records per record, if neither the call nor the stream sets it.
const DEFAULT_LIMIT: usize = 10;

/// Maximum number of related records per record, if the stream does not set it.
const MAX_LIMIT: usize = 100;

/// Refuses relations that a stream does not declare, and limits outside their range.
pub(in crate::source::store) fn check(
    expand: &[Expansion],
    stream: &StreamDetail,
) -> Result<(), SourceError> {
    for Expansion { relation: name, limit } in expand {
        let refused =
            |problem, hint| SourceError::InvalidQuery { fault: QueryFault::InvalidExpand, problem, hint };
        let Some(relation) = stream.relation(name) else {
            let known: Vec<&str> = stream.relations.iter().map(|relation| relation.name.as_str()).collect();
            let hint = if known.is_empty() {
                "The stream declares no relations; leave `expand` out.".to_owned()
            } else {
                format!("Its relations are: {}.", known.join(", "))
            };
            return Err(refused(format!("stream `{}` has no relation `{name}`", stream.name), hint));
        };
        let most = relation.max_limit.unwrap_or(MAX_LIMIT);
        if limit.is_some_and(|limit| limit == 0 || limit > most) {
            let problem = format!("the limit of relation `{name}` is not between 1 and {most}");
            return Err(refused(problem, format!("Ask for at most {most} records of each.")));
        }
    }
    Ok(())
}

/// Adds related records to those `records` that belong to `stream`.
pub(in crate::source::store) fn expand(
    sqlite: &Connection,
    stream: &StreamRow,
    expand: &[Expansion],
    records: &mut [Record],
    bounds: ReadBounds<'_>,
) -> Result<(), ReadError> {
    let mut own: Vec<&mut Record> = records
        .iter_mut()
        .filter(|record| record.address.connection.as_ref() == Some(&stream.detail.connection_id))
        .collect();
    let mut room = MAX_PAGE_BYTES;
    for Expansion { relation: name, limit } in expand {
        let Some(relation) = stream.detail.relation(name) else { continue };
        let many = relation.kind == RelationKind::HasMany;
        let limit = if many { limit.or(relation.default_limit).unwrap_or(DEFAULT_LIMIT) } else { 1 };
        let other = sibling(sqlite, stream, &relation.stream)?;
        for record in &mut own {
            record.expanded.push(Expanded {
                relation: name.clone(),
                many,
                records: Vec::new(),
                has_more: false,
            });
        }
        let Some(other) = other else { continue };
        let mut related = RelatedStream {
            sqlite,
            stream: other.row,
            foreign_key: &relation.foreign_key,
            room: &mut room,
            bounds,
        };
        match relation.kind {
            RelationKind::BelongsTo => related.add_referenced(&mut own)?,
            RelationKind::HasMany | RelationKind::HasOne => {
                related.add_referencing(&mut own, limit)?;
            }
        }
    }
    Ok(())
}

/// Stream that holds the related records of a relation.
struct RelatedStream<'a> {
    sqlite: &'a Connection,
    stream: i64,
    foreign_key: &'a str,
    /// Bytes of related records that the page still accepts.
    room: &'a mut usize,
    bounds: ReadBounds<'a>,
}

impl RelatedStream<'_> {
    /// Adds to each record the one that its foreign key names.
    fn add_referenced(&mut self, own: &mut [&mut Record]) -> Result<(), ReadError> {
        for record in own {
            let named = record.data.get(self.foreign_key).and_then(text_of);
            let found = match named {
                Some(key) if *self.room > 0 => self.record(&key)?,
                _ => None,
            };
            if let Some(last) = record.expanded.last_mut() {
                last.records.extend(found);
            }
        }
        Ok(())
    }

    /// Adds to each record those that name it in their foreign key, newest first. One pass over the other stream serves the
    /// whole page.
    fn add_referencing(&mut self, own: &mut [&mut Record], limit: usize) -> Result<(), ReadError> {
        let mut wanted: HashMap<String, Vec<String>> =
            own.iter().map(|record| (record.address.record.to_string(), Vec::new())).collect();
        let mut reader = FieldReader::default();
        reader.select(self.foreign_key);
        let mut picked = Vec::new();
        let mut statement = self.sqlite.prepare_cached(
            "SELECT key, data, octet_length(data) FROM records WHERE stream = ?1 AND data IS NOT NULL ORDER BY sort_value DESC, key DESC",
        )?;
        let mut rows = statement.query([self.stream])?;
        while let Some(row) = rows.next()? {
            self.bounds.interrupt.check()?;
            // The read exceeded its memory limit, so its result is discarded.
            if !self.bounds.allowance.has_room_for(length_at(row, 2)?) {
                break;
            }
            reader.read(row.get_ref(1)?.as_str().unwrap_or_default(), &mut picked);
            let named = picked.first().and_then(Option::as_ref).and_then(text_of);
            if let Some(keys) = named.and_then(|named| wanted.get_mut(&named))
                && keys.len() <= limit
            {
                keys.push(row.get(0)?);
            }
        }
        for record in own {
            let keys = wanted.get(record.address.record.as_str()).map(Vec::as_slice).unwrap_or_default();
            let Some(expanded) = record.expanded.last_mut() else { continue };
            expanded.has_more = keys.len() > limit;
            for key in keys.iter().take(limit) {
                if *self.room == 0 {
                    expanded.has_more = true;
                    break;
                }
                expanded.records.extend(self.record(key)?);
            }
        }
        Ok(())
    }

    fn record(&mut self, key: &str) -> Result<Option<Record>, rusqlite::Error> {
        let mut statement = self.sqlite.prepare_cached(&by_key_sql())?;
        let mut rows = statement.query((self.stream, key))?;
        let Some(row) = rows.next()? else { return Ok(None) };
        *self.room = self.room.saturating_sub(bytes_of_row(row)?);
        record_of(row, self.bounds.allowance)
    }
}

fn text_of(value: &serde_json::Value) -> Option<String> {
    Scalar::from_value(value).map(|scalar| scalar.to_string())
}
