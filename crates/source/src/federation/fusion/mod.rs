//! Search results of several sources as one list: reciprocal rank fusion.
//!
//! Scores of different sources cannot be compared, but ranks can. A hit scores 1 / (60 + rank) in each source that
//! has it, so the first hits of all sources come first, and a hit of two sources comes before both. Ties are broken
//! by time, newest first, and then by handle, so that the order does not depend on which source answered first.
//!
//! `Fusion` does no IO: `Fusion::pending_reads` returns the pages to read and `Fusion::push_page` accepts one. A page
//! of the list ends in the middle of pages of the sources, so its position contains the hits that were read and not
//! returned.
//!
//! * `rank`: the score of a hit, and the order of hits

mod rank;

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use fetchwell_core::handle::{Handle, RecordAddress, SourceName};
use fetchwell_core::record::{Coverage, Hit, HitId, SortValue, SourceRank};
use serde::{Deserialize, Serialize};

use self::rank::{Rank, points, score_at};
use super::names::Names;
use crate::merge::{CycleDetector, Key, SeenRows, digest};
use crate::{Accuracy, Count, SearchPage, SearchPosition, SourceError};

/// Maximum number of pages read from one source for one page of the list.
const MAX_READS: usize = 4;

/// Search over several sources, with the hits taken so far.
#[derive(Debug)]
pub(super) struct Fusion {
    names: Arc<Names>,
    saved: SavedSearch,
    state: Vec<InputState>,
    hits: Vec<Hit>,
    /// True if hits get the ranks that they have in the sources.
    pub(super) explains: bool,
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
    /// Greatest coverage of the hits that were read. `None` if no source knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    best: Option<Coverage>,
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
            best: None,
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
        Self {
            state: saved.inputs.iter().map(state).collect(),
            names,
            saved,
            hits: Vec::new(),
            explains: false,
        }
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
        } else if let (None, Some((value, _))) = (page.count, &mut self.saved.count) {
            // The source does not count: at least its hits that were read exist.
            *value += page.hits.len() as u64;
        }
        self.saved.windowed |= page.windowed;
        let mut own: HashSet<Key> = state.keys.iter().copied().collect();
        for hit in page.hits {
            input.read += 1;
            self.saved.best = self.saved.best.max(hit.coverage);
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
        for (_, rank, hit, key) in hits() {
            *score.entry(key).or_default() += score_at(rank, hit.coverage, self.saved.best);
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
        let (mut ranks, best) = (Vec::new(), self.saved.best);
        for (input, state) in self.saved.inputs.iter_mut().zip(&mut self.state) {
            let index = state.keys.iter().position(|key| *key == taken);
            if let Some(index) = index
                && let Some((rank, hit)) = input.hits.remove(index)
            {
                state.keys.remove(index);
                state.has_contributed = true;
                if self.explains {
                    let points = points(score_at(rank, hit.coverage, best)).into();
                    ranks.push(SourceRank { source: input.source.to_string(), rank, points });
                }
                found.get_or_insert(hit);
            }
        }
        if let Some(mut hit) = found {
            if self.explains {
                hit.explanation.get_or_insert_default().sources = ranks;
            }
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
mod tests;
