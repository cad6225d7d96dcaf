//! Query of the index for the records of some rows.

use std::collections::HashMap;
use std::sync::Arc;

use fetchwell_core::saturate::saturated;
use parking_lot::Mutex;
use tantivy::index::SegmentId;
use tantivy::query::{ConstScorer, EnableScoring, Explanation, Query, Scorer, Weight};
use tantivy::{DocId, DocSet, Score, SegmentReader, TERMINATED, TantivyError};

use super::index::row_term;

/// Number of records whose rows are read at a time.
const BLOCK: usize = 1024;

/// Query for the records of some rows, which adds nothing to a score. It reads the column of rows: the dictionary has the rows of
/// all records, and most of its blocks have one of some hundred rows. Clones share what they found.
#[derive(Debug, Clone)]
pub(super) struct RowQuery {
    /// Ids of the rows, ascending.
    rows: Arc<[i64]>,
    /// Records of the segments that were read.
    found: Arc<Mutex<HashMap<SegmentId, Arc<[DocId]>>>>,
}

/// Compares the rows.
impl PartialEq for RowQuery {
    fn eq(&self, other: &Self) -> bool {
        self.rows == other.rows
    }
}

impl Eq for RowQuery {}

impl RowQuery {
    /// Creates a query for some rows in any order.
    pub(super) fn new(mut rows: Vec<i64>) -> Self {
        rows.sort_unstable();
        Self { rows: rows.into(), found: Arc::default() }
    }

    /// Returns the ids of the rows, ascending.
    pub(super) fn rows(&self) -> &[i64] {
        &self.rows
    }

    /// Returns the records of a segment that have one of the rows, deleted ones included.
    fn docs(&self, segment: &SegmentReader) -> Result<Arc<[DocId]>, TantivyError> {
        if let Some(known) = self.found.lock().get(&segment.segment_id()) {
            return Ok(Arc::clone(known));
        }
        let docs: Arc<[DocId]> = self.read(segment)?.into();
        self.found.lock().insert(segment.segment_id(), Arc::clone(&docs));
        Ok(docs)
    }

    fn read(&self, segment: &SegmentReader) -> Result<Vec<DocId>, TantivyError> {
        let column = segment.fast_fields().u64("record")?;
        let rows: Vec<u64> = self.rows.iter().map(|row| row_term(*row)).collect();
        let mut docs = Vec::new();
        let (Some(first), Some(last)) = (rows.first(), rows.last()) else { return Ok(docs) };
        if *last < column.min_value() || *first > column.max_value() {
            return Ok(docs);
        }
        let (mut block, mut values) = (Vec::with_capacity(BLOCK), Vec::with_capacity(BLOCK));
        // Number of rows that are less than that of the record. Most records have greater rows than those before them.
        let mut less = 0;
        for start in (0..segment.max_doc()).step_by(BLOCK) {
            block.clear();
            block.extend((start..segment.max_doc()).take(BLOCK));
            values.clear();
            values.resize(block.len(), None);
            column.first_vals(&block, &mut values);
            for (doc, value) in block.iter().zip(&values) {
                let Some(value) = *value else { continue };
                let is_less = |row: Option<&u64>| row.is_some_and(|row| *row < value);
                if is_less(rows.get(less)) || (less > 0 && !is_less(rows.get(less - 1))) {
                    less = rows.partition_point(|row| *row < value);
                }
                if rows.get(less) == Some(&value) {
                    docs.push(*doc);
                }
            }
        }
        Ok(docs)
    }
}

impl Query for RowQuery {
    fn weight(&self, _scoring: EnableScoring<'_>) -> Result<Box<dyn Weight>, TantivyError> {
        Ok(Box::new(self.clone()))
    }
}

impl Weight for RowQuery {
    fn scorer(&self, segment: &SegmentReader, _boost: Score) -> Result<Box<dyn Scorer>, TantivyError> {
        Ok(Box::new(ConstScorer::new(Docs { docs: self.docs(segment)?, at: 0 }, 0.0)))
    }

    fn explain(&self, segment: &SegmentReader, doc: DocId) -> Result<Explanation, TantivyError> {
        let is_found = self.docs(segment)?.contains(&doc);
        let missing = || TantivyError::InvalidArgument("the record is not in the scope".to_owned());
        is_found.then(|| Explanation::new("a row of the scope", 0.0)).ok_or_else(missing)
    }
}

/// Records of a segment, ascending.
struct Docs {
    docs: Arc<[DocId]>,
    at: usize,
}

impl DocSet for Docs {
    fn advance(&mut self) -> DocId {
        self.at += 1;
        self.doc()
    }

    fn seek(&mut self, target: DocId) -> DocId {
        self.at += self.docs.get(self.at..).unwrap_or_default().partition_point(|doc| *doc < target);
        self.doc()
    }

    fn doc(&self) -> DocId {
        self.docs.get(self.at).copied().unwrap_or(TERMINATED)
    }

    fn size_hint(&self) -> u32 {
        saturated(self.docs.len())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tantivy::collector::DocSetCollector;
    use tantivy::query::{BooleanQuery, TermQuery};
    use tantivy::schema::{FAST, INDEXED, IndexRecordOption, Schema};
    use tantivy::{Index, TantivyDocument, Term};

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn records_of_rows_are_found(
            parts in prop::collection::vec((0_u64..4_000, 0_u64..3_000), 1..4),
            asked in prop::collection::vec(0_u64..7_000, 0..40),
            step in 1_u64..5,
        ) {
            let mut schema = Schema::builder();
            let record = schema.add_u64_field("record", FAST);
            let kind = schema.add_u64_field("kind", INDEXED);
            let index = Index::create_in_ram(schema.build());
            let mut writer = index.writer_with_num_threads(1, 15_000_000).unwrap();
            // Parts of a segment that was merged, each ascending.
            let rows: Vec<u64> = parts.iter().flat_map(|(start, count)| *start..start + count).collect();
            for row in &rows {
                let mut document = TantivyDocument::new();
                document.add_u64(record, *row);
                document.add_u64(kind, row % step);
                writer.add_document(document).unwrap();
            }
            writer.commit().unwrap();
            let searcher = index.reader().unwrap().searcher();
            let rows_of = RowQuery::new(asked.iter().map(|row| i64::try_from(*row).unwrap()).collect());
            let kind = Term::from_field_u64(kind, 0);
            let of_kind: Box<dyn Query> = Box::new(TermQuery::new(kind, IndexRecordOption::Basic));
            let both = BooleanQuery::intersection(vec![of_kind, Box::new(rows_of.clone())]);
            for (query, step) in [(&both as &dyn Query, step), (&rows_of, 1)] {
                let found = searcher.search(query, &DocSetCollector).unwrap();
                let mut found: Vec<u32> = found.into_iter().map(|address| address.doc_id).collect();
                found.sort_unstable();
                let docs = (0..).zip(&rows).filter(|(_, row)| asked.contains(row) && *row % step == 0);
                prop_assert_eq!(found, docs.map(|(doc, _)| doc).collect::<Vec<u32>>());
            }
        }
    }
}
