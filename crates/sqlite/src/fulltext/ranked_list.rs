//! The matches of one search in their order, read as far as they are needed.
//!
//! The first [`RANKED`] candidates are ranked by their features. If most of them are of one stream, the best candidates
//! of other streams are ranked with them: short rows of a table would hide longer texts that match as well. So are records
//! with an identifier or a quotation of the query as a whole: short records with its parts would hide them. So are records of
//! a time that the query names: those with its rarest words, or the newest ones if it has no others. Later ones
//! follow in the order of their candidates, in tiers that double: what a tier adds is what earlier tiers do not have.
//! Each tier is a function of the query and the snapshot alone, so pages that are read one by one, each by a new list,
//! have no gaps and no duplicates.
//!
//! A search without words lists the records that pass its operators, the newest first.

use std::cell::RefCell;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use fetchwell_ranking::lexical::expansion::{Lookups, look_up};
use fetchwell_ranking::lexical::explanation::SearchTrace;
use fetchwell_ranking::lexical::scoring::score_noting;
use fetchwell_ranking::lexical::selection::{Copies, Match, ReadTexts, ScoredCandidate, Texts, arrange};
use fetchwell_ranking::lexical::terms::QueryTerms;
use fetchwell_source::{Accuracy, Count, SearchText};
use tantivy::columnar::Column;
use tantivy::query::Query;
use tantivy::{DocAddress, Searcher, SegmentOrdinal, TantivyError};

use super::candidates::{Candidate, CandidateFilter, best_candidates, best_of_words, newest_candidates};
use super::clauses::{CandidateQuery, Constraints};
use super::dictionary::Dictionary;
use super::evidence::read_evidence;
use super::index::{Snapshot, guard};
use super::phrase::PhraseTerms;
use super::scope::Scope;
use super::scoped_dictionary::ScopedDictionary;

/// Number of candidates that are ranked by their features.
pub(super) const RANKED: usize = 200;

/// Number of candidates of other streams that are ranked beside those of one stream.
const RANKED_OTHERS: usize = 50;

/// Number of candidates with a whole unit of the query that are ranked beside the others.
const RANKED_UNITS: usize = 50;

/// Number of candidates of each time that the query names, and of the newest ones of a time if it names nothing else.
const RANKED_OF_TIME: usize = 100;
const RANKED_NEWEST: usize = 50;

/// Number of the first candidates beyond which their stream hides others: the share that a page may have of one stream.
const DOMINANT: usize = RANKED * 6 / 10;

/// Ordered matches of a search in one snapshot of the index.
pub(super) struct RankedList<'a> {
    snapshot: &'a Snapshot,
    terms: &'a QueryTerms,
    dictionary: Dictionary<'a>,
    pub(super) lookups: Lookups,
    query: CandidateQuery,
    /// Query for the records that have a unit of the query as a whole.
    whole_units: Option<Box<dyn Query>>,
    /// Query for the records of a time that the query names.
    of_time: Option<CandidateQuery>,
    /// Ids of the streams of the kinds that the query asks for.
    kind_streams: &'a [u64],
    filter: CandidateFilter,
    /// True if records are selected by their words alone.
    has_words_only: bool,
    /// True if the search covers one stream.
    has_one_stream: bool,
    copies: CopySource<'a>,
    trace: &'a RefCell<SearchTrace>,
    read: RefCell<ReadMatches>,
}

/// Records of a search.
#[derive(Debug, Clone, Copy)]
pub(super) struct ListRecords<'a> {
    /// Scope of the search, whose words count.
    pub(super) scope: &'a Scope,
    /// Records to list; `None` for all of the scope.
    pub(super) within: Option<&'a Scope>,
    /// Ids of the streams of the kinds that the query asks for.
    pub(super) kind_streams: &'a [u64],
}

/// Source of the near-copies among the ranked candidates.
pub(super) enum CopySource<'a> {
    /// A first page compares texts.
    Texts(&'a ReadTexts<'a>),
    /// Later pages know what the first one found: records may have changed since.
    Known(Copies),
}

