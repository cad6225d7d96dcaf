//! Search results of several sources as one list: reciprocal rank fusion.
//!
//! Scores of different sources cannot be compared, but ranks can. A hit scores 1 / (60 + rank) in each source that
//! has it, so the first hits of all sources come first, and a hit of two sources comes before both. Ties are broken
//! by time, newest first, and then by handle, so that the order does not depend on which source answered first.
//!
//! `Fusion` does no IO: `Fusion::pending_reads` returns the pages to read and `Fusion::push_page` accepts one. A page
//! of the list ends in the middle of pages of the sources, so its position contains the hits that were read and not
//! returned.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use fetchwell_core::handle::{Handle, RecordAddress, SourceName};
use fetchwell_core::record::{Hit, HitId, SortValue};
use serde::{Deserialize, Serialize};

use super::names::Names;
use crate::merge::{CycleDetector, Key, SeenRows, digest};
use crate::{Accuracy, Count, SearchPage, SearchPosition, SourceError};

/// Constant of the formula, as published: it keeps the first rank from outweighing all others.
const K: u64 = 60;

/// Fixed-point unit of scores. A sum of integers does not depend on the order of its terms.
const ONE: u64 = 1 << 48;

/// Maximum number of pages read from one source for one page of the list.
const MAX_READS: usize = 4;

/// Search over several sources, with the hits taken so far.
#[derive(Debug)]
pub(super) struct Fusion {
    names: Arc<Names>,
    saved: SavedSearch,
    state: Vec<InputState>,
    hits: Vec<Hit>,
}

/// Page that has to be read next from a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PendingRead {
    /// Index of the input.
    pub input: usize,
    /// Name of the source.
    pub(super) source: SourceName,
    /// Position of the page, or `None` for the first one.
    pub(super) position: Option<SearchPosition>,
}

/// Position after a page of a search. Its serialized form is a cursor, so its keys are stable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SavedSearch {
    #[serde(rename = "feeds")]
    inputs: Vec<Input>,
    /// Hits that were returned: servers repeat hits, and two sources can have the same record.
    #[serde(rename = "given")]
    returned: SeenRows,
    #[serde(default)]
    windowed: bool,
    /// True if a source failed, so that the count is a lower bound.
    #[serde(default)]
    is_partial: bool,
    #[serde(default)]
    count: Option<(u64, Accuracy)>,
}

/// Hits of one source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    source: SourceName,
    /// Hits that were read and not returned, each with its rank, counted from 1.
    hits: VecDeque<(u64, Hit)>,
    /// Rank of the last hit that was read.
    read: u64,
    next: Next,
    #[serde(rename = "trail", default)]
    cycles: CycleDetector,
}

/// Start of the next page of an input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Next {
    Start,
    After(String),
    End,
}

/// State of an input during one call.
#[derive(Debug, Clone, Default)]
struct InputState {
    /// Digests of `Input::hits`, in their order.
    keys: VecDeque<Key>,
    reads: usize,
    has_failed: bool,
    /// True if a hit of this page came from the input.
    has_contributed: bool,
}

impl Fusion {
    /// Starts a search at its best hits.
    pub(super) fn start(names: Arc<Names>, sources: impl IntoIterator<Item = SourceName>) -> Self {
        let input = |source| Input {
            source,
            hits: VecDeque::new(),
            read: 0,
            next: Next::Start,
            cycles: CycleDetector::default(),
        };
        let inputs = sources.into_iter().map(input).collect();
        let saved = SavedSearch {
            inputs,
            returned: SeenRows::default(),
            windowed: false,
            is_partial: false,
            count: None,
        };
        Self::from_saved(names, saved)
    }

    /// Continues a search from a position.
    pub(super) fn resume(names: Arc<Names>, position: &SearchPosition) -> Result<Self, SourceError> {
        let saved = serde_json::from_str(&position.0).map_err(|_not_ours| SourceError::InvalidCursor)?;
        Ok(Self::from_saved(names, saved))
    }

    fn from_saved(names: Arc<Names>, saved: SavedSearch) -> Self {
        let state = |input: &Input| InputState {
            keys: input.hits.iter().map(|(rank, hit)| key(&names, &input.source, *rank, hit)).collect(),
            ..InputState::default()
        };
        Self { state: saved.inputs.iter().map(state).collect(), names, saved, hits: Vec::new() }
    }

    /// Returns the pages to read: one for each input with an unknown next hit.
    pub(super) fn pending_reads(&self) -> Vec<PendingRead> {
        let inputs = self.saved.inputs.iter().zip(&self.state).enumerate();
        inputs
            .filter(|(_, (input, state))| is_awaited(input, state) && state.reads < MAX_READS)
            .map(|(number, (input, _))| PendingRead {
                input: number,
                source: input.source.clone(),
                position: match &input.next {
                    Next::After(position) => Some(SearchPosition(position.clone())),
                    Next::Start | Next::End => None,
                },
            })
            .collect()
    }

