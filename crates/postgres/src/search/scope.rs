//! The part of a store that a search covers: all streams, those of one connection, or some by name.

use fetchwell_core::handle::ConnectionId;
use fetchwell_ranking::lexical::understanding::RecordKind;
use fetchwell_ranking::relational::streams::unknown;
use fetchwell_ranking::relational::tables::Tables as _;
use fetchwell_source::unknown_place::unknown_place;
use fetchwell_source::{SearchQuery, SourceError};

use super::super::tables::{PostgresTables, text};
use super::super::words::{FIRST_COMPLETE_VERSION, connection_word, stream_word};

/// Streams of a store and those that a search covers.
#[derive(Debug)]
pub(crate) struct Scope {
    /// Row ids of the streams in scope; `None` for all streams.
    pub(crate) streams: Option<Vec<i64>>,
    /// Words of which a record in scope has one; none for all streams.
    pub(super) words: Vec<String>,
    /// Number of records and of their words in all streams.
    pub(super) records: u64,
    pub(super) all_words: u64,
    /// Number of records in scope.
    pub(super) records_in_scope: u64,
    /// Name of each stream of the store by its row id.
    names: Vec<(i64, String)>,
    /// True if words of records in scope are missing.
    pub(super) is_incomplete: bool,
}

impl Scope {
    /// Resolves a connection and stream names; each of them must exist.
    pub(super) fn resolve(tables: &PostgresTables<'_>, query: &SearchQuery) -> Result<Self, SourceError> {
        let sql = "SELECT s.id, s.name, c.id, c.connection_id, s.record_count, s.word_count, s.indexed
             FROM fetchwell.streams s JOIN fetchwell.connections c ON c.id = s.connection";
        let rows = tables.queries.query(sql, &[])?;
        let number =
            |row: &tokio_postgres::Row, column: usize| row.try_get::<_, i64>(column).unwrap_or_default();
        let is_asked = |row: &&tokio_postgres::Row| {
            let connection = query.connection.as_ref().map(ConnectionId::as_str);
            let is_asked = |name: &str| query.streams.iter().any(|stream| stream.as_str() == name);
            connection.is_none_or(|connection| connection == text(row, 3))
                && (query.streams.is_empty() || is_asked(text(row, 1)))
        };
        let asked: Vec<_> = rows.iter().filter(is_asked).collect();
        for stream in &query.streams {
            if !asked.iter().any(|row| text(row, 1) == stream.as_str()) {
                let missing = unknown(tables, query.connection.as_ref(), stream)?;
                return Err(missing.unwrap_or(SourceError::InvalidCursor));
            }
        }
        if let (Some(connection), true) = (&query.connection, asked.is_empty())
            && let Some(missing) = unknown_place(&tables.schema()?, Some(connection), None)
        {
            return Err(missing);
        }
        let is_limited = query.connection.is_some() || !query.streams.is_empty();
        let words = match asked.first() {
            _ if !query.streams.is_empty() => asked.iter().map(|row| stream_word(number(row, 0))).collect(),
            Some(row) if is_limited => vec![connection_word(number(row, 2))],
            // A connection without streams has no records.
            None if is_limited => vec![connection_word(0)],
            _ => Vec::new(),
        };
        let sum = |column: usize| rows.iter().map(|row| number(row, column).unsigned_abs()).sum();
        Ok(Self {
            streams: is_limited.then(|| asked.iter().map(|row| number(row, 0)).collect()),
            words,
            records_in_scope: asked.iter().map(|row| number(row, 4).unsigned_abs()).sum(),
            names: rows.iter().map(|row| (number(row, 0), text(row, 1).to_owned())).collect(),
            records: sum(4),
            all_words: sum(5),
            is_incomplete: asked.iter().any(|row| {
                number(row, 4) > 0 && row.try_get::<_, i32>(6).unwrap_or_default() < FIRST_COMPLETE_VERSION
            }),
        })
    }

    /// Returns the average number of words of a record.
    #[expect(clippy::cast_precision_loss, reason = "an average")]
    pub(super) fn average_length(&self) -> f32 {
        (self.all_words as f32 / self.records.max(1) as f32).max(1.0)
    }

    /// Returns the ids of the streams of some kinds.
    pub(super) fn streams_of_kinds(&self, kinds: &[RecordKind]) -> Vec<u64> {
        let is_asked = |name: &str| kinds.iter().any(|kind| kind.is_of_stream(name));
        let asked = self.names.iter().filter(|(_, name)| is_asked(name));
        asked.map(|(row, _)| row.unsigned_abs()).collect()
    }

    /// Returns true if all records in scope are of one stream.
    pub(super) fn has_one_stream(&self) -> bool {
        self.streams.as_ref().is_some_and(|streams| streams.len() < 2)
    }
}
