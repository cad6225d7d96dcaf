//! Searches by words and meaning, for mode `auto`.
//!
//! The first page has the hits of the server's hybrid search, or those of its semantic search among those by words. A hybrid
//! search has no further pages, so later ones continue with the hits by words that were not shown. The position contains
//! digests of the shown ones: each hit is on one page.

use std::collections::{BTreeSet, HashMap};

use fetchwell_core::record::{Hit, HitId};
use fetchwell_source::merge::{Key, SeenRows, digest};
use fetchwell_source::{
    Count, Purpose, QueryFault, SearchMode, SearchPage, SearchPosition, SearchQuery, SourceError,
};
use serde::{Deserialize, Serialize};
use tokio::time::timeout;

use crate::client::Client;
use crate::wire::DeclaredModes;

/// Prefix of the position of a search with meaning. Other positions are cursors of the server.
const WITH_MEANING: &str = "auto ";

/// Number of hits by words before the first one of a semantic search.
const KEPT_FIRST: usize = 5;

/// Maximum number of pages that are read for one without hits that were shown before.
const MAX_READS: usize = 4;

/// Position behind the first page.
#[derive(Debug, Serialize, Deserialize)]
struct Walk {
    /// Hits of the first page.
    shown: SeenRows,
    /// Cursor of the search by words; `None` at its beginning.
    next: Option<SearchPosition>,
}

/// First hits of a search by meaning.
#[derive(Debug)]
struct NearPage {
    mode: SearchMode,
    page: SearchPage,
}

impl Client<'_> {
    /// Searches by words, and by meaning if the server declares such a search.
    pub(super) async fn search_with_meaning(&self, query: &SearchQuery) -> Result<SearchPage, SourceError> {
        let by_words = self.search_by_words(query);
        if let Some(position) = &query.position {
            let Some(walk) = position.0.strip_prefix(WITH_MEANING) else { return by_words.await };
            let walk = serde_json::from_str(walk).map_err(|_error| SourceError::InvalidCursor)?;
            return self.continue_by_words(walk, query).await;
        }
        if query.purpose == Purpose::Hint {
            return by_words.await;
        }
        let (words, near) = match self.known.modes() {
            Some(_) => tokio::try_join!(by_words, async { Ok(self.search_near(query).await) })?,
            // A server that fails gets one request.
            None => {
                let whole = self.search_by(SearchMode::Lexical, query).await?;
                tokio::join!(self.widened(whole, query), self.search_near(query))
            }
        };
        Ok(match near {
            Ok(Some(near)) => first_page(words, near, query.limit),
            Ok(None) => words,
            Err(problem) => SearchPage { meaning_problems: BTreeSet::from([problem]), ..words },
        })
    }

    /// Searches by meaning. Returns `None` if the server does not declare such a search, and the reason if it fails.
    async fn search_near(&self, query: &SearchQuery) -> Result<Option<NearPage>, String> {
        // An unknown server may not answer this request at all.
        let Ok(modes) = timeout(self.requests.deadline() / 4, self.declared_modes()).await else {
            self.known.keep_modes(DeclaredModes::default());
            return Ok(None);
        };
        let Some(mode) = modes.with_meaning() else { return Ok(None) };
        let failed = |problem: &str| {
            let (mode, name) = (mode.as_str(), self.name);
            format!("the {mode} search of `{name}` {problem}; search again, or with `mode` lexical")
        };
        let found = timeout(self.requests.deadline() / 2, self.search_by(mode, query)).await;
        match found {
            Err(_elapsed) => Err(failed("did not answer in time")),
            Ok(Ok(page)) if page.lexical_instead => Ok(None),
            Ok(Ok(page)) => Ok(Some(NearPage { mode, page })),
            Ok(Err(SourceError::InvalidQuery { fault: QueryFault::NotSupported, .. })) => Ok(None),
            Ok(Err(error)) => Err(failed(&format!("failed ({})", error.code()))),
        }
    }

    /// Reads the next hits by words that the first page does not have.
    async fn continue_by_words(
        &self,
        mut walk: Walk,
        query: &SearchQuery,
    ) -> Result<SearchPage, SourceError> {
        let mut reads = 0;
        loop {
            let position = walk.next.take();
            let by_words = SearchQuery { position, ..query.clone() };
            let mut page = self.search_by_words(&by_words).await?;
            page.hits.retain(|hit| !walk.shown.contains(key(hit)));
            page.count = page.count.map(Count::at_least);
            walk.next = page.next.take();
            reads += 1;
            if walk.next.is_some() && page.hits.is_empty() && reads < MAX_READS {
                continue;
            }
            page.next = walk.next.is_some().then(|| walk.position());
            return Ok(page);
        }
    }
}

impl Walk {
    fn position(&self) -> SearchPosition {
        // A walk always has JSON. A position without it would be refused.
        let walk = serde_json::to_string(self).unwrap_or_default();
        SearchPosition(format!("{WITH_MEANING}{walk}"))
    }
}

/// Makes the first page of hits by words and hits by meaning.
fn first_page(words: SearchPage, near: NearPage, limit: usize) -> SearchPage {
    if near.page.hits.is_empty() {
        return words;
    }
    // A hit by words says which of them it has.
    let by_words: HashMap<Key, &Hit> = words.hits.iter().map(|hit| (key(hit), hit)).collect();
    let of_near = near.page.hits.iter().map(|hit| by_words.get(&key(hit)).copied().unwrap_or(hit));
    let of_near: Vec<&Hit> = of_near.collect();
    let order = match near.mode {
        SearchMode::Semantic => alternating(&words.hits, &of_near),
        _ => of_near.into_iter().chain(&words.hits).collect(),
    };
    let mut shown = SeenRows::default();
    let mut hits: Vec<Hit> = Vec::with_capacity(limit);
    for hit in order {
        if hits.len() < limit && shown.insert(key(hit)) {
            hits.push(hit.clone());
        }
    }
    let is_left = words.next.is_some() || words.hits.iter().any(|hit| !shown.contains(key(hit)));
    let count =
        words.count.map(|count| Count { value: count.value.max(hits.len() as u64), ..count }.at_least());
    let next = is_left.then(|| Walk { shown, next: None }.position());
    let mut unapplied = words.unapplied;
    unapplied.extend(near.page.unapplied);
    SearchPage { hits, next, count, unapplied, windowed: words.windowed || near.page.windowed, ..words }
}

/// Returns the first hits by words, then one hit by meaning and one by words in turn.
fn alternating<'a>(words: &'a [Hit], near: &[&'a Hit]) -> Vec<&'a Hit> {
    let (first, rest) = words.split_at(words.len().min(KEPT_FIRST));
    let mut order: Vec<&Hit> = first.iter().collect();
    let (mut rest, mut near) = (rest.iter(), near.iter().copied());
    loop {
        let pair = [near.next(), rest.next()];
        if pair == [None, None] {
            return order;
        }
        order.extend(pair.into_iter().flatten());
    }
}

/// Returns the digest by which a hit is recognized.
pub(super) fn key(hit: &Hit) -> Key {
    match &hit.id {
        HitId::Record(address) => {
            let connection = address.connection.as_ref().map_or("", |connection| connection.as_str());
            let pieces = [connection, address.stream.as_str(), address.record.as_str()];
            digest(pieces.map(str::as_bytes))
        }
        HitId::Opaque(id) => digest([id.as_bytes()]),
        HitId::Nameless => digest([hit.title.as_bytes(), hit.excerpt.text().as_bytes()]),
    }
}
