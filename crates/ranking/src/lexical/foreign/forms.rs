//! Words of texts that stand for words of a query: the words themselves, and their other forms.

use crate::lexical::stems::Inflection;
use crate::lexical::terms::Slot;
use crate::lexical::words::{PossibleWords, Word};

/// Words of a query with their forms.
pub(super) struct QueryForms {
    words: Vec<QueryWord>,
    possible: PossibleWords,
}

struct QueryWord {
    text: String,
    forms: Option<Inflection>,
}

/// Word of the query that a word of a text stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FoundWord {
    /// Number of the word in the query.
    pub(super) number: usize,
    /// True for the word itself, false for another form of it.
    pub(super) is_itself: bool,
}

impl QueryForms {
    /// Creates the forms of words of a query.
    pub(super) fn new<'a>(slots: impl Iterator<Item = &'a Slot>) -> Self {
        let words =
            slots.map(|slot| QueryWord { text: slot.text.clone(), forms: Inflection::new(&slot.text) });
        let words: Vec<QueryWord> = words.collect();
        let mut possible = PossibleWords::default();
        for QueryWord { text, forms } in &words {
            possible.add(text);
            if let Some(forms) = forms {
                possible.add_beginning(forms.prefix());
            }
        }
        Self { words, possible }
    }

    /// Returns the number of words.
    pub(super) fn len(&self) -> usize {
        self.words.len()
    }

    /// Returns the words of the query.
    pub(super) fn words(&self) -> impl Iterator<Item = &str> {
        self.words.iter().map(|word| word.text.as_str())
    }

    /// Returns false for most words of a text, which stand for no word of the query. This is cheaper than to fold them.
    pub(super) fn may_have(&self, text: &str, word: &Word) -> bool {
        self.possible.may_have(text, word)
    }

    /// Returns true if a folded word may stand for a word of the query. This is cheaper than to look it up.
    pub(super) fn may_have_folded(&self, word: &str) -> bool {
        self.words.iter().any(|known| {
            known.text == word || known.forms.as_ref().is_some_and(|forms| word.starts_with(forms.prefix()))
        })
    }

    /// Returns the words of the query that a folded word stands for.
    pub(super) fn found(&self, word: &str) -> Vec<FoundWord> {
        let found = self.words.iter().enumerate().filter_map(|(number, known)| {
            let is_itself = known.text == word;
            let is_form = || known.forms.as_ref().is_some_and(|forms| forms.is_form(word));
            (is_itself || is_form()).then_some(FoundWord { number, is_itself })
        });
        found.collect()
    }
}
