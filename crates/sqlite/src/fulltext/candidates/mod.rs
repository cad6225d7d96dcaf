//! Selects the candidates of a query: the records with the highest scores of the index.
//!
//! Candidates are ordered by score, then by their place in the index, so the same index gives the same candidates.
//! Conditions that many records pass are checked here, on the records that are good enough, and not by the query, which
//! would read complete lists for them.
//!
//! * `word_union`: the records of a segment with the best sums of the scores of their words

mod word_union;

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use tantivy::columnar::Column;
use tantivy::fastfield::AliveBitSet;
use tantivy::fieldnorm::FieldNormReader;
use tantivy::postings::{Postings, SegmentPostings, TermInfo};
use tantivy::query::{Bm25StatisticsProvider, Bm25Weight, EnableScoring, Query};
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{
    DocAddress, DocId, DocSet, Score, Searcher, SegmentOrdinal, SegmentReader, TERMINATED, TantivyError, Term,
};

use self::word_union::{WordPostings, for_each_above, length_factor};
use super::clauses::WordClause;
use super::dictionary::{Dictionary, TermInfos};
use super::index::{Fields, row_term};
use super::phrase::{PhraseReader, PhraseTerms};
use super::scope::Scope;

/// A scope with at most this share of the records is a clause of the query; a wider one is checked on candidates.
const NARROW_SHARE: u64 = 8;

/// Number of postings that are read in windows in the time in which a record is looked up with its positions.
const PHRASE_COST: u64 = 16;

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
    /// Phrases that a record must have, and those that it must not have.
    pub(super) required: Vec<PhraseTerms>,
    pub(super) excluded: Vec<PhraseTerms>,
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
        if !fields.has_columns() || matches!(scope, Scope::Records(_)) {
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

    /// Returns the conditions on the records of a segment.
    fn for_segment<'a>(
        &'a self,
        searcher: &'a Searcher,
        ordinal: SegmentOrdinal,
    ) -> Result<SegmentFilter<'a>, TantivyError> {
        let segment = searcher.segment_reader(ordinal);
        let open = |phrases: &[PhraseTerms]| -> Result<Vec<PhraseReader>, TantivyError> {
            phrases.iter().map(|phrase| phrase.open(segment)).collect()
        };
        let (required, excluded) = (open(&self.required)?, open(&self.excluded)?);
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
        Ok(SegmentFilter { alive: segment.alive_bitset(), scope, without_stream, times, required, excluded })
    }
}

/// Conditions on candidates of one segment.
struct SegmentFilter<'a> {
    /// Records that are not deleted; `None` if no record of the segment is.
    alive: Option<&'a AliveBitSet>,
    scope: Option<(Column<u64>, &'a [u64])>,
    without_stream: Option<(Column<u64>, u64)>,
    times: Option<(Option<Column<i64>>, i64, Option<i64>)>,
    required: Vec<PhraseReader>,
    excluded: Vec<PhraseReader>,
}

impl SegmentFilter<'_> {
    /// Returns true if a record passes. Records are asked for in ascending order.
    fn passes(&mut self, document: DocId) -> bool {
        if !self.alive.is_none_or(|alive| alive.is_alive(document)) {
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
        if let Some((column, after, before)) = &self.times {
            let time = column.as_ref().and_then(|column| column.first(document));
            if !time.is_some_and(|time| time >= *after && before.is_none_or(|before| time < before)) {
                return false;
            }
        }
        // Positions take the most time.
        self.required.iter_mut().all(|phrase| phrase.has(document))
            && !self.excluded.iter_mut().any(|phrase| phrase.has(document))
    }

    /// Returns the maximum number of records that pass; `None` without a required phrase.
    fn max_count(&self) -> Option<u64> {
        self.required.iter().map(PhraseReader::max_count).min()
    }

    /// Returns the first record from `document` on that has all words of the rarest required phrase.
    fn next(&mut self, document: DocId) -> DocId {
        let rarest = self.required.iter_mut().min_by_key(|phrase| phrase.max_count());
        rarest.map_or(TERMINATED, |phrase| phrase.seek(document))
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
        let mut filter = filter.for_segment(searcher, ordinal)?;
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
        let average_length = average_length(searcher, term.field())?;
        let weight = bm25_weight(dictionary, term, average_length)?.boost_by(*boost);
        words.push(WeightedWord {
            field: term.field(),
            infos: dictionary.infos(term)?,
            weight,
            average_length,
        });
    }
    let mut best = LeastElements::new(count);
    for (ordinal, segment) in (0..).zip(searcher.segment_readers()) {
        let mut filter = filter.for_segment(searcher, ordinal)?;
        let info = |word: &WeightedWord| word.infos.get(ordinal as usize).cloned().flatten();
        let words: Vec<(TermInfo, &WeightedWord)> =
            words.iter().filter_map(|word| Some((info(word)?, word))).collect();
        let postings: u64 = words.iter().map(|(info, _)| u64::from(info.doc_freq)).sum();
        let with_phrase = filter.max_count();
        if with_phrase.is_some_and(|records| records.saturating_mul(PHRASE_COST) < postings) {
            let mut scores = Vec::with_capacity(words.len());
            for (info, word) in &words {
                scores.push(word.scores(segment, info)?);
            }
            let mut document = filter.next(0);
            while document != TERMINATED {
                if filter.passes(document) {
                    let score = sum_of(&mut scores, document);
                    best.push(Candidate { score, address: DocAddress::new(ordinal, document) });
                }
                document = filter.next(document + 1);
            }
            continue;
        }
        let mut unions = Vec::with_capacity(words.len());
        for (info, word) in &words {
            unions.push(word.postings(segment, info)?);
        }
        for_each_above(unions, best.threshold(), |document, score| {
            if filter.passes(document) {
                best.push(Candidate { score, address: DocAddress::new(ordinal, document) });
            }
            best.threshold()
        });
    }
    Ok(best.heap.into_sorted_vec())
}

