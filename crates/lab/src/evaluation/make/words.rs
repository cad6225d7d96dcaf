//! Words of a text. Deliberately not the words of the search index, so that a question does not assume its rules.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// Frequent words of English, German, French, Spanish, Italian and Portuguese that carry no meaning.
static STOP_WORDS: LazyLock<BTreeSet<&str>> =
    LazyLock::new(|| include_str!("stop_words.txt").split_whitespace().collect());

/// Returns true for a word that carries no meaning.
pub(super) fn is_stop_word(word: &str) -> bool {
    STOP_WORDS.contains(word)
}

/// Returns true for a character of a script without spaces between words.
pub(super) fn is_unspaced(character: char) -> bool {
    matches!(character, '\u{3040}'..='\u{30FF}' | '\u{3400}'..='\u{9FFF}' | '\u{AC00}'..='\u{D7AF}')
}

/// Returns a word in lower case without diacritics.
pub(super) fn fold(word: &str) -> String {
    word.nfkd().filter(|piece| !is_combining_mark(*piece)).flat_map(char::to_lowercase).collect()
}

/// Returns the words of scripts with spaces, as they are written.
pub(super) fn words(text: &str) -> impl Iterator<Item = &str> {
    let is_between = |character: char| {
        is_unspaced(character) || !(character.is_alphanumeric() || is_combining_mark(character))
    };
    text.split(is_between).filter(|word| !word.is_empty())
}

/// Returns true if two texts are equal apart from case and diacritics.
pub(super) fn is_same(one: &str, other: &str) -> bool {
    one == other || fold(one) == fold(other)
}

/// Returns other forms of an English word. Some are no words, which the caller checks.
pub(super) fn inflections(word: &str) -> Vec<String> {
    let with =
        |stem: &str, endings: &[&str]| endings.iter().map(|ending| format!("{stem}{ending}")).collect();
    if let Some(stem) = word.strip_suffix("ies") {
        with(stem, &["y"])
    } else if let Some(stem) = word.strip_suffix("ing") {
        with(stem, &["ed", "s", ""])
    } else if let Some(stem) = word.strip_suffix("ed") {
        with(stem, &["ing", "s", ""])
    } else if ["ss", "us", "is"].iter().any(|ending| word.ends_with(ending)) {
        Vec::new()
    } else if let Some(stem) = word.strip_suffix('s') {
        with(stem, &[""])
    } else if let Some(stem) = word.strip_suffix('e') {
        with(stem, &["es", "ed", "ing"])
    } else {
        with(word, &["s", "ed", "ing"])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_runs_of_letters_and_digits() {
        let found: Vec<&str> = words("Pay e\u{301}te\u{301} user_123, 東京 now!").collect();
        assert_eq!(found, ["Pay", "e\u{301}te\u{301}", "user", "123", "now"]);
        assert_eq!(fold("Été"), "ete");
        assert!(is_stop_word("the") && !is_stop_word("th") && !is_stop_word("invoice"));
    }

    #[test]
    fn inflections_of_a_word() {
        assert_eq!(inflections("queries"), ["query"]);
        assert_eq!(inflections("painting"), ["painted", "paints", "paint"]);
        assert_eq!(inflections("paint"), ["paints", "painted", "painting"]);
        assert_eq!(inflections("invoices"), ["invoice"]);
        assert_eq!(inflections("class"), Vec::<String>::new());
    }
}
