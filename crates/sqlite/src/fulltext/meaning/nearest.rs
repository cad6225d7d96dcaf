//! The records nearest to a query that pass its operators in one snapshot of the index.
//!
//! Connection and streams are part of the scan of the vectors. Operators that few records pass are evaluated before the
//! scan, so that no hit is lost; others after it. A record that is not in the snapshot is no hit.

use std::collections::HashMap;

use fetchwell_ranking::lexical::selection::Likeness;
use fetchwell_ranking::lexical::terms::QueryTerms;
use fetchwell_ranking::meaning::{MAX_PLACED, NearestHit, NearestRecords};
use fetchwell_source::SearchText;
use fetchwell_source::contract::{StoreError, VectorError};
use tantivy::columnar::Column;
use tantivy::query::{BooleanQuery, Occur, Query, TermSetQuery};
use tantivy::{SegmentOrdinal, SegmentReader, TantivyError, Term};

use super::QueryMeaning;
use crate::fulltext::candidates::{Candidate, CandidateFilter, newest_candidates};
use crate::fulltext::index::{Fields, Snapshot, guard, row_term};
use crate::fulltext::phrase::PhraseTerms;
use crate::fulltext::scope::Scope;
use crate::vectors::VectorScope;

/// Maximum number of records that pass the operators, for a scan of these alone.
const MAX_SELECTED: usize = 10_000;

/// Number of records that the scan returns if they are filtered after it.
const DEEP: usize = 1_000;

/// Reason why there are no nearest records.
#[derive(Debug)]
pub(crate) enum NearestError {
    /// The index failed.
    Index(TantivyError),
    /// The vectors cannot be used.
    Vectors(VectorError),
    /// The records cannot be read, to evaluate a filter.
    Store(StoreError),
}

impl From<TantivyError> for NearestError {
    fn from(error: TantivyError) -> Self {
        Self::Index(error)
    }
}

impl From<StoreError> for NearestError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<VectorError> for NearestError {
    fn from(error: VectorError) -> Self {
        Self::Vectors(error)
    }
}

/// Returns the nearest records of a scope. `is_deep` asks for more than can be shown, for a caller that filters them.
pub(crate) fn nearest_records(
    snapshot: &Snapshot,
    terms: &QueryTerms,
    text: &SearchText,
    scope: &Scope,
    meaning: &QueryMeaning<'_>,
    is_deep: bool,
) -> Result<NearestRecords, NearestError> {
    let conditions = Conditions::new(snapshot, terms, text)?;
    let selected = if conditions.are_selective() {
        guard(|| conditions.passing(None, MAX_SELECTED))?
    } else {
        Vec::new()
    };
    let is_selected = conditions.are_selective() && selected.len() < MAX_SELECTED;
    let mut scope = vector_scope(scope);
    if is_selected {
        scope.records = Some(selected.iter().map(|record| record.row).collect());
    }
    let limit = if is_deep || !text.is_plain() && !is_selected { DEEP } else { MAX_PLACED };
    let found = meaning.vectors.search(meaning.vector, limit, &scope)?;
    let is_cut = found.hits.len() >= limit;
    let rows: Vec<i64> = found.hits.iter().map(|hit| hit.record).collect();
    let passing = guard(|| conditions.passing(Some(&rows), rows.len()))?;
    let passing: HashMap<i64, Option<Likeness>> =
        passing.into_iter().map(|record| (record.row, record.likeness)).collect();
    let hits = found.hits.into_iter().filter_map(|hit| {
        let likeness = *passing.get(&hit.record)?;
        Some(NearestHit { hit, likeness })
    });
    Ok(NearestRecords { hits: hits.collect(), spread: found.spread, is_cut })
}