/// Word of a search with its weight, by the statistics of the whole index.
struct WeightedWord {
    field: Field,
    infos: TermInfos,
    weight: Bm25Weight,
    /// Average number of words of the field.
    average_length: f64,
}

impl WeightedWord {
    /// Opens the postings of the word in a segment, to be read in windows.
    fn postings(&self, segment: &SegmentReader, info: &TermInfo) -> Result<WordPostings, TantivyError> {
        let index = segment.inverted_index(self.field)?;
        let read = index.read_block_postings_from_terminfo(info, IndexRecordOption::WithFreqs)?;
        let average_of_segment = average(index.total_num_tokens(), u64::from(segment.max_doc()));
        let factor = length_factor(average_of_segment, self.average_length);
        let lengths = segment.get_fieldnorms_reader(self.field)?;
        Ok(WordPostings::new(read, self.weight.clone(), lengths, factor))
    }

    /// Opens the postings of the word in a segment, to be read for some records.
    fn scores(&self, segment: &SegmentReader, info: &TermInfo) -> Result<WordScores, TantivyError> {
        let index = segment.inverted_index(self.field)?;
        let postings = index.read_postings_from_terminfo(info, IndexRecordOption::WithFreqs)?;
        let lengths = segment.get_fieldnorms_reader(self.field)?;
        Ok(WordScores { postings, weight: self.weight.clone(), lengths })
    }
}

/// Scores of a word in records that are asked for in ascending order.
struct WordScores {
    postings: SegmentPostings,
    weight: Bm25Weight,
    lengths: FieldNormReader,
}

impl WordScores {
    /// Returns the score in a record, 0 if the record does not have the word.
    fn score(&mut self, document: DocId) -> Score {
        let at = self.postings.doc();
        let at = if at < document { self.postings.seek(document) } else { at };
        if at == document {
            self.weight.score(self.lengths.fieldnorm_id(document), self.postings.term_freq())
        } else {
            0.0
        }
    }
}

/// Returns the sum of the scores of all words in a record, as `word_union` adds them up.
#[expect(clippy::cast_possible_truncation, reason = "scores have 32 bits")]
fn sum_of(words: &mut [WordScores], document: DocId) -> Score {
    words.iter_mut().map(|word| f64::from(word.score(document))).sum::<f64>() as Score
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
        let mut filter = filter.for_segment(searcher, ordinal)?;
        let times = segment.fast_fields().i64("time").ok();
        weight.for_each_no_score(segment, &mut |documents| {
            for document in documents {
                let time = times.as_ref().and_then(|times| times.first(*document));
                let candidate = (Reverse(time), DocAddress::new(ordinal, *document));
                if newest.last().is_none_or(|last| candidate < *last) && filter.passes(*document) {
                    newest.push(candidate);
                }
            }
        })?;
    }
    let newest = newest.heap.into_sorted_vec().into_iter();
    Ok(newest.map(|(_, address)| Candidate { score: 0.0, address }).collect())
}

#[cfg(test)]
mod tests;
