//! Expansion of declared relations: adds related records, one level deep, to the records of a page.
//!
//! The related records of one page are bounded in number per record and in bytes in total.

use std::collections::HashMap;

use fetchwell_core::record::{ExpandedRelation, Record, RelationKind, Scalar, StreamDetail};
use fetchwell_source::{Direction, Expansion, QueryFault, SourceError};

use super::field_reader::FieldReader;
use super::interrupt::ReadBounds;
use super::stream_row::StreamRow;
use super::streams::sibling;
use super::tables::{MAX_PAGE_BYTES, RecordKey, Scan, SizedRecord, Tables};

/// Number of related records per record, if neither the call nor the stream sets it.
const DEFAULT_LIMIT: usize = 10;

/// Maximum number of related records per record, if the stream does not set it.
const MAX_LIMIT: usize = 100;

/// Refuses relations that a stream does not declare, and limits outside their range.
pub(crate) fn check(expand: &[Expansion], stream: &StreamDetail) -> Result<(), SourceError> {
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
        let max_limit = relation.max_limit.unwrap_or(MAX_LIMIT);
        if limit.is_some_and(|limit| limit == 0 || limit > max_limit) {
            let problem = format!("the limit of relation `{name}` is not between 1 and {max_limit}");
            return Err(refused(problem, format!("Ask for at most {max_limit} records of each.")));
        }
    }
    Ok(())
}

/// Adds related records to those `records` that belong to `stream`.
pub(crate) fn expand<T: Tables>(
    tables: &T,
    stream: &StreamRow,
    expand: &[Expansion],
    records: &mut [Record],
    bounds: ReadBounds<'_>,
) -> Result<(), T::Error> {
    let mut own: Vec<&mut Record> = records
        .iter_mut()
        .filter(|record| record.address.connection.as_ref() == Some(&stream.detail.connection_id))
        .collect();
    let mut room = MAX_PAGE_BYTES;
    for Expansion { relation: name, limit } in expand {
        let Some(relation) = stream.detail.relation(name) else { continue };
        let many = relation.kind == RelationKind::HasMany;
        let limit = if many { limit.or(relation.default_limit).unwrap_or(DEFAULT_LIMIT) } else { 1 };
        let other = sibling(tables, stream, &relation.stream)?;
        for record in &mut own {
            record.expanded.push(ExpandedRelation {
                relation: name.clone(),
                many,
                records: Vec::new(),
                has_more: false,
            });
        }
        let Some(other) = other else { continue };
        let mut related = RelatedStream {
            tables,
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
struct RelatedStream<'a, T> {
    tables: &'a T,
    stream: i64,
    foreign_key: &'a str,
    /// Bytes of related records that the page still accepts.
    room: &'a mut usize,
    bounds: ReadBounds<'a>,
}

impl<T: Tables> RelatedStream<'_, T> {
    /// Adds to each record the one that its foreign key names.
    fn add_referenced(&mut self, own: &mut [&mut Record]) -> Result<(), T::Error> {
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
    fn add_referencing(&mut self, own: &mut [&mut Record], limit: usize) -> Result<(), T::Error> {
        let mut wanted: HashMap<String, Vec<String>> =
            own.iter().map(|record| (record.address.record.to_string(), Vec::new())).collect();
        let mut reader = FieldReader::default();
        reader.select(self.foreign_key);
        let mut picked = Vec::new();
        let newest_first = Scan::all_texts(self.stream, Some(Direction::Descending));
        self.tables.scan(&newest_first, self.bounds, &mut |row| {
            reader.read(row.data, &mut picked);
            let named = picked.first().and_then(Option::as_ref).and_then(text_of);
            if let Some(keys) = named.and_then(|named| wanted.get_mut(&named))
                && keys.len() <= limit
            {
                keys.push(row.key.to_owned());
            }
            Ok(true)
        })?;
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

    fn record(&mut self, key: &str) -> Result<Option<Record>, T::Error> {
        let mut found = None;
        let key = RecordKey { stream: self.stream, key };
        self.tables.records_at(&[key], self.bounds.allowance, &mut |record| {
            found = record;
            true
        })?;
        let Some(SizedRecord { record, bytes }) = found else { return Ok(None) };
        *self.room = self.room.saturating_sub(bytes);
        Ok(record)
    }
}

fn text_of(value: &serde_json::Value) -> Option<String> {
    Scalar::from_value(value).map(|scalar| scalar.to_string())
}