    /// Accepts a page of an input.
    pub(super) fn push_page(&mut self, number: usize, page: SearchPage) {
        let (Some(input), Some(state)) = (self.saved.inputs.get_mut(number), self.state.get_mut(number))
        else {
            return;
        };
        state.reads += 1;
        if input.next == Next::Start {
            // A source that does not count makes the sum a lower bound.
            let more =
                page.count.unwrap_or(Count { value: page.hits.len() as u64, accuracy: Accuracy::LowerBound });
            let exact = page.count.is_none() && page.next.is_none() && !page.windowed;
            let more = if exact { Count::exact(more.value) } else { more };
            let sum = self.saved.count.map(|(value, accuracy)| Count { value, accuracy });
            let sum = sum.map_or(more, |sum| sum.and(more));
            self.saved.count = Some((sum.value, sum.accuracy));
        }
        self.saved.windowed |= page.windowed;
        let mut own: HashSet<Key> = state.keys.iter().copied().collect();
        for hit in page.hits {
            input.read += 1;
            let key = key(&self.names, &input.source, input.read, &hit);
            if !self.saved.returned.contains(key) && own.insert(key) {
                state.keys.push_back(key);
                input.hits.push_back((input.read, hit));
            }
        }
        input.next = match page.next {
            Some(SearchPosition(next)) if !next.is_empty() && !input.cycles.visit(&next) => Next::After(next),
            _ => Next::End,
        };
    }

    /// Marks an input as failed. The search continues without it and reads it again for the next page.
    pub(super) fn fail(&mut self, number: usize) {
        if let Some(state) = self.state.get_mut(number) {
            state.has_failed = true;
        }
        self.saved.is_partial = true;
    }

    /// Marks an input as ended.
    pub(super) fn end(&mut self, number: usize) {
        if let Some(input) = self.saved.inputs.get_mut(number) {
            input.next = Next::End;
        }
    }

    /// Takes hits until there are `limit`, or until the next hit of an input is unknown.
    pub(super) fn take(&mut self, limit: usize) {
        let mut ranked: Option<Vec<(Rank, Key)>> = None;
        while self.hits.len() < limit
            && !self.saved.inputs.iter().zip(&self.state).any(|(input, state)| is_awaited(input, state))
        {
            // Ranked once per call, because only `push_page` changes the ranking.
            let best = ranked.get_or_insert_with(|| self.ranked()).pop();
            let Some((_, key)) = best else { return };
            self.take_hit(key);
        }
    }

    /// Ranks all hits that were read and not returned, best last.
    fn ranked(&self) -> Vec<(Rank, Key)> {
        let inputs = || self.saved.inputs.iter().zip(&self.state);
        let hits = || {
            inputs().enumerate().flat_map(|(number, (input, state))| {
                let hits = input.hits.iter().zip(&state.keys);
                hits.map(move |((rank, hit), key)| ((number, &input.source), *rank, hit, *key))
            })
        };
        let mut score: HashMap<Key, u64> = HashMap::new();
        for (_, rank, _, key) in hits() {
            *score.entry(key).or_default() += score_at(rank);
        }
        let mut ranked: HashMap<Key, Rank> = HashMap::new();
        for ((number, source), _, hit, key) in hits() {
            let rank = Rank {
                score: score.get(&key).copied().unwrap_or_default(),
                time: hit.time.as_deref().map_or(SortValue::Missing, SortValue::text),
                name: Reverse(name(&self.names, source, hit)),
                input: Reverse(number),
            };
            let known = ranked.entry(key).or_insert_with(|| rank.clone());
            if rank > *known {
                *known = rank;
            }
        }
        let mut ranked: Vec<(Rank, Key)> = ranked.into_iter().map(|(key, rank)| (rank, key)).collect();
        ranked.sort();
        ranked
    }

    /// Takes a hit and removes its copies from all inputs.
    fn take_hit(&mut self, taken: Key) {
        let mut found: Option<Hit> = None;
        for (input, state) in self.saved.inputs.iter_mut().zip(&mut self.state) {
            let index = state.keys.iter().position(|key| *key == taken);
            if let Some(index) = index
                && let Some((_, hit)) = input.hits.remove(index)
            {
                state.keys.remove(index);
                state.has_contributed = true;
                found.get_or_insert(hit);
            }
        }
        if let Some(hit) = found {
            if hit.id != HitId::Nameless {
                self.saved.returned.insert(taken);
            }
            self.hits.push(hit);
        }
    }

