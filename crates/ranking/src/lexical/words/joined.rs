//! Words that stand for a piece of text as it is written: `wifi` for `wi-fi`, `nodejs` for `node.js`, `c++`, `.net`.
//!
//! Such a word is beside the words that the piece consists of. The index has it, so that spellings with and without a hyphen find
//! each other. It is at the places of both words of the piece, which tells it from the word itself (`scoring`). Identifiers with underscores are too many for words of their own:
//! the word [`UNDERSCORE`] is at the place of each word before one, which tells an identifier from its words in prose.

use std::ops::Range;

/// Word at the place of each word that an underscore joins to the next one.
pub(crate) const UNDERSCORE: &str = "_";

/// Number of words of a piece. Longer ones are mostly names of packages and slugs of titles, and would take a third more space.
const WORDS: usize = 2;

/// Last words of the names of products that are also written without the point before them.
const ENDINGS: [&str; 4] = ["ai", "io", "js", "net"];

/// Minimum and maximum length in bytes of a piece.
const MIN_BYTES: usize = 4;
const MAX_BYTES: usize = 64;

/// Maximum length in bytes of a word with signs.
const MAX_SIGNED_BYTES: usize = 16;

/// Piece of a text with the ordinal of its first word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WrittenPiece {
    pub(crate) range: Range<usize>,
    pub(crate) position: usize,
}

/// Words of a text that connectors join, as far as they were read.
#[derive(Debug, Clone, Default)]
pub(crate) struct Compound {
    start: usize,
    end: usize,
    position: usize,
    /// Number of words; 0 for none.
    words: usize,
    /// True if two of its words are parts of a number, such as a date.
    has_numbers: bool,
}

impl Compound {
    /// Returns the piece that ends before a word, if it has several words.
    pub(crate) fn take_before(&mut self, text: &str, word: Option<&Range<usize>>) -> Option<WrittenPiece> {
        if self.words < 2 || word.is_some_and(|word| is_connector(text, self.end..word.start)) {
            return None;
        }
        let Self { start, end, position, words, has_numbers } = std::mem::take(self);
        let is_joined = !has_numbers && words == WORDS && (MIN_BYTES..=MAX_BYTES).contains(&(end - start));
        let is_word =
            is_joined && text.get(start..end).is_some_and(|piece| piece.contains(char::is_alphabetic));
        is_word.then_some(WrittenPiece { range: start..end, position })
    }

    /// Adds a word of a script with spaces, which may begin another piece.
    pub(crate) fn add(&mut self, text: &str, word: &Range<usize>, position: usize) {
        let gap = self.end..word.start;
        if self.words == 0 || !is_connector(text, gap.clone()) {
            *self = Self { start: word.start, end: word.end, position, words: 1, has_numbers: false };
            return;
        }
        let bytes = text.as_bytes();
        let around = [gap.start.checked_sub(1).and_then(|at| bytes.get(at)), bytes.get(gap.end)];
        self.has_numbers |= around.iter().flatten().filter(|byte| byte.is_ascii_digit()).count() == 2;
        self.words += 1;
        self.end = word.end;
    }

    /// Ends a piece, because a character of a script without spaces follows.
    pub(crate) fn clear(&mut self) {
        self.words = 0;
    }
}

/// Returns true for a character that joins two words to one.
fn joins(character: char) -> bool {
    matches!(character, '-' | '\u{2010}' | '\u{2011}' | '\u{AD}')
}

/// Returns true if the text between two words is one connector. A point connects the name of a product with its ending.
fn is_connector(text: &str, gap: Range<usize>) -> bool {
    match text.as_bytes().get(gap.clone()) {
        Some([b'-']) => true,
        Some([b'.']) => ENDINGS.iter().any(|ending| {
            let rest = text.as_bytes().get(gap.end..).unwrap_or_default();
            rest.get(..ending.len()).is_some_and(|start| start.eq_ignore_ascii_case(ending.as_bytes()))
                && !rest.get(ending.len()).is_some_and(u8::is_ascii_alphanumeric)
        }),
        Some([_, _, ..]) => text.get(gap).is_some_and(|gap| {
            let mut characters = gap.chars();
            characters.next().is_some_and(joins) && characters.next().is_none()
        }),
        _ => false,
    }
}