/// Matches that were read so far.
#[derive(Default)]
struct ReadMatches {
    matches: Vec<Match>,
    seen: HashSet<DocAddress>,
    /// Number of candidates of the last tier; 0 before the first.
    depth: usize,
    is_complete: bool,
    /// Near-copies among the first candidates.
    copies: Copies,
}

impl<'a> RankedList<'a> {
    /// Prepares a search. Reads the dictionary of the index, no matches yet.
    pub(super) fn new(
        snapshot: &'a Snapshot,
        terms: &'a QueryTerms,
        text: &SearchText,
        records: ListRecords<'a>,
        copies: CopySource<'a>,
        trace: &'a RefCell<SearchTrace>,
    ) -> Result<Self, TantivyError> {
        let ListRecords { scope: in_scope, within, kind_streams } = records;
        let Snapshot { fields, searcher, known, .. } = snapshot;
        let dictionary = Dictionary::new(searcher, fields.text)?;
        let vocabulary =
            ScopedDictionary { dictionary: &dictionary, fields: *fields, scope: in_scope, known };
        let lookups = look_up(&vocabulary, terms)?;
        let listed = within.unwrap_or(in_scope);
        let wide = CandidateFilter::for_scope(searcher, *fields, listed)?;
        // Phrases alone are checked on candidates; beside other clauses they select them.
        let in_fields = [&terms.title, &terms.from, &terms.filename];
        let has_clauses = wide.is_none() || in_fields.iter().any(|words| !words.is_empty());
        let scope = if wide.is_some() { None } else { Some(listed) };
        let constraints = Constraints { searcher, terms, scope, with_phrases: has_clauses };
        let query = fields.candidates(&lookups, &constraints)?;
        let whole_units = fields.whole_units(&dictionary, &constraints)?;
        let of_time = match (terms.dates.is_empty() || !fields.has_columns(), terms.has_matter) {
            (true, _) => None,
            (false, true) => Some(fields.with_rare_words(&lookups, &constraints)?),
            (false, false) => Some(CandidateQuery::Other(fields.all_passing(&constraints)?)),
        };
        let mut filter = wide.unwrap_or_default();
        filter.after = text.after.map(jiff::Timestamp::as_second);
        filter.before = text.before.map(jiff::Timestamp::as_second);
        if !has_clauses {
            filter.required = PhraseTerms::of_all(searcher, fields.text, &terms.required)?;
        }
        filter.excluded = PhraseTerms::of_all(searcher, fields.text, &terms.excluded)?;
        let has_words_only = text.is_plain() && *in_scope == Scope::Everything;
        let has_one_stream = matches!(in_scope, Scope::Streams(rows) if rows.len() < 2);
        let read = RefCell::default();
        trace.borrow_mut().clock.end("words");
        Ok(Self {
            snapshot,
            terms,
            dictionary,
            lookups,
            query,
            whole_units,
            of_time,
            kind_streams,
            filter,
            has_words_only,
            has_one_stream,
            copies,
            trace,
            read,
        })
    }

    /// Returns at most `limit` matches after the first `offset`.
    pub(super) fn matches(&self, offset: usize, limit: usize) -> Result<Vec<Match>, TantivyError> {
        let mut read = self.read.borrow_mut();
        while !read.is_complete && read.matches.len() < offset.saturating_add(limit) {
            guard(|| self.read_tier(&mut read))?;
        }
        Ok(read.matches.iter().skip(offset).take(limit).copied().collect())
    }

    /// Returns the near-copies among the ranked candidates, as far as these were read.
    pub(super) fn copies(&self) -> Copies {
        match &self.copies {
            CopySource::Texts(_) => self.read.borrow().copies.clone(),
            CopySource::Known(copies) => copies.clone(),
        }
    }

