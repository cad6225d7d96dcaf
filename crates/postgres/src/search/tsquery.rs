//! Builds queries of the server's index from words. The server parses them, and the words have no character with a
//! meaning in a query: each is quoted.

use fetchwell_ranking::lexical::spelling::{Spelling, looked_up_parts, spellings};
use fetchwell_ranking::lexical::terms::{Phrase, QueryTerms};
use fetchwell_ranking::lexical::vocabulary::Vocabulary as _;
use fetchwell_source::SourceError;

use super::super::words::{AUTHOR, TITLE, marked};
use super::scope::Scope;
use super::vocabulary::Terms;

/// Part of a query, which is complete in itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TextQuery(pub(crate) String);

impl TextQuery {
    pub(crate) fn word(word: &str) -> Self {
        Self(format!("'{}'", word.replace('\'', "''").replace('\\', "\\\\")))
    }

    /// Returns the query for records that match any of some queries; `None` without queries.
    pub(crate) fn any(queries: impl IntoIterator<Item = Self>) -> Option<Self> {
        Self::joined(queries, " | ")
    }

    /// Returns the query for records that match all of some queries; `None` without queries.
    pub(crate) fn all(queries: impl IntoIterator<Item = Self>) -> Option<Self> {
        Self::joined(queries, " & ")
    }

    /// Returns the query for records that have words one after the other; `None` without words.
    pub(super) fn sequence(words: &[String]) -> Option<Self> {
        in_sequence(&words.iter().cloned().enumerate().collect())
    }

    pub(crate) fn not(Self(query): Self) -> Self {
        Self(format!("!{query}"))
    }

    fn joined(queries: impl IntoIterator<Item = Self>, operator: &str) -> Option<Self> {
        let queries: Vec<String> = queries.into_iter().map(|Self(query)| query).collect();
        match queries.as_slice() {
            [] => None,
            [only] => Some(Self(only.clone())),
            several => Some(Self(format!("({})", several.join(operator)))),
        }
    }
}

/// Returns the query for everything that a search requires except its words: phrases, fields, and the scope.
pub(super) fn constraints(
    terms: &QueryTerms,
    scope: &Scope,
    vocabulary: &Terms<'_>,
) -> Result<Option<TextQuery>, SourceError> {
    let phrases = || terms.required.iter().chain(&terms.excluded);
    vocabulary.load(phrases().flat_map(looked_up_parts))?;
    let mut parts = Vec::new();
    parts.extend(TextQuery::any(scope.words.iter().map(|word| TextQuery::word(word))));
    parts.extend(terms.title.iter().map(|word| TextQuery::word(&marked(TITLE, word))));
    parts.extend(terms.from.iter().map(|word| TextQuery::word(&marked(AUTHOR, word))));
    parts.extend(terms.filename.iter().map(|word| TextQuery::word(word)));
    for required in &terms.required {
        parts.extend(phrase(required, vocabulary)?);
    }
    for excluded in &terms.excluded {
        parts.extend(phrase(excluded, vocabulary)?.map(TextQuery::not));
    }
    Ok(TextQuery::all(parts))
}

/// Returns the query for records that have a phrase in one of its spellings.
fn phrase(phrase: &Phrase, vocabulary: &Terms<'_>) -> Result<Option<TextQuery>, SourceError> {
    let has_word = |word: &str| Ok::<_, SourceError>(vocabulary.frequency(word)? > 0);
    Ok(TextQuery::any(spellings(phrase, &has_word)?.iter().filter_map(in_sequence)))
}

/// Returns the query for words at their distances.
fn in_sequence(spelling: &Spelling) -> Option<TextQuery> {
    let mut words = spelling.iter();
    let (first_at, first) = words.next()?;
    let mut at = *first_at;
    let TextQuery(mut sequence) = TextQuery::word(first);
    for (position, word) in words {
        let TextQuery(word) = TextQuery::word(word);
        sequence = format!("{sequence} <{}> {word}", position.saturating_sub(at));
        at = *position;
    }
    Some(TextQuery(format!("({sequence})")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_grouped() {
        let word = TextQuery::word;
        let any = TextQuery::any([word("a"), word("b")]).unwrap();
        let both = TextQuery::all([any, TextQuery::not(word("c'"))]).unwrap();
        assert_eq!(both.0, "(('a' | 'b') & !'c''')");
        let spelling = vec![(0, "parsefile".to_owned()), (0, "parse".to_owned()), (1, "file".to_owned())];
        assert_eq!(in_sequence(&spelling).unwrap().0, "('parsefile' <0> 'parse' <1> 'file')");
        assert_eq!(TextQuery::any([]), None);
    }
}
