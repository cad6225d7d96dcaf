//! Searches for the words of a query one by one, on servers that need all of them.
//!
//! A server that returns only records with all words of a query finds nothing for most questions. When such a search finds
//! too little, its rarest words are searched for at the same time, and their hits are ranked here: by the words that each was
//! found by, weighted by how rare they are, then by the words of the query in its excerpt. A page reads each word once. The
//! position has digests of the shown hits, so that each hit is on one page.

use std::cmp::Reverse;
use std::collections::HashMap;

use fetchwell_core::record::{Coverage, Hit, RecordData};
use fetchwell_core::saturate::saturated;
use fetchwell_ranking::lexical::foreign::ForeignTerms;
use fetchwell_ranking::lexical::terms::QueryTerms;
use fetchwell_source::merge::{Key, SeenRows};
use fetchwell_source::{
    Accuracy, Count, Purpose, SearchMode, SearchPage, SearchPosition, SearchQuery, SearchText, SourceError,
};
use futures_util::future::join_all;
use serde::{Deserialize, Serialize};
use tokio::time::timeout;

use super::with_meaning::key;
use crate::client::Client;

/// Prefix of the position of a search for single words. Other positions are cursors of the server.
const ANY_WORDS: &str = "words ";

/// Number of hits, up to the limit of the query, with which a search for all words has found enough.
const ENOUGH: usize = 5;

/// Maximum number of words that are searched for one by one.
const MAX_WORDS: usize = 4;

/// Maximum number of hits of one word that a page ranks.
const HITS_OF_A_WORD: usize = 50;

/// Maximum number of hits that a position remembers. The list ends there.
const MAX_SHOWN: usize = 1_000;

/// Share of the weight of all words that a hit gets for having all of them in its excerpt: one in this many.
const EXCERPT_SHARE: u32 = 4;

/// Weight of a word without hits. The weight falls with the number of binary digits of the number of hits.
const MAX_WEIGHT: u32 = 1_000;

/// Note of a page with hits that lack words of the query.
const NOT_ALL_WORDS: &str = "not all words of the query are in each result";

/// Position behind a page of hits of single words.
#[derive(Debug, Serialize, Deserialize)]
struct Walk {
    shown: SeenRows,
    /// Number of `shown`.
    count: usize,
    /// Sum of the weights of all words of the first page.
    total: u32,
    words: Vec<WordState>,
}

/// Word with the page of its hits that is read next.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct WordState {
    word: String,
    /// Weight by the number of hits, which not all servers count on later pages; 0 before the first.
    weight: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    at: Option<SearchPosition>,
}

/// Hits of one word.
#[derive(Debug)]
struct WordHits {
    /// Weight of the word.
    weight: u32,
    hits: Vec<Hit>,
}

/// Hit with what it was found by.
#[derive(Debug)]
struct Found {
    hit: Hit,
    /// Sum of the weights of the words that it was found by.
    weight: u32,
    /// Best rank in the hits of a word, counted from 0.
    rank: usize,
}

