//! Search results of several sources as one list: reciprocal rank fusion.
//!
//! Scores of different sources cannot be compared, ranks can. A hit is worth 1 / (60 + rank) for every source
//! that has it, so the first hits of all sources come first, and what two sources have comes before both. Ties
//! go to the newer record, then by handle, so that the order does not depend on who answered first. Nothing
//! here reads: `Fusion::hungry` says what is to be read, `Fusion::feed` takes it.
//!
//! The list ends in the middle of what was read, so the position keeps what was read and not given.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::names::Names;
use crate::handle::{Handle, RecordAddress, SourceName};
use crate::record::{Hit, HitId, SortValue};
use crate::source::merge::{Key, Seen, Trail, digest};
use crate::source::{Accuracy, Count, SearchPage, SearchPosition, SourceError};

/// The constant of the formula, as its authors chose it: it keeps the first rank from outweighing all others.
const K: u64 = 60;

/// What 1 is counted as: sums of whole numbers do not depend on the order they are added up in.
const ONE: u64 = 1 << 48;

/// Pages of one source that are read for one page of ours.
const MAX_READS: usize = 4;

/// The feeds of a search, and what was taken from them so far.
#[derive(Debug)]
pub(super) struct Fusion {
    names: Arc<Names>,
    saved: Saved,
    state: Vec<State>,
    hits: Vec<Hit>,
}

/// What is to be read next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Hungry {
    /// Which feed.
    pub(super) feed: usize,
    /// Of which source.
    pub(super) source: SourceName,
    /// From where on.
    pub(super) position: Option<SearchPosition>,
}

/// A search that goes on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Saved {
    feeds: Vec<Feed>,
    /// Hits that were given: servers repeat themselves, and two sources can have the same record.
    given: Seen,
    #[serde(default)]
    windowed: bool,
    /// Some source failed, so there may be more than was counted.
    #[serde(default)]
    is_partial: bool,
    #[serde(default)]
    count: Option<(u64, Accuracy)>,
}

/// One source's hits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Feed {
    source: SourceName,
    /// Hits that were read and not given, each with its rank from 1.
    hits: VecDeque<(u64, Hit)>,
    /// The rank of the last hit that was read.
    read: u64,
    next: Next,
    #[serde(default)]
    trail: Trail,
}

/// Where a feed goes on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Next {
    Start,
    After(String),
    End,
}

/// What is known of a feed and not kept.
#[derive(Debug, Clone, Default)]
struct State {
    /// Of each hit that was read and not given, in their order.
    keys: VecDeque<Key>,
    reads: usize,
    has_failed: bool,
    /// It gave a hit of this page.
    has_given: bool,
}

impl Fusion {
    /// A search from its best hits on.
    pub(super) fn start(names: Arc<Names>, sources: impl IntoIterator<Item = SourceName>) -> Self {
        let feed = |source| Feed {
            source,
            hits: VecDeque::new(),
            read: 0,
            next: Next::Start,
            trail: Trail::default(),
        };
        let feeds = sources.into_iter().map(feed).collect();
        let saved = Saved { feeds, given: Seen::default(), windowed: false, is_partial: false, count: None };
        Self::of(names, saved)
    }

    /// A search that goes on.
    pub(super) fn resume(names: Arc<Names>, position: &SearchPosition) -> Result<Self, SourceError> {
        let saved = serde_json::from_str(&position.0).map_err(|_not_ours| SourceError::InvalidCursor)?;
        Ok(Self::of(names, saved))
    }

    fn of(names: Arc<Names>, saved: Saved) -> Self {
        let state = |feed: &Feed| State {
            keys: feed.hits.iter().map(|(rank, hit)| key(&names, &feed.source, *rank, hit)).collect(),
            ..State::default()
        };
        Self { state: saved.feeds.iter().map(state).collect(), names, saved, hits: Vec::new() }
    }

    /// The feeds that have to be read before the next hit is known.
    pub(super) fn hungry(&self) -> Vec<Hungry> {
        let feeds = self.saved.feeds.iter().zip(&self.state).enumerate();
        feeds
            .filter(|(_, (feed, state))| is_awaited(feed, state) && state.reads < MAX_READS)
            .map(|(number, (feed, _))| Hungry {
                feed: number,
                source: feed.source.clone(),
                position: match &feed.next {
                    Next::After(position) => Some(SearchPosition(position.clone())),
                    Next::Start | Next::End => None,
                },
            })
            .collect()
    }