fn vector_scope(scope: &Scope) -> VectorScope {
    match scope {
        Scope::Everything => VectorScope::default(),
        Scope::Connection(row) => VectorScope { connection: Some(*row), ..VectorScope::default() },
        Scope::Streams(rows) => VectorScope { streams: Some(rows.clone()), ..VectorScope::default() },
        Scope::Records(records) => {
            VectorScope { records: Some(records.rows().iter().copied().collect()), ..VectorScope::default() }
        }
    }
}

/// The operators of a query.
struct Conditions<'a> {
    snapshot: &'a Snapshot,
    terms: &'a QueryTerms,
    text: &'a SearchText,
    filter: CandidateFilter,
}

impl<'a> Conditions<'a> {
    fn new(
        snapshot: &'a Snapshot,
        terms: &'a QueryTerms,
        text: &'a SearchText,
    ) -> Result<Self, TantivyError> {
        let filter = CandidateFilter {
            after: text.after.map(jiff::Timestamp::as_second),
            before: text.before.map(jiff::Timestamp::as_second),
            excluded: PhraseTerms::of_all(&snapshot.searcher, snapshot.fields.text, &terms.excluded)?,
            ..CandidateFilter::default()
        };
        Ok(Self { snapshot, terms, text, filter })
    }

    /// Returns true if the operators select records, and do not only exclude some.
    fn are_selective(&self) -> bool {
        let SearchText { phrases, fields, after, before, .. } = self.text;
        !phrases.is_empty() || !fields.is_empty() || after.is_some() || before.is_some()
    }

    /// Returns at most `limit` records that pass the operators, of the whole store or of some rows.
    fn passing(&self, rows: Option<&[i64]>, limit: usize) -> Result<Vec<PassingRecord>, TantivyError> {
        let Snapshot { fields, searcher, .. } = self.snapshot;
        if limit == 0 {
            return Ok(Vec::new());
        }
        let conditions = fields.passing(searcher, self.terms)?;
        let query: Box<dyn Query> = match rows {
            None => conditions,
            Some(rows) => {
                let terms = rows.iter().map(|row| Term::from_field_u64(fields.record, row_term(*row)));
                let rows: Box<dyn Query> = Box::new(TermSetQuery::new(terms));
                Box::new(BooleanQuery::new(vec![(Occur::Must, rows), (Occur::Must, conditions)]))
            }
        };
        let found = newest_candidates(searcher, &*query, &self.filter, limit)?;
        let mut segments: HashMap<SegmentOrdinal, RecordColumns> = HashMap::new();
        let mut passing = Vec::with_capacity(found.len());
        for Candidate { address, .. } in found {
            let columns = match segments.get(&address.segment_ord) {
                Some(columns) => columns,
                None => {
                    let segment = searcher.segment_reader(address.segment_ord);
                    segments.entry(address.segment_ord).or_insert(RecordColumns::open(segment, *fields)?)
                }
            };
            passing.extend(columns.read(address.doc_id));
        }
        Ok(passing)
    }
}

/// A record that passes the operators.
struct PassingRecord {
    row: i64,
    likeness: Option<Likeness>,
}

/// Columns of a segment. Opening a column reads all of it.
struct RecordColumns {
    rows: Column<u64>,
    /// Connections and similarity hashes, if the index has them.
    likeness: Option<(Column<u64>, Column<u64>)>,
}

impl RecordColumns {
    fn open(segment: &SegmentReader, fields: Fields) -> Result<Self, TantivyError> {
        let columns = segment.fast_fields();
        let likeness = if fields.has_columns() {
            Some((columns.u64("connection")?, columns.u64("similarity")?))
        } else {
            None
        };
        Ok(Self { rows: columns.u64("record")?, likeness })
    }

    fn read(&self, document: u32) -> Option<PassingRecord> {
        let row = i64::try_from(self.rows.first(document)?).ok()?;
        let likeness = self.likeness.as_ref().and_then(|(connections, similarities)| {
            let (connection, similarity) = (connections.first(document)?, similarities.first(document)?);
            Some(Likeness { connection, similarity })
        });
        Some(PassingRecord { row, likeness })
    }
}