impl Client<'_> {
    /// Searches by words. If the server finds too little for all of them, it is asked for the rarest ones by themselves.
    pub(super) async fn search_by_words(&self, query: &SearchQuery) -> Result<SearchPage, SourceError> {
        if let Some(walk) = query.position.as_ref().and_then(|position| position.0.strip_prefix(ANY_WORDS)) {
            let walk = serde_json::from_str(walk).map_err(|_error| SourceError::InvalidCursor)?;
            return self.continue_any_words(walk, query).await;
        }
        let whole = self.search_by(SearchMode::Lexical, query).await?;
        Ok(self.widened(whole, query).await)
    }

    /// Adds the hits of the rarest words to a page of a search for all words, if it has too few.
    pub(super) async fn widened(&self, whole: SearchPage, query: &SearchQuery) -> SearchPage {
        let is_first = query.position.is_none() && query.purpose != Purpose::Hint;
        let is_little = whole.hits.len() < query.limit.min(ENOUGH) && whole.next.is_none();
        // A phrase or a field must match as a whole.
        let is_plain = query.text.phrases.is_empty() && query.text.fields.is_empty();
        if self.known.matches_any_word() {
            return with_coverage(whole, &query.text);
        }
        if !is_first || !is_little || !is_plain {
            return whole;
        }
        let words = rarest_words(&query.text.words, self.max_words());
        if words.is_empty() {
            return whole;
        }
        let words: Vec<WordState> =
            words.into_iter().map(|word| WordState { word, weight: 0, at: None }).collect();
        // The rest of the time is for other searches of the call, and for the answer.
        let found = timeout(self.requests.deadline() / 4, self.pages_of(&words, query)).await;
        let Ok(pages) = found else { return whole };
        if pages.iter().all(Result::is_err) {
            return whole;
        }
        if is_beyond(&whole, &pages) {
            self.known.keep_matches_any_word();
            return with_coverage(whole, &query.text);
        }
        let walk = Walk { shown: SeenRows::default(), count: 0, total: 0, words };
        walk.page(whole, pages, query)
    }

    async fn continue_any_words(&self, walk: Walk, query: &SearchQuery) -> Result<SearchPage, SourceError> {
        if walk.words.len() > MAX_WORDS || walk.words.is_empty() {
            return Err(SourceError::InvalidCursor);
        }
        let pages = self.pages_of(&walk.words, query).await;
        if pages.iter().all(Result::is_err) {
            return pages.into_iter().next().unwrap_or_else(|| Ok(SearchPage::default()));
        }
        Ok(walk.page(SearchPage::default(), pages, query))
    }

    /// Returns the maximum number of words, so that a search has at most five requests.
    fn max_words(&self) -> usize {
        let has_meaning = self.known.modes().is_some_and(|modes| modes.with_meaning().is_some());
        MAX_WORDS - usize::from(has_meaning)
    }

    async fn pages_of(
        &self,
        words: &[WordState],
        query: &SearchQuery,
    ) -> Vec<Result<SearchPage, SourceError>> {
        let of_word = |state: &WordState| SearchQuery {
            text: SearchText { words: state.word.clone(), ..query.text.clone() },
            limit: query.limit.max(HITS_OF_A_WORD),
            position: state.at.clone(),
            ..query.clone()
        };
        let queries: Vec<SearchQuery> = words.iter().map(of_word).collect();
        join_all(queries.iter().map(|query| self.search_by(SearchMode::Lexical, query))).await
    }
}

impl Walk {
    /// Makes a page of the hits of all words and those of each. Moves to the next pages if all hits of these are shown.
    fn page(
        mut self,
        whole: SearchPage,
        pages: Vec<Result<SearchPage, SourceError>>,
        query: &SearchQuery,
    ) -> SearchPage {
        let mut page = SearchPage { count: None, ..whole };
        for hit in &mut page.hits {
            hit.coverage = Some(Coverage::FULL);
            self.count += usize::from(self.shown.insert(key(hit)));
        }
        let mut next = Vec::new();
        let mut lists = Vec::new();
        for (state, of_word) in self.words.iter_mut().zip(pages) {
            // The hits of a word that failed are missing; its page is read again for the next one.
            let Ok(of_word) = of_word else {
                next.push(state.clone());
                continue;
            };
            page.windowed |= of_word.windowed;
            page.unapplied.extend(of_word.unapplied);
            let weight = match state.weight {
                0 => weight_of(of_word.count, of_word.hits.len()),
                known => known,
            };
            state.weight = weight;
            if let Some(at) = of_word.next {
                next.push(WordState { at: Some(at), ..state.clone() });
            }
            lists.push(WordHits { weight, hits: of_word.hits });
        }
        if self.total == 0 {
            // A word that failed weighs as much as the others.
            let known: u32 = lists.iter().map(|list| list.weight).sum();
            let words = self.words.len() as u64;
            self.total = saturated(u64::from(known) * words / (lists.len() as u64).max(1));
        }
        let mut found = ranked(lists, self.total, &query.text);
        found.retain(|hit| !self.shown.contains(key(hit)));
        let is_more = found.len() > query.limit.saturating_sub(page.hits.len());
        for hit in found {
            if page.hits.len() < query.limit && self.shown.insert(key(&hit)) {
                self.count += 1;
                page.hits.push(hit);
            }
        }
        if page.hits.iter().any(|hit| hit.coverage != Some(Coverage::FULL)) {
            page.notes.push(NOT_ALL_WORDS.to_owned());
        }
        page.count = Some(Count { value: self.count as u64, accuracy: Accuracy::Exact });
        let goes_on = is_more || !next.is_empty();
        if goes_on {
            page.count = page.count.map(Count::at_least);
        }
        if !is_more {
            self.words = next;
        }
        page.next = (goes_on && self.count < MAX_SHOWN).then(|| self.position());
        page
    }

    fn position(&self) -> SearchPosition {
        // A walk always has JSON. A position without it would be refused.
        let walk = serde_json::to_string(self).unwrap_or_default();
        SearchPosition(format!("{ANY_WORDS}{walk}"))
    }
}

