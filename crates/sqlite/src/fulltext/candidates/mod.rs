//! Selects the candidates of a query: the records with the highest scores of the index.
//!
//! Candidates are ordered by score, then by their place in the index, so the same index gives the same candidates.
//! Conditions that many records pass are checked here, on the records that are good enough, and not by the query, which
//! would read complete lists for them.
//!
//! * `word_union`: the records of a segment with the best sums of the scores of their words

mod word_union;

use std::cell::OnceCell;
use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, HashSet};
use std::rc::Rc;

use tantivy::columnar::Column;
use tantivy::fastfield::AliveBitSet;
use tantivy::query::{Bm25StatisticsProvider, Bm25Weight, EnableScoring, Query};
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{DocAddress, DocId, Score, Searcher, SegmentOrdinal, SegmentReader, TantivyError, Term};

use self::word_union::{WordPostings, for_each_above, length_factor};
use super::clauses::WordClause;
use super::dictionary::Dictionary;
use super::index::{Fields, row_term};
use super::scope::Scope;

/// A scope with at most this share of the records is a clause of the query; a wider one is checked on candidates.
const NARROW_SHARE: u64 = 8;

/// Record that matches a query, with the score of the index.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Candidate {
    pub(super) score: Score,
    pub(super) address: DocAddress,
}

impl Eq for Candidate {}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Candidate {
    /// Orders the better candidate first.
    fn cmp(&self, other: &Self) -> Ordering {
        other.score.total_cmp(&self.score).then_with(|| self.address.cmp(&other.address))
    }
}

/// Conditions on candidates.
#[derive(Debug, Clone, Default)]
pub(super) struct CandidateFilter {
    /// Name of a column and the values that pass.
    pub(super) scope: Option<(&'static str, Vec<u64>)>,
    /// Earliest second at which a record was written, and the second before which it was.
    pub(super) after: Option<i64>,
    pub(super) before: Option<i64>,
    /// Row of a stream of which no record passes.
    pub(super) without_stream: Option<u64>,
    excluded: Option<Rc<ExclusionSet>>,
}

/// Records that do not pass a filter.
#[derive(Debug)]
struct ExclusionSet {
    /// It is not a clause of the query for candidates: tantivy 0.27 asks an excluded phrase for records before its first
    /// one, which a phrase does not support.
    query: Box<dyn Query>,
    /// Records of each segment, read once: every tier of candidates needs them.
    documents: OnceCell<Vec<HashSet<DocId>>>,
}

impl CandidateFilter {
    /// Creates a filter for a wide scope. Returns `None` for a narrow scope, which belongs into the query, and for
    /// an index without the columns.
    pub(super) fn for_scope(
        searcher: &Searcher,
        fields: Fields,
        scope: &Scope,
    ) -> Result<Option<Self>, TantivyError> {
        let Some((field, rows)) = scope.rows(fields) else { return Ok(Some(Self::default())) };
        if !fields.has_columns() {
            return Ok(None);
        }
        let mut records = 0;
        for row in rows {
            records += searcher.doc_freq(&Term::from_field_u64(field, row_term(*row)))?;
        }
        if records <= searcher.num_docs() / NARROW_SHARE {
            return Ok(None);
        }
        let column = if matches!(scope, Scope::Connection(_)) { "connection" } else { "stream" };
        let rows = rows.iter().map(|row| row_term(*row)).collect();
        Ok(Some(Self { scope: Some((column, rows)), ..Self::default() }))
    }

    /// Excludes the records that match a query.
    pub(super) fn exclude(&mut self, query: Option<Box<dyn Query>>) {
        self.excluded = query.map(|query| Rc::new(ExclusionSet { query, documents: OnceCell::new() }));
    }