    /// Returns the number of matching records as far as it is known without reading all of them.
    pub(super) fn count(&self) -> Count {
        let read = self.read.borrow();
        let found = read.matches.len() as u64;
        if read.is_complete {
            return Count::exact(found);
        }
        let has_deletes =
            self.snapshot.searcher.segment_readers().iter().any(|segment| segment.has_deletes());
        let words = || self.lookups.words.iter().filter(|word| word.selects());
        let alternatives = || words().flat_map(|word| &word.alternatives);
        let max_frequency = alternatives().map(|alternative| alternative.frequency).max().unwrap_or(0);
        if !self.has_words_only || has_deletes {
            return Count { value: found, accuracy: Accuracy::LowerBound };
        }
        let is_one_word = alternatives().count() == 1 && self.lookups.sequences.is_empty();
        let accuracy = if is_one_word { Accuracy::Exact } else { Accuracy::LowerBound };
        Count { value: max_frequency.max(found), accuracy }
    }

    fn read_tier(&self, read: &mut ReadMatches) -> Result<(), TantivyError> {
        let is_first = read.depth == 0;
        let depth = if is_first { RANKED } else { read.depth.saturating_mul(2) };
        let by_time = self.terms.is_empty();
        let mut candidates = self.candidates(&self.filter, depth)?;
        read.is_complete = candidates.len() < depth;
        if is_first && !by_time {
            if !read.is_complete {
                candidates.extend(self.candidates_beside(&candidates)?);
            }
            candidates.extend(self.candidates_of_time()?);
        }
        read.depth = depth;
        let new: Vec<Candidate> =
            candidates.into_iter().filter(|candidate| read.seen.insert(candidate.address)).collect();
        self.end_stage("candidates");
        let matches = if is_first && !by_time {
            let ranked = self.scored(&new)?;
            self.end_stage("score");
            read.copies = self.copies_among(&ranked);
            let arranged = arrange(ranked, &read.copies);
            self.end_stage("near-copies");
            arranged
        } else {
            self.in_order(&new)?
        };
        read.matches.extend(matches);
        Ok(())
    }

    fn end_stage(&self, name: &'static str) {
        self.trace.borrow_mut().clock.end(name);
    }

    /// Returns the best `count` candidates that pass a filter.
    fn candidates(&self, filter: &CandidateFilter, count: usize) -> Result<Vec<Candidate>, TantivyError> {
        self.selected(&self.query, filter, count)
    }

    /// Returns the best `count` records of a selection that pass a filter.
    fn selected(
        &self,
        query: &CandidateQuery,
        filter: &CandidateFilter,
        count: usize,
    ) -> Result<Vec<Candidate>, TantivyError> {
        let searcher = &self.snapshot.searcher;
        match query {
            CandidateQuery::AnyWord(words) => best_of_words(&self.dictionary, words, filter, count),
            CandidateQuery::Other(query) if self.terms.is_empty() => {
                newest_candidates(searcher, &**query, filter, count)
            }
            CandidateQuery::Other(query) => best_candidates(searcher, &**query, filter, count),
        }
    }

    /// Returns the candidates to rank beside the best ones: those of other streams if one stream hides them, and those with a
    /// whole unit of the query.
    fn candidates_beside(&self, best: &[Candidate]) -> Result<Vec<Candidate>, TantivyError> {
        let mut beside = Vec::new();
        if let Some(stream) = self.dominant_stream(best)? {
            let mut others = self.filter.clone();
            others.without_stream = Some(stream);
            beside = self.candidates(&others, RANKED_OTHERS)?;
        }
        if let Some(units) = &self.whole_units {
            beside.extend(best_candidates(&self.snapshot.searcher, &**units, &self.filter, RANKED_UNITS)?);
        }
        Ok(beside)
    }

