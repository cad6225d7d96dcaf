//! Properties of a search query that do not depend on a store.

use fetchwell_source::{SearchMode, SearchPage, SearchQuery};

/// Returns true for a query that has no words and selects records by operators, a connection or streams.
pub fn lists_records(query: &SearchQuery) -> bool {
    let is_limited = !query.text.is_plain() || query.connection.is_some() || !query.streams.is_empty();
    is_limited && query.text.words.trim().is_empty()
}

/// Returns true if the query asks for hits by meaning. A query in mode auto does not insist on them.
pub fn is_lexical_instead(query: &SearchQuery) -> bool {
    matches!(query.mode, SearchMode::Semantic | SearchMode::Hybrid)
}

/// Returns the answer to a query without words that selects nothing either.
pub fn page_without_words(query: &SearchQuery) -> SearchPage {
    let notes = vec!["the query has no letters or digits to search for".to_owned()];
    SearchPage { notes, lexical_instead: is_lexical_instead(query), ..SearchPage::default() }
}