    /// Returns the conditions on the records of a segment.
    fn for_segment<'a>(
        &'a self,
        searcher: &'a Searcher,
        ordinal: SegmentOrdinal,
    ) -> Result<SegmentFilter<'a>, TantivyError> {
        let segment = searcher.segment_reader(ordinal);
        let excluded = match &self.excluded {
            None => None,
            Some(excluded) => match excluded.documents.get() {
                Some(documents) => documents.get(ordinal as usize),
                None => {
                    let documents = matching_documents(searcher, &*excluded.query)?;
                    excluded.documents.get_or_init(|| documents).get(ordinal as usize)
                }
            },
        };
        let columns = segment.fast_fields();
        let scope = match &self.scope {
            Some((column, rows)) => Some((columns.u64(column)?, rows.as_slice())),
            None => None,
        };
        let without_stream = match self.without_stream {
            Some(stream) => Some((columns.u64("stream")?, stream)),
            None => None,
        };
        let has_times = self.after.is_some() || self.before.is_some();
        let times = if has_times { columns.i64("time").ok() } else { None };
        let after = self.after.unwrap_or(i64::MIN);
        let times = has_times.then_some((times, after, self.before));
        Ok(SegmentFilter { alive: segment.alive_bitset(), scope, without_stream, times, excluded })
    }
}

/// Returns the records of each segment that match a query.
fn matching_documents(searcher: &Searcher, query: &dyn Query) -> Result<Vec<HashSet<DocId>>, TantivyError> {
    let weight = query.weight(EnableScoring::disabled_from_searcher(searcher))?;
    let documents_of = |segment: &SegmentReader| {
        let mut found = HashSet::new();
        weight.for_each_no_score(segment, &mut |documents| found.extend(documents))?;
        Ok(found)
    };
    searcher.segment_readers().iter().map(documents_of).collect()
}

/// Conditions on candidates of one segment.
struct SegmentFilter<'a> {
    /// Records that are not deleted; `None` if no record of the segment is.
    alive: Option<&'a AliveBitSet>,
    scope: Option<(Column<u64>, &'a [u64])>,
    without_stream: Option<(Column<u64>, u64)>,
    times: Option<(Option<Column<i64>>, i64, Option<i64>)>,
    excluded: Option<&'a HashSet<DocId>>,
}

impl SegmentFilter<'_> {
    fn passes(&self, document: DocId) -> bool {
        let is_alive = self.alive.is_none_or(|alive| alive.is_alive(document));
        if !is_alive || self.excluded.is_some_and(|excluded| excluded.contains(&document)) {
            return false;
        }
        if let Some((column, rows)) = &self.scope
            && !column.first(document).is_some_and(|row| rows.contains(&row))
        {
            return false;
        }
        if let Some((column, stream)) = &self.without_stream
            && column.first(document) == Some(*stream)
        {
            return false;
        }
        let Some((column, after, before)) = &self.times else { return true };
        let time = column.as_ref().and_then(|column| column.first(document));
        time.is_some_and(|time| time >= *after && before.is_none_or(|before| time < before))
    }
}

/// The least of the added elements, up to a number.
struct LeastElements<T> {
    heap: BinaryHeap<T>,
    count: usize,
}

impl<T: Ord> LeastElements<T> {
    fn new(count: usize) -> Self {
        Self { heap: BinaryHeap::with_capacity(count + 1), count }
    }

    fn push(&mut self, element: T) {
        self.heap.push(element);
        if self.heap.len() > self.count {
            self.heap.pop();
        }
    }

    /// Returns the greatest of the elements, once a further one has to be less.
    fn last(&self) -> Option<&T> {
        self.heap.peek().filter(|_| self.heap.len() >= self.count)
    }
}

impl LeastElements<Candidate> {
    /// Returns the score that a further candidate must exceed.
    fn threshold(&self) -> Score {
        self.last().map_or(Score::MIN, |worst| worst.score)
    }
}