    /// A page that was read for a feed.
    pub(super) fn feed(&mut self, number: usize, page: SearchPage) {
        let (Some(feed), Some(state)) = (self.saved.feeds.get_mut(number), self.state.get_mut(number)) else {
            return;
        };
        state.reads += 1;
        if feed.next == Next::Start {
            // One that does not count makes the sum a bound.
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
            feed.read += 1;
            let key = key(&self.names, &feed.source, feed.read, &hit);
            if !self.saved.given.contains(key) && own.insert(key) {
                state.keys.push_back(key);
                feed.hits.push_back((feed.read, hit));
            }
        }
        feed.next = match page.next {
            Some(SearchPosition(next)) if !next.is_empty() && !feed.trail.comes_back_to(&next) => {
                Next::After(next)
            }
            _ => Next::End,
        };
    }

    /// A source that could not be read. The search goes on without it, and asks it again for the next page.
    pub(super) fn fail(&mut self, number: usize) {
        if let Some(state) = self.state.get_mut(number) {
            state.has_failed = true;
        }
        self.saved.is_partial = true;
    }

    /// A source that has nothing to give.
    pub(super) fn end(&mut self, number: usize) {
        if let Some(feed) = self.saved.feeds.get_mut(number) {
            feed.next = Next::End;
        }
    }

    /// Takes hits until there are `limit`, or until the next one is not known.
    pub(super) fn take(&mut self, limit: usize) {
        let mut ranked: Option<Vec<(Rank, Key)>> = None;
        while self.hits.len() < limit
            && !self.saved.feeds.iter().zip(&self.state).any(|(feed, state)| is_awaited(feed, state))
        {
            // Ranked once, best last; reading changes it, and then this is called again.
            let best = ranked.get_or_insert_with(|| self.ranked()).pop();
            let Some((_, key)) = best else { return };
            self.give(key);
        }
    }