    /// Returns true if at least `hits` hits were taken.
    pub(super) fn has(&self, hits: usize) -> bool {
        self.hits.len() >= hits
    }

    /// Returns the page and the position of the next one. Failed inputs alone do not cause a next page.
    pub(super) fn page(self) -> SearchPage {
        let goes_on =
            self.saved.inputs.iter().zip(&self.state).any(|(input, state)| {
                !input.hits.is_empty() || (input.next != Next::End && !state.has_failed)
            });
        let next = goes_on.then(|| serde_json::to_string(&self.saved).ok()).flatten();
        let count = self.saved.count.map(|(value, accuracy)| Count { value, accuracy });
        SearchPage {
            hits: self.hits,
            next: next.map(SearchPosition),
            windowed: self.saved.windowed,
            count: if self.saved.is_partial { count.map(Count::at_least) } else { count },
            ..SearchPage::default()
        }
    }
}

/// Returns true if the next hit of an input is unknown and the search has to wait for it. An input that returns only
/// empty pages is not waited for; its hits come with a later page.
fn is_awaited(input: &Input, state: &InputState) -> bool {
    let is_empty = input.hits.is_empty() && input.next != Next::End && !state.has_failed;
    is_empty && (state.reads < MAX_READS || state.has_contributed)
}

/// Sort key of a hit; the greatest comes first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    score: u64,
    time: SortValue,
    name: Reverse<String>,
    input: Reverse<usize>,
}

fn score_at(rank: u64) -> u64 {
    ONE / (K + rank)
}

/// Returns the name of a hit. It contains the source's own id of the connection, so that copies in two sources have the
/// same name.
fn name(names: &Names, source: &SourceName, hit: &Hit) -> String {
    match &hit.id {
        HitId::Record(address) => {
            let own = address.connection.as_ref().map(|printed| names.own(source, printed));
            let address = RecordAddress { connection: own, ..address.clone() };
            Handle::mint(&address)
                .map_or_else(|| format!("{}:{}", address.stream, address.record), |handle| handle.to_string())
        }
        HitId::Opaque(id) => id.clone(),
        HitId::Nameless => hit.title.clone(),
    }
}