/// Returns the place of a word with its signs (`C++`, `C#`, `.NET`); `None` for a word without such signs.
pub(crate) fn with_signs(text: &str, word: &Range<usize>) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let at = |at: usize| bytes.get(at).copied();
    let before = word.start.checked_sub(1).and_then(at);
    let is_letter_or = |sign: u8, byte: Option<u8>| {
        byte.is_some_and(|byte| byte == sign || byte.is_ascii_alphabetic() || !byte.is_ascii())
    };
    let end = match (at(word.end), at(word.end + 1)) {
        (Some(b'+'), Some(b'+')) if !is_letter_or(b'+', at(word.end + 2)) => word.end + 2,
        (Some(b'#'), next)
            if !is_letter_or(b'#', next) && !next.is_some_and(|next| next.is_ascii_digit()) =>
        {
            word.end + 1
        }
        _ if before == Some(b'.') => word.end,
        _ => return None,
    };
    if end - word.start > MAX_SIGNED_BYTES || !at(word.start).is_some_and(|byte| byte.is_ascii_alphabetic()) {
        return None;
    }
    if end > word.end {
        return Some(word.start..end);
    }
    let starts = word.start.checked_sub(2).and_then(at).is_none_or(|byte| {
        byte.is_ascii_whitespace() || matches!(byte, b'(' | b'[' | b'"' | b'\'' | b'`' | b'/')
    });
    starts.then(|| word.start - 1..end)
}

/// Returns a piece without its connectors; `None` for a piece that has none. A sign at the beginning stays.
pub(crate) fn without_connectors(piece: &str) -> Option<String> {
    // Most words have none.
    if !piece.bytes().skip(1).any(|byte| matches!(byte, b'-' | b'.') || !byte.is_ascii()) {
        return None;
    }
    let mut characters = piece.chars();
    let first = characters.next()?;
    let rest: String = characters.clone().filter(|other| !joins(*other) && *other != '.').collect();
    (rest.len() < characters.as_str().len()).then(|| std::iter::once(first).chain(rest.chars()).collect())
}

#[cfg(test)]
mod tests {
    use super::super::words;

    /// Compares the words of a text that stand for a written piece, with their positions.
    #[track_caller]
    fn check(text: &str, expect: &[(&str, usize)]) {
        let joined = words(text).filter(|word| word.is_joined());
        let found: Vec<(String, usize)> = joined.map(|word| (word.folded(text), word.position)).collect();
        let expect: Vec<(String, usize)> =
            expect.iter().map(|(word, at)| ((*word).to_owned(), *at)).collect();
        assert_eq!(found, expect, "{text}");
    }

    #[test]
    fn words_with_connectors_have_a_joined_form() {
        check("a Wi-Fi router", &[("wifi", 1), ("wifi", 2)]);
        check(
            "Wi\u{2011}Fi, COVID-19 and up-to-date.",
            &[("wifi", 0), ("wifi", 1), ("covid19", 2), ("covid19", 3)],
        );
        check(
            "node.js Socket.IO. main.rs",
            &[("nodejs", 0), ("nodejs", 1), ("socketio", 2), ("socketio", 3)],
        );
        check("call foo_bar_baz, fooBar_x", &[("_", 1), ("_", 2), ("_", 5)]);
        check("Größen-Tabelle", &[("grossentabelle", 0), ("grossentabelle", 1)]);
        check("fooBar-x y", &[("foobarx", 0), ("foobarx", 1)]);
        check("Zusam\u{AD}men", &[("zusammen", 0), ("zusammen", 1)]);
    }

    #[test]
    fn dates_numbers_slugs_and_sentences_have_no_joined_form() {
        for text in [
            "2025-03-05",
            "1.2.3",
            "v1.2",
            "555-123-4567",
            "CVE-2024-1234",
            "a-b",
            "end. Next",
            "a -- b",
            "foo - bar",
            "one-two-three",
            "東-京",
            "-x-",
            "src/main",
            "a::b",
        ] {
            check(text, &[]);
        }
        check(&format!("{0}-{0}", "x".repeat(40)), &[]);
    }

    #[test]
    fn words_with_signs_are_words() {
        check("C++ and C#, on .NET (.net)", &[("c++", 0), ("c#", 2), (".net", 4), (".net", 5)]);
        check("~/.bashrc F# notepad++", &[(".bashrc", 0), ("f#", 1), ("notepad++", 2)]);
        check("issue #5, a+++b, C++11 end.x ...x 3# x.y# see ##", &[("c++", 4), ("y#", 11)]);
    }
}