    /// Returns the candidates of the times that the query names.
    fn candidates_of_time(&self) -> Result<Vec<Candidate>, TantivyError> {
        let mut found = Vec::new();
        let Some(query) = &self.of_time else { return Ok(found) };
        for window in &self.terms.dates {
            let mut filter = self.filter.clone();
            filter.after = filter.after.max(Some(window.after()));
            filter.before = Some(filter.before.map_or(window.before(), |before| before.min(window.before())));
            match query {
                CandidateQuery::Other(query) if !self.terms.has_matter => {
                    // A year is no more than its words.
                    if window.is_narrow() {
                        let searcher = &self.snapshot.searcher;
                        found.extend(newest_candidates(searcher, &**query, &filter, RANKED_NEWEST)?);
                    }
                }
                query => found.extend(self.selected(query, &filter, RANKED_OF_TIME)?),
            }
        }
        Ok(found)
    }

    /// Returns the row of the stream that most candidates are of, if the search covers others.
    fn dominant_stream(&self, candidates: &[Candidate]) -> Result<Option<u64>, TantivyError> {
        let Snapshot { fields, searcher, .. } = self.snapshot;
        if self.has_one_stream || !fields.has_columns() {
            return Ok(None);
        }
        let mut columns: HashMap<SegmentOrdinal, Column<u64>> = HashMap::new();
        let mut counts: HashMap<u64, usize> = HashMap::new();
        for Candidate { address, .. } in candidates {
            let column = column_of(searcher, &mut columns, address.segment_ord, "stream")?;
            if let Some(stream) = column.first(address.doc_id) {
                *counts.entry(stream).or_default() += 1;
            }
        }
        Ok(counts.into_iter().find(|(_, count)| *count > DOMINANT).map(|(stream, _)| stream))
    }

    /// Returns the near-copies among ranked candidates.
    fn copies_among(&self, ranked: &[ScoredCandidate]) -> Copies {
        match &self.copies {
            CopySource::Known(copies) => copies.clone(),
            CopySource::Texts(read) => {
                let words = self.lookups.words.iter().filter(|word| word.selects());
                let words = words.flat_map(|word| &word.alternatives);
                let asked = words.map(|alternative| alternative.text.clone()).collect();
                Copies::find(ranked, &Texts { asked, read })
            }
        }
    }

    /// Returns the candidates of the first tier with their scores, the best first.
    fn scored(&self, candidates: &[Candidate]) -> Result<Vec<ScoredCandidate>, TantivyError> {
        let Snapshot { fields, .. } = self.snapshot;
        let has_times = !self.terms.dates.is_empty();
        let evidence = read_evidence(&self.dictionary, *fields, &self.lookups, candidates, has_times)?;
        let mut trace = self.trace.borrow_mut();
        Ok(score_noting(self.terms, &self.lookups, evidence, self.kind_streams, trace.breakdown.as_mut()))
    }

    /// Returns candidates in their order. Their scores are far below those of the ranked ones.
    fn in_order(&self, candidates: &[Candidate]) -> Result<Vec<Match>, TantivyError> {
        let mut columns: HashMap<SegmentOrdinal, Column<u64>> = HashMap::new();
        let mut matches = Vec::with_capacity(candidates.len());
        for Candidate { score, address } in candidates {
            let column = column_of(&self.snapshot.searcher, &mut columns, address.segment_ord, "record")?;
            if let Some(row) = column.first(address.doc_id).and_then(|row| i64::try_from(row).ok()) {
                let score = score / (1_000.0 + score);
                matches.push(Match::new(row, score));
            }
        }
        Ok(matches)
    }
}

/// Returns a column of a segment. Reading a column loads all of it, so it is read once per segment.
fn column_of<'a>(
    searcher: &Searcher,
    columns: &'a mut HashMap<SegmentOrdinal, Column<u64>>,
    segment: SegmentOrdinal,
    name: &str,
) -> Result<&'a Column<u64>, TantivyError> {
    match columns.entry(segment) {
        Entry::Occupied(known) => Ok(known.into_mut()),
        Entry::Vacant(free) => {
            let column = searcher.segment_reader(segment).fast_fields().u64(name)?;
            Ok(free.insert(column))
        }
    }
}