    /// Every hit that was read and not given, the best last.
    fn ranked(&self) -> Vec<(Rank, Key)> {
        let feeds = || self.saved.feeds.iter().zip(&self.state);
        let hits = || {
            feeds().enumerate().flat_map(|(number, (feed, state))| {
                let hits = feed.hits.iter().zip(&state.keys);
                hits.map(move |((rank, hit), key)| ((number, &feed.source), *rank, hit, *key))
            })
        };
        let mut worth: HashMap<Key, u64> = HashMap::new();
        for (_, rank, _, key) in hits() {
            *worth.entry(key).or_default() += worth_of(rank);
        }
        let mut ranked: HashMap<Key, Rank> = HashMap::new();
        for ((number, source), _, hit, key) in hits() {
            let rank = Rank {
                worth: worth.get(&key).copied().unwrap_or_default(),
                time: hit.time.as_deref().map_or(SortValue::Missing, SortValue::text),
                name: Reverse(name(&self.names, source, hit)),
                feed: Reverse(number),
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

    /// Gives a hit once, and takes its doubles out of the other feeds.
    fn give(&mut self, given: Key) {
        let mut found: Option<Hit> = None;
        for (feed, state) in self.saved.feeds.iter_mut().zip(&mut self.state) {
            let place = state.keys.iter().position(|key| *key == given);
            if let Some(place) = place
                && let Some((_, hit)) = feed.hits.remove(place)
            {
                state.keys.remove(place);
                state.has_given = true;
                found.get_or_insert(hit);
            }
        }
        if let Some(hit) = found {
            if hit.id != HitId::Nameless {
                self.saved.given.insert(given);
            }
            self.hits.push(hit);
        }
    }

    /// Whether this many hits were taken.
    pub(super) fn has(&self, hits: usize) -> bool {
        self.hits.len() >= hits
    }

    /// The page, and where the next one starts. Sources that failed do not make a search go on by themselves.
    pub(super) fn page(self) -> SearchPage {
        let goes_on = self
            .saved
            .feeds
            .iter()
            .zip(&self.state)
            .any(|(feed, state)| !feed.hits.is_empty() || (feed.next != Next::End && !state.has_failed));
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

/// Whether the next hit of a feed is not known and will be. One that gives only empty pages does not hide what
/// the others have: its hits come with a later page.
fn is_awaited(feed: &Feed, state: &State) -> bool {
    let is_empty = feed.hits.is_empty() && feed.next != Next::End && !state.has_failed;
    is_empty && (state.reads < MAX_READS || state.has_given)
}

/// What decides which hit comes first; the greater first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    worth: u64,
    time: SortValue,
    name: Reverse<String>,
    feed: Reverse<usize>,
}

fn worth_of(rank: u64) -> u64 {
    ONE / (K + rank)
}

/// The name of a hit, in which the connection has the id that the source itself gives it: two sources can have copies.
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

/// An id of a source's own is told apart from the same id of another; a record with its connection is the same
/// record wherever it is found. A hit that names nothing is only counted, so it has no doubles.
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
    use crate::record::Excerpt;

    fn hit(connection: &str, record: usize, time: Option<&str>) -> Hit {
        let address = format!("{connection}/s:r{record:03}").parse::<Handle>().unwrap().address().clone();
        Hit {
            id: HitId::Record(address),
            title: String::new(),
            link: None,
            excerpt: Excerpt::default(),
            time: time.map(str::to_owned),
            evidence: crate::record::Evidence::default(),
        }
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
            let feeds = [("a", 0), ("b", 1)];
            let order = if b_first { [feeds[1], feeds[0]] } else { feeds };
            for (connection, feed) in order {
                fusion.feed(feed, page((0..25).map(|n| hit(connection, n, None)), None));
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
    fn what_two_sources_have_comes_first_and_once() {
        let mut fusion = two();
        fusion.feed(0, page([hit("a", 0, None), hit("x", 7, None)], None));
        fusion.feed(1, page([hit("b", 0, None), hit("b", 1, None), hit("x", 7, None)], None));
        fusion.take(10);
        assert_eq!(names(&fusion.page()), ["x/s:r007", "a/s:r000", "b/s:r000", "b/s:r001"]);
    }

    #[test]
    fn ties_go_to_the_newer() {
        let mut fusion = two();
        fusion.feed(0, page([hit("a", 0, Some("2026-01-01T00:00:00Z")), hit("a", 1, None)], None));
        fusion
            .feed(1, page([hit("b", 0, Some("2026-01-01T02:00:00+01:00")), hit("b", 1, Some("2020"))], None));
        fusion.take(10);
        assert_eq!(names(&fusion.page()), ["b/s:r000", "a/s:r000", "b/s:r001", "a/s:r001"]);
    }

    #[test]
    fn a_server_that_repeats_itself_or_goes_in_circles_ends() {
        let mut fusion = Fusion::start(Arc::default(), ["a".parse().unwrap()]);
        let (mut reads, mut all) = (0, Vec::new());
        loop {
            if let Some(hungry) = fusion.hungry().pop() {
                reads += 1;
                assert!(reads < 50);
                fusion
                    .feed(hungry.feed, page((0..5).map(|n| hit("a", n, None)), Some(["x", "y"][reads % 2])));
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
    fn counts_are_added_up_as_far_as_they_are_counted() {
        let counted = |count| SearchPage { count, ..page([hit("a", 0, None)], None) };
        let bound = |value| Count { value, accuracy: Accuracy::LowerBound };
        for (one, other, expect) in [
            (Some(Count::exact(4)), Some(Count::exact(5)), Count::exact(9)),
            (Some(Count::exact(4)), Some(bound(200)), bound(204)),
            (Some(Count::exact(4)), None, Count::exact(5)),
        ] {
            let mut fusion = two();
            fusion.feed(0, counted(one));
            fusion.feed(1, counted(other));
            assert_eq!(fusion.page().count, Some(expect));
        }
        let mut fusion = two();
        fusion.feed(0, counted(Some(Count::exact(4))));
        fusion.fail(1);
        fusion.take(1);
        let page = fusion.page();
        assert_eq!((page.count, page.next), (Some(bound(4)), None));
    }

    #[test]
    fn a_source_of_empty_pages_hides_no_other() {
        let mut fusion = two();
        fusion.feed(0, page((0..3).map(|n| hit("a", n, None)), None));
        for read in 0..MAX_READS {
            fusion.take(10);
            assert!(!fusion.has(1));
            fusion.feed(1, page([], Some(&format!("page {read}"))));
        }
        fusion.take(10);
        assert_eq!(names(&fusion.page()), ["a/s:r000", "a/s:r001", "a/s:r002"]);
    }

    #[test]
    fn a_count_without_a_source_is_a_bound_whoever_fails_first() {
        let mut fusion = two();
        fusion.fail(0);
        let count = Some(Count::exact(1));
        fusion.feed(1, SearchPage { count, ..page([hit("b", 0, None)], None) });
        fusion.take(5);
        assert_eq!(fusion.page().count, count.map(Count::at_least));
    }

    #[test]
    fn a_source_that_failed_is_asked_again() {
        let mut fusion = two();
        fusion.fail(1);
        fusion.feed(0, page((0..5).map(|n| hit("a", n, None)), Some("more")));
        fusion.take(3);
        let next = fusion.page().next.unwrap();
        let fusion = Fusion::resume(Arc::default(), &next).unwrap();
        let [hungry] = <[Hungry; 1]>::try_from(fusion.hungry()).unwrap();
        assert_eq!((hungry.source.as_str(), hungry.position), ("b", None));
    }

    #[test]
    fn what_is_no_position_restarts_the_search() {
        for text in ["", "{}", "null", "[1]"] {
            let refused = Fusion::resume(Arc::default(), &SearchPosition(text.to_owned())).unwrap_err();
            assert!(matches!(refused, SourceError::InvalidCursor), "{text}");
        }
    }
}
