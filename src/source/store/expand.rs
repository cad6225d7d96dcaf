//! Related records, one step away.

use std::collections::HashMap;

use rusqlite::Connection;

use super::allowance::Allowance;
use super::database::ReadError;
use super::interrupt::Interrupt;
use super::list::PAGE_BYTES;
use super::pick::Picker;
use super::read::{by_key_sql, bytes_of_row, length_at, record_of};
use super::streams::{StreamRow, sibling};
use crate::record::{Expanded, Record, RelationKind, Scalar, StreamDetail};
use crate::source::{Expansion, QueryFault, SourceError};

/// Related records for each record when neither the call nor the stream says how many.
const DEFAULT_LIMIT: usize = 10;

/// Related records for each record at most, when the stream does not say.
const MOST: usize = 100;

/// Refuses relations that a stream does not have, and limits above theirs.
pub(super) fn check(expand: &[Expansion], stream: &StreamDetail) -> Result<(), SourceError> {
    for Expansion { relation: name, limit } in expand {
        let refused =
            |problem, hint| SourceError::CorrectQuery { fault: QueryFault::InvalidExpand, problem, hint };
        let Some(relation) = stream.relation(name) else {
            let known: Vec<&str> = stream.relations.iter().map(|relation| relation.name.as_str()).collect();
            let hint = if known.is_empty() {
                "The stream declares no relations; leave `expand` out.".to_owned()
            } else {
                format!("Its relations are: {}.", known.join(", "))
            };
            return Err(refused(format!("stream `{}` has no relation `{name}`", stream.name), hint));
        };
        let most = relation.max_limit.unwrap_or(MOST);
        if limit.is_some_and(|limit| limit == 0 || limit > most) {
            let problem = format!("the limit of relation `{name}` is not between 1 and {most}");
            return Err(refused(problem, format!("Ask for at most {most} records of each.")));
        }
    }
    Ok(())
}

/// Brings related records along with those of `records` that are of `stream`.
pub(super) fn expand(
    sqlite: &Connection,
    stream: &StreamRow,
    expand: &[Expansion],
    records: &mut [Record],
    (interrupt, allowance): (&Interrupt, &Allowance),
) -> Result<(), ReadError> {
    let mut own: Vec<&mut Record> = records
        .iter_mut()
        .filter(|record| record.address.connection.as_ref() == Some(&stream.detail.connection_id))
        .collect();
    let mut room = PAGE_BYTES;
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
        let mut side = OtherSide {
            sqlite,
            stream: other.row,
            foreign_key: &relation.foreign_key,
            room: &mut room,
            allowance,
        };
        match relation.kind {
            RelationKind::BelongsTo => side.named_by(&mut own)?,
            RelationKind::HasMany | RelationKind::HasOne => side.naming(&mut own, limit, interrupt)?,
        }
    }
    Ok(())
}

/// The other stream of a relation.
struct OtherSide<'a> {
    sqlite: &'a Connection,
    stream: i64,
    foreign_key: &'a str,
    /// Bytes of related records that the page still takes.
    room: &'a mut usize,
    allowance: &'a Allowance,
}

impl OtherSide<'_> {
    /// Gives each record the one that its field names.
    fn named_by(&mut self, own: &mut [&mut Record]) -> Result<(), ReadError> {
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

    /// Gives each record those that name it, newest first. One pass over their stream serves the whole page.
    fn naming(
        &mut self,
        own: &mut [&mut Record],
        limit: usize,
        interrupt: &Interrupt,
    ) -> Result<(), ReadError> {
        let mut wanted: HashMap<String, Vec<String>> =
            own.iter().map(|record| (record.address.record.to_string(), Vec::new())).collect();
        let mut picker = Picker::default();
        picker.want(self.foreign_key);
        let mut picked = Vec::new();
        let mut statement = self.sqlite.prepare_cached(
            "SELECT key, data, octet_length(data) FROM records WHERE stream = ?1 AND data IS NOT NULL ORDER BY sort_value DESC, key DESC",
        )?;
        let mut rows = statement.query([self.stream])?;
        while let Some(row) = rows.next()? {
            interrupt.check()?;
            // The answer is not used.
            if !self.allowance.has_room_for(length_at(row, 2)?) {
                break;
            }
            picker.pick(row.get_ref(1)?.as_str().unwrap_or_default(), &mut picked);
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
        record_of(row, self.allowance)
    }
}

fn text_of(value: &serde_json::Value) -> Option<String> {
    Scalar::of(value).map(|scalar| scalar.to_string())
}