/// Returns the best `count` candidates, best first.
pub(super) fn best_candidates(
    searcher: &Searcher,
    query: &dyn Query,
    filter: &CandidateFilter,
    count: usize,
) -> Result<Vec<Candidate>, TantivyError> {
    let weight = query.weight(EnableScoring::enabled_from_searcher(searcher))?;
    let mut best = LeastElements::new(count);
    for (ordinal, segment) in (0..).zip(searcher.segment_readers()) {
        let filter = filter.for_segment(searcher, ordinal)?;
        let threshold = best.threshold();
        let mut push = |document: DocId, score: Score| {
            if score > best.threshold() && filter.passes(document) {
                best.push(Candidate { score, address: DocAddress::new(ordinal, document) });
            }
            best.threshold()
        };
        weight.for_each_pruning(threshold, segment, &mut push)?;
    }
    Ok(best.heap.into_sorted_vec())
}

/// Returns the best `count` records with any of some words, best first.
pub(super) fn best_of_words(
    dictionary: &Dictionary<'_>,
    clauses: &[WordClause],
    filter: &CandidateFilter,
    count: usize,
) -> Result<Vec<Candidate>, TantivyError> {
    let searcher = dictionary.searcher;
    let mut words = Vec::with_capacity(clauses.len());
    for WordClause { term, boost } in clauses {
        let average = average_length(searcher, term.field())?;
        let weight = bm25_weight(dictionary, term, average)?.boost_by(*boost);
        words.push((term.field(), dictionary.infos(term)?, weight, average));
    }
    let mut best = LeastElements::new(count);
    for (ordinal, segment) in (0..).zip(searcher.segment_readers()) {
        let filter = filter.for_segment(searcher, ordinal)?;
        let mut postings = Vec::with_capacity(words.len());
        for (field, infos, weight, average_of_index) in &words {
            let Some(info) = infos.get(ordinal as usize).and_then(Option::as_ref) else { continue };
            let inverted = segment.inverted_index(*field)?;
            let read = inverted.read_block_postings_from_terminfo(info, IndexRecordOption::WithFreqs)?;
            let average_of_segment = average(inverted.total_num_tokens(), u64::from(segment.max_doc()));
            let factor = length_factor(average_of_segment, *average_of_index);
            let lengths = segment.get_fieldnorms_reader(*field)?;
            postings.push(WordPostings::new(read, weight.clone(), lengths, factor));
        }
        for_each_above(postings, best.threshold(), |document, score| {
            if filter.passes(document) {
                best.push(Candidate { score, address: DocAddress::new(ordinal, document) });
            }
            best.threshold()
        });
    }
    Ok(best.heap.into_sorted_vec())
}

/// Returns the BM25 weight of a word, by the statistics of the whole index.
#[expect(clippy::cast_possible_truncation, reason = "an average")]
fn bm25_weight(
    dictionary: &Dictionary<'_>,
    term: &Term,
    average_length: f64,
) -> Result<Bm25Weight, TantivyError> {
    let (frequency, records) = (dictionary.frequency(term)?, dictionary.searcher.total_num_docs()?);
    Ok(Bm25Weight::for_one_term_without_explain(frequency, records, average_length as Score))
}

/// Returns the average number of words of a field in the whole index.
fn average_length(searcher: &Searcher, field: Field) -> Result<f64, TantivyError> {
    Ok(average(searcher.total_num_tokens(field)?, searcher.total_num_docs()?))
}

#[expect(clippy::cast_precision_loss, reason = "an average")]
fn average(words: u64, records: u64) -> f64 {
    words as f64 / records as f64
}

