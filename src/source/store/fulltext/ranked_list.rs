//! The matches of one search in their order, read as far as they are needed.
//!
//! The first [`RANKED`] candidates are ranked by their features. Later ones follow in the order of their candidates, in
//! tiers that double: what a tier adds is what earlier tiers do not have. Each tier is a function of the query and the
//! snapshot alone, so pages that are read one by one, each by a new list, have no gaps and no duplicates.
//!
//! A search without words lists the records that pass its operators, the newest first.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};

use tantivy::columnar::Column;
use tantivy::{DocAddress, SegmentOrdinal, TantivyError};

use super::candidates::{Candidate, CandidateFilter, best_candidates, best_of_words, newest_candidates};
use super::clauses::{CandidateQuery, Constraints};
use super::dictionary::Dictionary;
use super::evidence::{ranked_query, read_evidence};
use super::expansion::{Lookups, look_up};
use super::index::{Snapshot, guard};
use super::ranking::WEIGHTS;
use super::scope::Scope;
use super::selection::{Match, Scored, arrange};
use super::terms::QueryTerms;
use crate::source::{Accuracy, Count, SearchText};

/// Number of candidates that are ranked by their features.
pub(super) const RANKED: usize = 200;

/// Ordered matches of a search in one snapshot of the index.
pub(super) struct RankedList<'a> {
    snapshot: &'a Snapshot,
    terms: &'a QueryTerms,
    dictionary: Dictionary<'a>,
    pub(super) lookups: Lookups,
    query: CandidateQuery,
    filter: CandidateFilter,
    /// True if records are selected by their words alone.
    has_words_only: bool,
    read: RefCell<ReadMatches>,
}

/// Matches that were read so far.
#[derive(Default)]
struct ReadMatches {
    matches: Vec<Match>,
    seen: HashSet<DocAddress>,
    /// Number of candidates of the last tier; 0 before the first.
    depth: usize,
    is_complete: bool,
}

impl<'a> RankedList<'a> {
    /// Prepares a search. Reads the dictionary of the index, no matches yet.
    pub(super) fn new(
        snapshot: &'a Snapshot,
        terms: &'a QueryTerms,
        text: &SearchText,
        scope: &Scope,
    ) -> Result<Self, TantivyError> {
        let Snapshot { fields, searcher, .. } = snapshot;
        let dictionary = Dictionary::new(searcher, fields.text)?;
        let lookups = look_up(&dictionary, *fields, scope, terms)?;
        let wide = CandidateFilter::for_scope(searcher, *fields, scope)?;
        let constraints =
            Constraints { searcher, terms, scope: if wide.is_some() { None } else { Some(scope) } };
        let query = fields.candidates(&lookups, &constraints)?;
        let mut filter = wide.unwrap_or_default();
        filter.after = text.after.map(jiff::Timestamp::as_second);
        filter.before = text.before.map(jiff::Timestamp::as_second);
        filter.excluded = fields.with_phrases(searcher, &terms.excluded)?;
        let has_words_only = text.is_plain() && *scope == Scope::Everything;
        let read = RefCell::default();
        Ok(Self { snapshot, terms, dictionary, lookups, query, filter, has_words_only, read })
    }

    /// Returns at most `limit` matches after the first `offset`.
    pub(super) fn matches(&self, offset: usize, limit: usize) -> Result<Vec<Match>, TantivyError> {
        let mut read = self.read.borrow_mut();
        while !read.is_complete && read.matches.len() < offset.saturating_add(limit) {
            guard(|| self.read_tier(&mut read))?;
        }
        Ok(read.matches.iter().skip(offset).take(limit).copied().collect())
    }

    /// Returns the greatest share of the query's rarity that a record can have, with the words that some record has.
    pub(super) fn possible_coverage(&self) -> f32 {
        let total: f32 = self.lookups.words.iter().map(|word| word.weight).sum();
        let best = self.lookups.words.iter().map(|word| {
            let qualities = word.alternatives.iter().map(|alternative| alternative.quality);
            word.weight * qualities.fold(0.0, f32::max)
        });
        if total > 0.0 { best.sum::<f32>() / total } else { 0.0 }
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
        let alternatives = || self.lookups.words.iter().flat_map(|word| &word.alternatives);
        let most = alternatives().map(|alternative| alternative.frequency).max().unwrap_or(0);
        if !self.has_words_only || has_deletes {
            return Count { value: found, accuracy: Accuracy::LowerBound };
        }
        let is_one_word = alternatives().count() == 1;
        let accuracy = if is_one_word { Accuracy::Exact } else { Accuracy::LowerBound };
        Count { value: most.max(found), accuracy }
    }

    fn read_tier(&self, read: &mut ReadMatches) -> Result<(), TantivyError> {
        let is_first = read.depth == 0;
        let depth = if is_first { RANKED } else { read.depth.saturating_mul(2) };
        let searcher = &self.snapshot.searcher;
        let by_time = self.terms.is_empty();
        let candidates = match &self.query {
            CandidateQuery::AnyWord(words) => best_of_words(&self.dictionary, words, &self.filter, depth)?,
            CandidateQuery::Other(query) if by_time => {
                newest_candidates(searcher, &**query, &self.filter, depth)?
            }
            CandidateQuery::Other(query) => best_candidates(searcher, &**query, &self.filter, depth)?,
        };
        read.is_complete = candidates.len() < depth;
        read.depth = depth;
        let new: Vec<Candidate> =
            candidates.into_iter().filter(|candidate| read.seen.insert(candidate.address)).collect();
        let matches = if is_first && !by_time { self.rank(&new)? } else { self.in_order(&new)? };
        read.matches.extend(matches);
        Ok(())
    }

    /// Ranks the candidates of the first tier.
    fn rank(&self, candidates: &[Candidate]) -> Result<Vec<Match>, TantivyError> {
        let Snapshot { fields, .. } = self.snapshot;
        let query = ranked_query(self.terms, &self.lookups);
        let evidence = read_evidence(&self.dictionary, *fields, &self.lookups, candidates)?;
        let scored = evidence.into_iter().map(|evidence| {
            let features = query.features(&evidence.record);
            Scored {
                row: evidence.row,
                score: features.score(&WEIGHTS),
                coverage: features.coverage,
                stream: evidence.stream,
                likeness: evidence.likeness,
            }
        });
        Ok(arrange(scored.collect()))
    }

    /// Returns candidates in their order. Their scores are far below those of the ranked ones.
    fn in_order(&self, candidates: &[Candidate]) -> Result<Vec<Match>, TantivyError> {
        // Reading a column loads all of it, so it is read once per segment.
        let mut columns: HashMap<SegmentOrdinal, Column<u64>> = HashMap::new();
        let mut matches = Vec::with_capacity(candidates.len());
        for Candidate { score, address } in candidates {
            let column = match columns.get(&address.segment_ord) {
                Some(column) => column,
                None => {
                    let segment = self.snapshot.searcher.segment_reader(address.segment_ord);
                    let column = segment.fast_fields().u64("record")?;
                    columns.entry(address.segment_ord).or_insert(column)
                }
            };
            if let Some(row) = column.first(address.doc_id).and_then(|row| i64::try_from(row).ok()) {
                let score = score / (1_000.0 + score);
                matches.push(Match::new(row, score));
            }
        }
        Ok(matches)
    }
}