/// Returns the digest by which copies of a hit are recognized. A record with a connection is the same record in every
/// source; other ids are distinct for each source; a hit without an id is never a copy.
fn key(names: &Names, source: &SourceName, rank: u64, hit: &Hit) -> Key {
    let (name, rank) = (name(names, source, hit), rank.to_be_bytes());
    match &hit.id {
        HitId::Record(address) if address.connection.is_some() => digest([name.as_bytes()]),
        HitId::Record(_) | HitId::Opaque(_) => digest([source.as_str().as_bytes(), name.as_bytes()]),
        HitId::Nameless => digest([source.as_str().as_bytes(), rank.as_slice(), b""]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hit(connection: &str, record: usize, time: Option<&str>) -> Hit {
        let address = format!("{connection}/s:r{record:03}").parse::<Handle>().unwrap().address().clone();
        Hit { time: time.map(str::to_owned), ..Hit::new(HitId::Record(address), String::new()) }
    }

    fn page(hits: impl IntoIterator<Item = Hit>, next: Option<&str>) -> SearchPage {
        SearchPage {
            hits: hits.into_iter().collect(),
            next: next.map(|next| SearchPosition(next.to_owned())),
            ..SearchPage::default()
        }
    }

    fn two() -> Fusion {
        Fusion::start(Arc::default(), ["a", "b"].map(|name| name.parse().unwrap()))
    }

    fn names(page: &SearchPage) -> Vec<String> {
        page.hits.iter().map(|hit| name(&Names::default(), &"s".parse().unwrap(), hit)).collect()
    }

    #[test]
    fn the_first_page_of_two_sources_shows_both_fairly() {
        for b_first in [false, true] {
            let mut fusion = two();
            let inputs = [("a", 0), ("b", 1)];
            let order = if b_first { [inputs[1], inputs[0]] } else { inputs };
            for (connection, input) in order {
                fusion.push_page(input, page((0..25).map(|n| hit(connection, n, None)), None));
            }
            fusion.take(25);
            let first = fusion.page();
            let expect: Vec<String> =
                (0..25).map(|n| format!("{}/s:r{:03}", ["a", "b"][n % 2], n / 2)).collect();
            assert_eq!(names(&first), expect);
            let mut rest = Fusion::resume(Arc::default(), &first.next.unwrap()).unwrap();
            rest.take(100);
            let rest = rest.page();
            assert_eq!((rest.hits.len(), rest.next), (25, None));
        }
    }

    #[test]
    fn hit_of_two_sources_comes_first_and_once() {
        let mut fusion = two();
        fusion.push_page(0, page([hit("a", 0, None), hit("x", 7, None)], None));
        fusion.push_page(1, page([hit("b", 0, None), hit("b", 1, None), hit("x", 7, None)], None));
        fusion.take(10);
        assert_eq!(names(&fusion.page()), ["x/s:r007", "a/s:r000", "b/s:r000", "b/s:r001"]);
    }

    #[test]
    fn ties_go_to_the_newer_hit() {
        let mut fusion = two();
        fusion.push_page(0, page([hit("a", 0, Some("2026-01-01T00:00:00Z")), hit("a", 1, None)], None));
        let hits = [hit("b", 0, Some("2026-01-01T02:00:00+01:00")), hit("b", 1, Some("2020"))];
        fusion.push_page(1, page(hits, None));
        fusion.take(10);
        assert_eq!(names(&fusion.page()), ["b/s:r000", "a/s:r000", "b/s:r001", "a/s:r001"]);
    }

    #[test]
    fn repeated_hits_and_cursor_cycles_end_the_search() {
        let mut fusion = Fusion::start(Arc::default(), ["a".parse().unwrap()]);
        let (mut reads, mut all) = (0, Vec::new());
        loop {
            if let Some(pending) = fusion.pending_reads().pop() {
                reads += 1;
                assert!(reads < 50);
                fusion.push_page(
                    pending.input,
                    page((0..5).map(|n| hit("a", n, None)), Some(["x", "y"][reads % 2])),
                );
                fusion.take(3);
                continue;
            }
            let page = fusion.page();
            all.extend(names(&page));
            let Some(next) = page.next else { break };
            fusion = Fusion::resume(Arc::default(), &next).unwrap();
            fusion.take(3);
        }
        assert_eq!(all, (0..5).map(|n| format!("a/s:r{n:03}")).collect::<Vec<_>>());
    }

    #[test]
    fn counts_of_sources_are_added() {
        let counted = |count| SearchPage { count, ..page([hit("a", 0, None)], None) };
        let bound = |value| Count { value, accuracy: Accuracy::LowerBound };
        for (one, other, expect) in [
            (Some(Count::exact(4)), Some(Count::exact(5)), Count::exact(9)),
            (Some(Count::exact(4)), Some(bound(200)), bound(204)),
            (Some(Count::exact(4)), None, Count::exact(5)),
        ] {
            let mut fusion = two();
            fusion.push_page(0, counted(one));
            fusion.push_page(1, counted(other));
            assert_eq!(fusion.page().count, Some(expect));
        }
        let mut fusion = two();
        fusion.push_page(0, counted(Some(Count::exact(4))));
        fusion.fail(1);
        fusion.take(1);
        let page = fusion.page();
        assert_eq!((page.count, page.next), (Some(bound(4)), None));
    }

    #[test]
    fn input_of_empty_pages_does_not_block_others() {
        let mut fusion = two();
        fusion.push_page(0, page((0..3).map(|n| hit("a", n, None)), None));
        for read in 0..MAX_READS {
            fusion.take(10);
            assert!(!fusion.has(1));
            fusion.push_page(1, page([], Some(&format!("page {read}"))));
        }
        fusion.take(10);
        assert_eq!(names(&fusion.page()), ["a/s:r000", "a/s:r001", "a/s:r002"]);
    }

    #[test]
    fn count_without_a_source_is_a_lower_bound() {
        let mut fusion = two();
        fusion.fail(0);
        let count = Some(Count::exact(1));
        fusion.push_page(1, SearchPage { count, ..page([hit("b", 0, None)], None) });
        fusion.take(5);
        assert_eq!(fusion.page().count, count.map(Count::at_least));
    }

    #[test]
    fn failed_source_is_read_again() {
        let mut fusion = two();
        fusion.fail(1);
        fusion.push_page(0, page((0..5).map(|n| hit("a", n, None)), Some("more")));
        fusion.take(3);
        let next = fusion.page().next.unwrap();
        let fusion = Fusion::resume(Arc::default(), &next).unwrap();
        let [pending] = <[PendingRead; 1]>::try_from(fusion.pending_reads()).unwrap();
        assert_eq!((pending.source.as_str(), pending.position), ("b", None));
    }

    #[test]
    fn invalid_position_is_refused() {
        for text in ["", "{}", "null", "[1]"] {
            let refused = Fusion::resume(Arc::default(), &SearchPosition(text.to_owned())).unwrap_err();
            assert!(matches!(refused, SourceError::InvalidCursor), "{text}");
        }
    }
}