/// Returns the newest `count` candidates, newest first; those without a time come last.
pub(super) fn newest_candidates(
    searcher: &Searcher,
    query: &dyn Query,
    filter: &CandidateFilter,
    count: usize,
) -> Result<Vec<Candidate>, TantivyError> {
    let weight = query.weight(EnableScoring::disabled_from_searcher(searcher))?;
    // Candidates without a time are older than all others.
    let mut newest = LeastElements::new(count);
    for (ordinal, segment) in (0..).zip(searcher.segment_readers()) {
        let filter = filter.for_segment(searcher, ordinal)?;
        let times = segment.fast_fields().i64("time").ok();
        weight.for_each_no_score(segment, &mut |documents| {
            for document in documents.iter().copied().filter(|document| filter.passes(*document)) {
                let time = times.as_ref().and_then(|times| times.first(document));
                newest.push((Reverse(time), DocAddress::new(ordinal, document)));
            }
        })?;
    }
    let newest = newest.heap.into_sorted_vec().into_iter();
    Ok(newest.map(|(_, address)| Candidate { score: 0.0, address }).collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tantivy::query::{BooleanQuery, BoostQuery, Occur, TermQuery};
    use tantivy::schema::{STRING, Schema, TEXT};
    use tantivy::{Index, TantivyDocument};

    use super::*;

    /// Makes an index of two segments. Word `n` is in about one record of two to the power of `n`.
    fn index(seed: u64, records: u64) -> (Searcher, Field) {
        let mut schema = Schema::builder();
        let text = schema.add_text_field("text", TEXT);
        schema.add_text_field("other", STRING);
        let index = Index::create_in_ram(schema.build());
        let mut writer = index.writer_with_num_threads(1, 20_000_000).unwrap();
        let random = |record: u64, word: u64| {
            let mixed = (seed ^ (record << 8) ^ word).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            (mixed ^ (mixed >> 29)).wrapping_mul(0x94D0_49BB_1331_11EB) >> 20
        };
        for record in 0..records {
            let mut document = TantivyDocument::new();
            for word in (0..12).filter(|word| random(record, *word) % (1 << word) == 0) {
                for _ in 0..=random(record, word + 100) % 3 {
                    document.add_text(text, format!("w{word}"));
                }
            }
            // Records of the first segment are longer, so the averages of segments and index differ.
            let longest = if record <= records / 3 { 200 } else { 4 };
            document.add_text(text, "x ".repeat(usize::try_from(random(record, 99) % longest).unwrap()));
            writer.add_document(document).unwrap();
            if record == records / 3 {
                writer.commit().unwrap();
            }
        }
        writer.commit().unwrap();
        (index.reader().unwrap().searcher(), text)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(12))]
        #[test]
        fn the_best_records_of_words_are_those_of_a_complete_search(
            seed in any::<u64>(),
            records in 1_u64..9_000,
            words in prop::collection::vec((0_u64..13, 0.1_f32..2.0), 1..9),
            count in 1_usize..300,
        ) {
            let (searcher, text) = index(seed, records);
            let clause = |(word, boost): &(u64, f32)| {
                WordClause { term: Term::from_field_text(text, &format!("w{word}")), boost: *boost }
            };
            let clauses: Vec<WordClause> = words.iter().map(clause).collect();
            let dictionary = Dictionary::new(&searcher, text).unwrap();
            let filter = CandidateFilter::default();
            let best = best_of_words(&dictionary, &clauses, &filter, count).unwrap();
            let query = |WordClause { term, boost }: &WordClause| {
                let term = Box::new(TermQuery::new(term.clone(), IndexRecordOption::WithFreqs));
                (Occur::Should, Box::new(BoostQuery::new(term, *boost)) as Box<dyn Query>)
            };
            let query = BooleanQuery::new(clauses.iter().map(query).collect());
            let weight = query.weight(EnableScoring::enabled_from_searcher(&searcher)).unwrap();
            let mut all = Vec::new();
            for (ordinal, segment) in (0..).zip(searcher.segment_readers()) {
                let mut add = |document, score| {
                    all.push(Candidate { score, address: DocAddress::new(ordinal, document) });
                };
                weight.for_each(segment, &mut add).unwrap();
            }
            all.sort();
            prop_assert_eq!(best.len(), all.len().min(count));
            for (found, expected) in best.iter().zip(&all) {
                prop_assert!((found.score - expected.score).abs() < 1e-4, "{found:?} {expected:?}");
                let known = all.iter().find(|other| other.address == found.address);
                prop_assert!(known.is_some_and(|known| (known.score - found.score).abs() < 1e-4));
            }
            let more = best_of_words(&dictionary, &clauses, &filter, count * 2).unwrap();
            prop_assert_eq!(&best[..], &more[..best.len()]);
        }
    }
}
