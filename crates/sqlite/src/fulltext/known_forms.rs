//! Words that stand for words of queries in one commit of an index: their forms, spellings and continuations.
//!
//! Finding them reads the dictionary and looks up some hundred words. Each commit has a cache of its own, so that nothing of
//! an earlier one is used.

use std::fmt;

use fetchwell_core::lru::{LruCache, LruLimits};
use fetchwell_ranking::lexical::vocabulary::Alternative;
use tantivy::TantivyError;
use tantivy::schema::Field;

/// Maximum bytes of the words of one commit.
const MAX_BYTES: u64 = 256 * 1024;

/// Estimated overhead of an entry, and of each word in it, in bytes.
const ENTRY_BYTES: usize = 256;
const WORD_BYTES: usize = size_of::<Alternative>() + 16;

/// Maximum length of a key in bytes. Longer words and wider scopes are looked up each time.
const MAX_KEY_BYTES: usize = 256;

/// A word in a scope, which is a field and the row ids in it.
#[derive(Debug, PartialEq, Eq, Hash)]
struct FormsKey {
    word: String,
    max_forms: usize,
    scope: Option<(Field, Vec<i64>)>,
}

/// Cache of the words that stand for words in one commit. Clones share their entries.
#[derive(Clone)]
pub(crate) struct KnownForms(LruCache<FormsKey, Vec<Alternative>>);

impl fmt::Debug for KnownForms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KnownForms").finish_non_exhaustive()
    }
}

impl Default for KnownForms {
    fn default() -> Self {
        let bytes = |key: &FormsKey, words: &Vec<Alternative>| {
            let rows = key.scope.as_ref().map_or(0, |(_, rows)| rows.len() * size_of::<i64>());
            let words: usize = words.iter().map(|word| word.text.len() + WORD_BYTES).sum();
            ENTRY_BYTES + key.word.len() + rows + words
        };
        Self(LruCache::with_weights(LruLimits::new(MAX_BYTES), bytes))
    }
}

impl KnownForms {
    /// Returns the words that stand for a word in a scope, at most `max_forms` of them other forms: those that were found before,
    /// or else those that `find` finds.
    pub(crate) fn get_or_find(
        &self,
        word: &str,
        max_forms: usize,
        scope: Option<(Field, &[i64])>,
        find: impl FnOnce() -> Result<Vec<Alternative>, TantivyError>,
    ) -> Result<Vec<Alternative>, TantivyError> {
        if word.len() + scope.map_or(0, |(_, rows)| size_of_val(rows)) > MAX_KEY_BYTES {
            return find();
        }
        let scope = scope.map(|(field, rows)| (field, rows.to_vec()));
        let key = FormsKey { word: word.to_owned(), max_forms, scope };
        if let Some(known) = self.0.get(&key) {
            return Ok(known);
        }
        let found = find()?;
        self.0.insert(key, found.clone());
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_once_for_each_scope_and_number_of_forms() {
        let known = KnownForms::default();
        let field = Field::from_field_id(1);
        let find = |word: &str, max_forms, scope, frequency| {
            let found = || Ok(vec![Alternative { text: "forms".to_owned(), quality: 1.0, frequency }]);
            known.get_or_find(word, max_forms, scope, found).unwrap()[0].frequency
        };
        let scopes: [Option<(Field, &[i64])>; 4] =
            [None, Some((field, &[1])), Some((field, &[1, 2])), Some((Field::from_field_id(2), &[1]))];
        for again in [0, 100] {
            for (number, scope) in (1..).zip(scopes) {
                assert_eq!(find("form", 1, scope, number + again), number);
                assert_eq!(find("form", 2, scope, 10 + number + again), 10 + number);
            }
        }
        assert_eq!(KnownForms::default().0.len(), 0, "another commit has none");
        let long = "x".repeat(MAX_KEY_BYTES + 1);
        assert_eq!([find(&long, 1, None, 1), find(&long, 1, None, 2)], [1, 2]);
        (0..10_000).for_each(|number| assert_eq!(find(&number.to_string(), 1, None, number), number));
        known.0.evict();
        assert!(known.0.weight() <= MAX_BYTES && known.0.weight() > MAX_BYTES / 2, "{}", known.0.weight());
    }
}
