//! Query of the index for the records of some rows.

use std::sync::Arc;

use fetchwell_core::saturate::saturated;
use tantivy::query::{ConstScorer, EnableScoring, Explanation, Query, Scorer, Weight};
use tantivy::{DocId, DocSet, Score, SegmentReader, TERMINATED, TantivyError};

/// Number of records whose rows are read at a time.
const BLOCK: usize = 1024;

/// Query for the records of some rows, which adds nothing to a score. It reads the column of rows: the dictionary has the rows of
/// all records, and most of its blocks have one of some hundred rows.
#[derive(Debug, Clone)]
pub(super) struct RowQuery {
    /// Ids of the rows, ascending.
    rows: Arc<[u64]>,
}

impl RowQuery {
    /// Creates a query for some rows in any order.
    pub(super) fn new(rows: impl Iterator<Item = u64>) -> Self {
        let mut rows: Vec<u64> = rows.collect();
        rows.sort_unstable();
        Self { rows: rows.into() }
    }

    /// Returns the records of a segment that have one of the rows, deleted ones included.
    fn docs(&self, segment: &SegmentReader) -> Result<Vec<DocId>, TantivyError> {
        let column = segment.fast_fields().u64("record")?;
        let mut docs = Vec::new();
        let (Some(first), Some(last)) = (self.rows.first(), self.rows.last()) else { return Ok(docs) };
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
                if is_less(self.rows.get(less)) || (less > 0 && !is_less(self.rows.get(less - 1))) {
                    less = self.rows.partition_point(|row| *row < value);
                }
                if self.rows.get(less) == Some(&value) {
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

    fn explain(&self, _segment: &SegmentReader, _doc: DocId) -> Result<Explanation, TantivyError> {
        Ok(Explanation::new("a row of the scope", 0.0))
    }
}

/// Records of a segment, ascending.
struct Docs {
    docs: Vec<DocId>,
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
    use tantivy::schema::{FAST, Schema};
    use tantivy::{Index, TantivyDocument};

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn records_of_rows_are_found(
            parts in prop::collection::vec((0_u64..4_000, 0_u64..3_000), 1..4),
            asked in prop::collection::vec(0_u64..7_000, 0..40),
        ) {
            let mut schema = Schema::builder();
            let record = schema.add_u64_field("record", FAST);
            let index = Index::create_in_ram(schema.build());
            let mut writer = index.writer_with_num_threads(1, 15_000_000).unwrap();
            // Parts of a segment that was merged, each ascending.
            let rows: Vec<u64> = parts.iter().flat_map(|(start, count)| *start..start + count).collect();
            for row in &rows {
                let mut document = TantivyDocument::new();
                document.add_u64(record, *row);
                writer.add_document(document).unwrap();
            }
            writer.commit().unwrap();
            let searcher = index.reader().unwrap().searcher();
            let found = searcher.search(&RowQuery::new(asked.iter().copied()), &DocSetCollector).unwrap();
            let mut found: Vec<u32> = found.into_iter().map(|address| address.doc_id).collect();
            found.sort_unstable();
            let docs = (0..).zip(&rows).filter(|(_, row)| asked.contains(row));
            prop_assert_eq!(found, docs.map(|(doc, _)| doc).collect::<Vec<u32>>());
        }
    }
}
