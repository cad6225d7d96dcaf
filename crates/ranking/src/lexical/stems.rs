//! Forms and misspellings of words: which words of a dictionary stand for a word of a query.
//!
//! Stemming happens at the time of a search, by comparing stems of words that begin alike. The index therefore needs
//! no stems, and the language of a text does not have to be guessed: two words are forms of each other if they have
//! the same stem in any of the languages.

use rust_stemmers::{Algorithm, Stemmer};

/// Minimum length of a word in characters that other forms are looked up for.
const MIN_INFLECTED: usize = 3;

/// Minimum length in characters of the common beginning of two forms.
const MIN_STEM: usize = 3;

/// Languages with words that are compared by stem, with the letters in which words differ after their stem.
const LANGUAGES: [Algorithm; 2] = [Algorithm::English, Algorithm::German];

/// A word with its stem in one language.
struct StemmedWord {
    stemmer: Stemmer,
    stem: String,
}

/// Recognizes the other forms of a word.
pub(crate) struct Inflection {
    word: String,
    stems: Vec<StemmedWord>,
    /// Common beginning of all forms.
    prefix: String,
}

impl Inflection {
    /// Creates the recognizer of the forms of a folded word. Returns `None` for words without other forms, such as
    /// numbers and short words.
    pub(crate) fn new(word: &str) -> Option<Self> {
        let length = word.chars().count();
        if length < MIN_INFLECTED || !word.bytes().all(|byte| byte.is_ascii_lowercase()) {
            return None;
        }
        let stemmed = |language: &Algorithm| {
            let stemmer = Stemmer::create(*language);
            let stem = stemmer.stem(word).into_owned();
            StemmedWord { stemmer, stem }
        };
        let stems: Vec<StemmedWord> = LANGUAGES.iter().map(stemmed).collect();
        let beginnings = stems.iter().map(|stemmed| beginning(word, &stemmed.stem));
        let prefix = beginnings.min_by_key(|prefix| prefix.len())?;
        (prefix.len() >= MIN_STEM).then(|| Self { word: word.to_owned(), prefix: prefix.to_owned(), stems })
    }

    /// Returns the text that all forms begin with.
    pub(crate) fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Returns the maximum length of a form in bytes.
    pub(crate) fn longest(&self) -> usize {
        self.word.len().max(self.prefix.len() + 2) + 4
    }

    /// Returns true if a folded word with the same beginning may be another form. Cheap, unlike [`Self::is_form`].
    pub(crate) fn may_be_form(&self, other: &str) -> bool {
        other != self.word
            && other.len() <= self.longest()
            && other.bytes().all(|byte| byte.is_ascii_lowercase())
    }

    /// Returns true if a folded word is another form of this one.
    pub(crate) fn is_form(&self, other: &str) -> bool {
        // Stemming takes most of the time where whole texts are compared.
        other.starts_with(&self.prefix)
            && self.may_be_form(other)
            && self.stems.iter().any(|stemmed| stemmed.stemmer.stem(other) == stemmed.stem.as_str())
    }
}

/// Returns what the word and all words with the same stem begin with: the stem without an ending that stemmers add
/// (`happi` of `happy`, `hope` of `hoping`).
fn beginning<'a>(word: &'a str, stem: &str) -> &'a str {
    let stem = stem.strip_suffix(['i', 'e']).unwrap_or(stem);
    let common = word.bytes().zip(stem.bytes()).take_while(|(one, other)| one == other).count();
    word.get(..common).unwrap_or(word)
}

/// Returns true if two words differ by one edit: a letter more, less, replaced, or two neighbours swapped.
pub(crate) fn is_one_edit(one: &str, other: &str) -> bool {
    let one: Vec<char> = one.chars().collect();
    let other: Vec<char> = other.chars().collect();
    let start = one.iter().zip(&other).take_while(|(a, b)| a == b).count();
    let (one, other) = (one.get(start..).unwrap_or_default(), other.get(start..).unwrap_or_default());
    let end = one.iter().rev().zip(other.iter().rev()).take_while(|(a, b)| a == b).count();
    let one = one.get(..one.len() - end).unwrap_or_default();
    let other = other.get(..other.len() - end).unwrap_or_default();
    match (one, other) {
        ([_], []) | ([], [_]) | ([_], [_]) => true,
        ([a, b], [c, d]) => a == d && b == c,
        _ => false,
    }
}

/// Returns the words that differ from `word` by one edit that touches its first `count` characters.
pub(crate) fn edits_at_beginning(word: &str, count: usize) -> Vec<String> {
    const LETTERS: std::ops::RangeInclusive<char> = 'a'..='z';
    let letters: Vec<char> = word.chars().collect();
    let mut edits = Vec::new();
    let edited = |at: usize, replacement: &[char], removed: usize| -> String {
        let kept = letters.iter().take(at).chain(replacement);
        kept.chain(letters.iter().skip(at + removed)).collect()
    };
    for at in 0..count.min(letters.len()) {
        edits.push(edited(at, &[], 1));
        if let (Some(first), Some(second)) = (letters.get(at), letters.get(at + 1)) {
            edits.push(edited(at, &[*second, *first], 2));
        }
        for letter in LETTERS {
            edits.push(edited(at, &[letter], 1));
            edits.push(edited(at, &[letter], 0));
        }
    }
    edits.sort_unstable();
    edits.dedup();
    edits.retain(|edit| edit != word);
    edits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_have_the_same_stem_in_a_language() {
        for (word, form) in [
            ("invoice", "invoices"),
            ("running", "run"),
            ("happy", "happiness"),
            ("hoping", "hoped"),
            ("configure", "configuring"),
            ("haus", "hauser"),
            ("rechnung", "rechnungen"),
        ] {
            for (one, other) in [(word, form), (form, word)] {
                let inflection = Inflection::new(one).unwrap();
                assert!(other.starts_with(inflection.prefix()), "{one} {other} {}", inflection.prefix());
                assert!(inflection.is_form(other), "{one} {other}");
            }
        }
        for (word, other) in [("invoice", "involve"), ("test", "testament"), ("run", "runway")] {
            assert!(!Inflection::new(word).unwrap().is_form(other), "{word} {other}");
        }
        for word in ["ab", "2024", "user1", "東京"] {
            assert!(Inflection::new(word).is_none(), "{word}");
        }
    }

    #[test]
    fn one_edit_is_a_letter_more_less_other_or_swapped() {
        for other in ["invoie", "invoicce", "invoyce", "inovice", "nvoice", "xinvoice", "invoices"] {
            assert!(is_one_edit("invoice", other) && is_one_edit(other, "invoice"), "{other}");
        }
        for other in ["invoice", "invce", "invoic3s", "ivnocie"] {
            assert!(!is_one_edit("invoice", other), "{other}");
        }
    }

    #[test]
    fn every_edit_at_the_beginning_is_one_edit() {
        let edits = edits_at_beginning("mail", 2);
        assert!(edits.iter().all(|edit| is_one_edit("mail", edit)));
        for expected in ["ail", "amil", "email", "nail", "mil", "mial", "mbail", "mbil"] {
            assert!(edits.iter().any(|edit| edit == expected), "{expected}");
        }
    }
}
