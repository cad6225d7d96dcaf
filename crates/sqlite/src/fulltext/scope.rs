//! Scope of a search: the whole store, one connection, some streams, or few records.

use fetchwell_core::handle::{ConnectionId, StreamName};
use fetchwell_ranking::lexical::understanding::RecordKind;
use fetchwell_source::SourceError;
use fetchwell_source::unknown_place::unknown_place;
use tantivy::query::{
    BooleanQuery, BoostQuery, ConstScoreQuery, EnableScoring, Occur, Query, TermQuery, TermSetQuery,
};
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{DocSet, TERMINATED, TantivyError, Term};

use super::dictionary::Dictionary;
use super::index::{Fields, row_term};
use super::row_query::RowQuery;
use crate::database::Database;
use crate::read::tables::{connection_row, schema};

/// Part of the store that a search covers, by row ids.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Scope {
    Everything,
    Connection(i64),
    /// Streams, of one connection or of several.
    Streams(Vec<i64>),
    /// Records that may pass the filter of a search.
    Records(RowQuery),
}

impl Scope {
    /// Resolves a connection and stream names; each of them must exist.
    pub(super) fn resolve(
        database: &Database,
        connection: Option<&ConnectionId>,
        streams: &[StreamName],
    ) -> Result<Self, SourceError> {
        if streams.is_empty() {
            let Some(id) = connection else { return Ok(Self::Everything) };
            let row = database.read(|sqlite| connection_row(sqlite, id))?;
            return row.map(Self::Connection).map_or_else(|| Err(missing(database, connection, None)), Ok);
        }
        let known: Vec<(i64, String)> = database.read(|sqlite| {
            let mut statement = sqlite.prepare_cached(
                "SELECT s.id, s.name FROM streams s JOIN connections c ON c.id = s.connection
                 WHERE ?1 IS NULL OR c.connection_id = ?1",
            )?;
            let rows = statement
                .query_map([connection.map(ConnectionId::as_str)], |row| Ok((row.get(0)?, row.get(1)?)))?;
            rows.collect()
        })?;
        let is_known = |stream: &&StreamName| known.iter().any(|(_, name)| name == stream.as_str());
        if let Some(unknown) = streams.iter().find(|stream| !is_known(stream)) {
            return Err(missing(database, connection, Some(unknown)));
        }
        let is_asked = |name: &str| streams.iter().any(|stream| stream.as_str() == name);
        Ok(Self::Streams(known.into_iter().filter(|(_, name)| is_asked(name)).map(|(row, _)| row).collect()))
    }

    /// Returns the field and the row ids that the scope selects by; `None` for the whole store.
    pub(super) fn rows(&self, fields: Fields) -> Option<(Field, &[i64])> {
        match self {
            Self::Everything => None,
            Self::Connection(row) => Some((fields.connection, std::slice::from_ref(row))),
            Self::Streams(rows) => Some((fields.stream, rows.as_slice())),
            Self::Records(records) => Some((fields.record, records.rows())),
        }
    }

    /// Returns a query for the records of the scope, which adds nothing to a score; `None` for the whole store.
    pub(super) fn query(&self, fields: Fields) -> Option<Box<dyn Query>> {
        let (field, rows) = self.rows(fields)?;
        if let Self::Records(records) = self
            && rows.len() > 1
        {
            return Some(Box::new(records.clone()));
        }
        let mut terms = rows.iter().map(|row| Term::from_field_u64(field, row_term(*row)));
        Some(match (rows.len(), terms.next()) {
            (1, Some(only)) => {
                Box::new(BoostQuery::new(Box::new(TermQuery::new(only, IndexRecordOption::Basic)), 0.0))
            }
            (_, first) => {
                let rows = TermSetQuery::new(first.into_iter().chain(terms));
                Box::new(ConstScoreQuery::new(Box::new(rows), 0.0))
            }
        })
    }

    /// Returns true if a record of the scope that is not deleted has a word of the index. Words of other records must
    /// not change a search: they would take the place of words in scope, and show that they exist.
    pub(super) fn has_word(
        &self,
        dictionary: &Dictionary<'_>,
        fields: Fields,
        word: &str,
    ) -> Result<bool, TantivyError> {
        let searcher = dictionary.searcher;
        let term = Term::from_field_text(fields.text, word);
        if dictionary.frequency(&term)? == 0 {
            return Ok(false);
        }
        let place = self.query(fields);
        let has_deletes = searcher.segment_readers().iter().any(tantivy::SegmentReader::has_deletes);
        if place.is_none() && !has_deletes {
            return Ok(true);
        }
        let word: Box<dyn Query> = Box::new(TermQuery::new(term, IndexRecordOption::Basic));
        let clauses = std::iter::once(word).chain(place).map(|query| (Occur::Must, query));
        let both = BooleanQuery::new(clauses.collect());
        let weight = both.weight(EnableScoring::disabled_from_searcher(searcher))?;
        for segment in searcher.segment_readers() {
            let mut records = weight.scorer(segment, 1.0)?;
            while records.doc() != TERMINATED {
                if segment.alive_bitset().is_none_or(|alive| alive.is_alive(records.doc())) {
                    return Ok(true);
                }
                records.advance();
            }
        }
        Ok(false)
    }
}

/// Returns the ids of the streams of some kinds, as the index has them.
pub(super) fn streams_of_kinds(database: &Database, kinds: &[RecordKind]) -> Result<Vec<u64>, SourceError> {
    if kinds.is_empty() {
        return Ok(Vec::new());
    }
    let named: Vec<(i64, String)> = database.read(|sqlite| {
        let mut statement = sqlite.prepare_cached("SELECT id, name FROM streams")?;
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        rows.collect()
    })?;
    let is_asked = |name: &str| kinds.iter().any(|kind| kind.is_of_stream(name));
    Ok(named.into_iter().filter(|(_, name)| is_asked(name)).map(|(row, _)| row_term(row)).collect())
}

fn missing(
    database: &Database,
    connection: Option<&ConnectionId>,
    stream: Option<&StreamName>,
) -> SourceError {
    match schema(database) {
        Ok(schema) => unknown_place(&schema, connection, stream).unwrap_or(SourceError::InvalidCursor),
        Err(error) => error,
    }
}