/// Returns true if the search for all words has hits that a word alone does not have, although all its hits are known: then
/// the server does not need all words.
fn is_beyond(whole: &SearchPage, pages: &[Result<SearchPage, SourceError>]) -> bool {
    let complete = pages.iter().flatten().filter(|page| page.next.is_none() && !page.windowed);
    let keys = |page: &SearchPage| page.hits.iter().map(key).collect::<Vec<Key>>();
    let all = keys(whole);
    complete.map(keys).any(|own| all.iter().any(|hit| !own.contains(hit)))
}

/// Returns the weight of a word by the number of its hits: the rarer, the greater.
fn weight_of(count: Option<Count>, hits: usize) -> u32 {
    let hits = count.map_or(0, |count| count.value).max(hits as u64);
    MAX_WEIGHT / (1 + u64::BITS - hits.leading_zeros())
}

/// Ranks the hits of words, best first. `total` is the weight of all words.
fn ranked(lists: Vec<WordHits>, total: u32, text: &SearchText) -> Vec<Hit> {
    let mut order: Vec<Key> = Vec::new();
    let mut found: HashMap<Key, Found> = HashMap::new();
    for WordHits { weight, hits } in lists {
        let mut own = SeenRows::default();
        for (rank, hit) in hits.into_iter().enumerate() {
            let key = key(&hit);
            // A server may repeat a hit.
            if !own.insert(key) {
                continue;
            }
            let known = found.entry(key).or_insert_with(|| {
                order.push(key);
                Found { hit, weight: 0, rank }
            });
            known.weight += weight;
            known.rank = known.rank.min(rank);
        }
    }
    let mut found: Vec<Found> = order.into_iter().filter_map(|key| found.remove(&key)).collect();
    let shown: Vec<RecordData> = found.iter().map(|found| shown_text(&found.hit)).collect();
    let terms = ForeignTerms::new(text, shown.iter());
    for (found, shown) in found.iter_mut().zip(&shown) {
        found.hit.coverage = Coverage::new(found.weight, total);
        let in_excerpt = terms.coverage(shown).map_or(0, Coverage::percent);
        found.weight += total * u32::from(in_excerpt) / (100 * EXCERPT_SHARE);
    }
    found.sort_by_key(|found| (Reverse(found.weight), found.rank));
    found.into_iter().map(|found| found.hit).collect()
}

/// Sets the coverage of hits by words that a server chose by any of the words, as far as an excerpt shows it. A server that
/// needs all words has no other hits, so their coverage is the greatest, which is what an unknown one counts as.
fn with_coverage(mut page: SearchPage, text: &SearchText) -> SearchPage {
    let shown: Vec<RecordData> = page.hits.iter().map(shown_text).collect();
    let terms = ForeignTerms::new(text, shown.iter());
    let by_words = page.hits.iter_mut().zip(&shown);
    for (hit, shown) in by_words.filter(|(hit, _)| !hit.by_meaning && !hit.excerpt.text().is_empty()) {
        hit.coverage = terms.coverage(shown);
    }
    page
}

/// Returns the texts of a hit under the names that a record has for them.
pub(super) fn shown_text(hit: &Hit) -> RecordData {
    let texts = [("title", hit.title.as_str()), ("text", hit.excerpt.text())];
    texts.into_iter().map(|(name, text)| (name.to_owned(), text.into())).collect()
}

/// Returns the words of a text that records probably have least, at most `limit`, or none if there is only one word. Words of
/// a request are left out beside others. Numbers and long words are rare; their order in the text decides between equals.
fn rarest_words(text: &str, limit: usize) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for piece in text.split_whitespace() {
        let word = piece.trim_matches(|letter: char| !letter.is_alphanumeric());
        if !word.is_empty() && !words.iter().any(|known| known.to_lowercase() == word.to_lowercase()) {
            words.push(word.to_owned());
        }
    }
    if words.len() < 2 {
        return Vec::new();
    }
    let terms = QueryTerms::new(&SearchText::plain(text));
    if words.iter().any(|word| terms.are_about(word)) {
        words.retain(|word| terms.are_about(word));
    }
    words.sort_by_key(|word| {
        let has_digit = word.chars().any(char::is_numeric);
        Reverse((has_digit, word.chars().count()))
    });
    words.truncate(limit);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rarest_words_are_numbers_and_long_ones() {
        for (text, expect) in [
            ("lease", vec![]),
            ("lease Lease, LEASE", vec![]),
            ("Moreno, harbour lease 7731?", vec!["7731", "harbour", "Moreno"]),
            ("show me the lease", vec!["lease"]),
            ("show me the page", vec!["show", "page", "the"]),
            ("*** ---", vec![]),
            ("a user_123 b", vec!["user_123", "a", "b"]),
        ] {
            assert_eq!(rarest_words(text, 3), expect, "{text}");
        }
    }
}
