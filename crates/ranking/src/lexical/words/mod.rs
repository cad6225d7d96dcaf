//! Word segmentation of stores.
//!
//! Index, query and excerpt share this definition, so that everything that is found can be shown.
//!
//! * A word is a run of letters and digits of a script that puts spaces between words. It is folded: lower case,
//!   compatibility forms (full-width letters, ligatures) and diacritics removed, so `Øresund`, `ORESUND` and
//!   `oresund` are one word.
//! * A word in camel case (`parseConfigFile`) is one word and, at the same place, its parts. Texts that say the
//!   parts as words of their own are thereby found by it, and it by them.
//! * Two words that a hyphen joins (`wi-fi`) have their joined form beside them, and words with signs (`C++`, `.NET`) the word
//!   with its signs. An underscore between words (`foo_bar`) is a word at the place of the first one.
//! * Chinese, Japanese, Korean, Thai and the other scripts that put no spaces between words are split into single
//!   characters and overlapping pairs. A query of one character finds every text that contains it; a longer query
//!   finds texts that contain its pairs in sequence, which is the same as containing the query. No dictionary of
//!   words is needed.
//!
//! * `camel_case`: the parts of a word in camel case
//! * `joined`: the pieces of a text that are one word beside their words
//! * `possible`: which words of a text may be among those to look for

mod camel_case;
mod joined;
mod possible;

use std::collections::VecDeque;
use std::ops::Range;

use unicode_normalization::char::{decompose_compatible, is_combining_mark};
use unicode_script::{Script, UnicodeScript};

use self::camel_case::camel_case_parts;
pub(crate) use self::joined::UNDERSCORE;
use self::joined::{Compound, WrittenPiece, with_signs, without_connectors};
pub(crate) use self::possible::PossibleWords;

/// Maximum number of characters of a word. Longer words are indexed and looked up by their first characters.
const WORD_CHARS: usize = 64;

/// Scripts written without spaces between words.
const UNSPACED: [Script; 11] = [
    Script::Han,
    Script::Hiragana,
    Script::Katakana,
    Script::Hangul,
    Script::Bopomofo,
    Script::Yi,
    Script::Thai,
    Script::Lao,
    Script::Khmer,
    Script::Myanmar,
    Script::Tibetan,
];

/// Searchable piece of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    /// Byte range of the word in the text.
    pub range: Range<usize>,
    /// Ordinal of the word. A pair has the ordinal of its first character; a word in camel case has that of its
    /// first part.
    pub position: usize,
    pub(crate) kind: WordKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WordKind {
    /// Word of a script with spaces.
    Spaced,
    /// Part of the word in camel case before it.
    Part,
    /// Several words before it as one, or the word before it with its signs.
    Joined,
    /// Underscores between words of a query.
    Underscore,
    /// Adjacent words of a query as one, if texts may have them so.
    Adjacent,
    /// One character of a script without spaces.
    Single,
    /// Two adjacent characters of a script without spaces.
    Pair,
}

impl Word {
    /// Returns true for a word that stands for a piece of the text whose words are there, too.
    pub fn is_joined(&self) -> bool {
        self.kind == WordKind::Joined
    }

    /// Returns the folded text of the word.
    pub fn folded(&self, text: &str) -> String {
        let mut folded = String::new();
        fold_into(text.get(self.range.clone()).unwrap_or_default(), &mut folded);
        folded
    }
}

/// Returns the words of `text` in order; a pair follows its first character, parts follow their word, and a joined form
/// follows its words.
pub fn words(text: &str) -> Words<'_> {
    let units = Units { text, at: 0 };
    let (parts, compound) = (VecDeque::new(), Compound::default());
    Words {
        text,
        units,
        following: None,
        pair: None,
        parts,
        compound,
        position: 0,
        end: 0,
        after_underscore: 0,
    }
}

/// Returns the number of places that the words of a text take.
pub(crate) fn position_count(text: &str) -> usize {
    words(text).map(|word| word.position + 1).max().unwrap_or(0)
}

/// Iterator over the words of a text.
#[derive(Debug, Clone)]
pub struct Words<'a> {
    text: &'a str,
    units: Units<'a>,
    /// Unit that was read to see what follows a character.
    following: Option<Unit>,
    pair: Option<Word>,
    /// Parts of the last word that remain, in order, and its form with signs.
    parts: VecDeque<Word>,
    compound: Compound,
    position: usize,
    /// Byte at which the last word ends.
    end: usize,
    /// Byte at which a word begins whose underscore was a word; 0 for none.
    after_underscore: usize,
}

impl Words<'_> {
    /// Returns true if one underscore is between a word and the one before it, and was no word yet.
    fn has_underscore_before(&self, unit: &Unit) -> bool {
        self.end > 0
            && unit.range.start == self.end + 1
            && unit.range.start != self.after_underscore
            && self.text.as_bytes().get(self.end) == Some(&b'_')
    }

    /// Returns a word of a script with spaces, and prepares its other forms.
    fn spaced_word(&mut self, unit: Unit, position: usize) -> Word {
        if unit.has_later_capital {
            for (number, part) in camel_case_parts(self.text, &unit.range).into_iter().enumerate() {
                self.position = position + number + 1;
                self.parts.push_back(Word { range: part, position: position + number, kind: WordKind::Part });
            }
        }
        if let Some(range) = with_signs(self.text, &unit.range) {
            self.parts.push_back(Word { range, position, kind: WordKind::Joined });
        }
        self.compound.add(self.text, &unit.range, position);
        Word { range: unit.range, position, kind: WordKind::Spaced }
    }
}

impl Iterator for Words<'_> {
    type Item = Word;

    fn next(&mut self) -> Option<Word> {
        if let Some(pair) = self.pair.take() {
            return Some(pair);
        }
        if let Some(part) = self.parts.pop_front() {
            return Some(part);
        }
        let unit = self.following.take().or_else(|| self.units.next());
        let spaced = unit.as_ref().filter(|unit| unit.spaced).map(|unit| &unit.range);
        if let Some(WrittenPiece { range, position }) = self.compound.take_before(self.text, spaced) {
            self.following = unit;
            let kind = WordKind::Joined;
            self.parts.push_back(Word { range: range.clone(), position: position + 1, kind });
            return Some(Word { range, position, kind });
        }
        let unit = unit?;
        if self.has_underscore_before(&unit) {
            let range = unit.range.start - 1..unit.range.start;
            self.after_underscore = unit.range.start;
            self.following = Some(unit);
            return Some(Word { range, position: self.position.saturating_sub(1), kind: WordKind::Joined });
        }
        let position = self.position;
        self.position += 1;
        self.end = unit.range.end;
        if unit.spaced {
            return Some(self.spaced_word(unit, position));
        }
        self.compound.clear();
        self.following = self.units.next();
        if let Some(next) = &self.following
            && !next.spaced
            && next.range.start == unit.range.end
        {
            let range = unit.range.start..next.range.end;
            self.pair = Some(Word { range, position, kind: WordKind::Pair });
        }
        Some(Word { range: unit.range, position, kind: WordKind::Single })
    }
}

/// Complete word of a spaced script, or one character of an unspaced script, each with its combining marks.
#[derive(Debug, Clone)]
struct Unit {
    range: Range<usize>,
    spaced: bool,
    /// False for a word without an ASCII capital behind its first byte.
    has_later_capital: bool,
}

#[derive(Debug, Clone)]
struct Units<'a> {
    text: &'a str,
    /// Byte at which the rest of the text begins.
    at: usize,
}

impl Units<'_> {
    /// Returns the next character of the rest with its class.
    fn peek(&self) -> Option<(char, Class)> {
        let character = self.text.get(self.at..)?.chars().next()?;
        Some((character, class(character)))
    }

    /// Skips ASCII letters and digits, which most text consists of. Returns true if one is a capital.
    fn skip_ascii_word(&mut self) -> bool {
        let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
        let mut has_capital = false;
        let is_letter = |byte: &&u8| {
            let class = ByteClass::from(**byte);
            has_capital |= class == ByteClass::Capital;
            matches!(class, ByteClass::Letter | ByteClass::Capital)
        };
        self.at += rest.iter().take_while(is_letter).count();
        has_capital
    }

    /// Returns the next unit if it is an ASCII word and what precedes and follows it is ASCII, as in most text.
    fn next_ascii_word(&mut self) -> Option<Unit> {
        let bytes = self.text.as_bytes();
        let rest = bytes.get(self.at..)?;
        let start = self.at + rest.iter().position(|byte| ByteClass::from(*byte) != ByteClass::Between)?;
        if !bytes.get(start)?.is_ascii() {
            return None;
        }
        self.at = start + 1;
        let has_later_capital = self.skip_ascii_word();
        if bytes.get(self.at).is_some_and(|next| !next.is_ascii()) {
            self.at = start;
            return None;
        }
        Some(Unit { range: start..self.at, spaced: true, has_later_capital })
    }
}

/// Class of a byte of ASCII text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ByteClass {
    Between,
    /// Letter in lower case, or digit.
    Letter,
    Capital,
    NotAscii,
}

/// The class of each byte.
const BYTE_CLASSES: [ByteClass; 256] = {
    let mut classes = [ByteClass::Between; 256];
    let mut byte = 0_u8;
    let mut rest = classes.as_mut_slice();
    while let [class, others @ ..] = rest {
        *class = match byte {
            b'A'..=b'Z' => ByteClass::Capital,
            b'a'..=b'z' | b'0'..=b'9' => ByteClass::Letter,
            0..=127 => ByteClass::Between,
            128.. => ByteClass::NotAscii,
        };
        byte = byte.wrapping_add(1);
        rest = others;
    }
    classes
};

impl From<u8> for ByteClass {
    fn from(byte: u8) -> Self {
        BYTE_CLASSES.get(usize::from(byte)).copied().unwrap_or(Self::NotAscii)
    }
}

impl Iterator for Units<'_> {
    type Item = Unit;

    fn next(&mut self) -> Option<Unit> {
        if let Some(word) = self.next_ascii_word() {
            return Some(word);
        }
        let (start, spaced) = loop {
            let (character, class) = self.peek()?;
            let start = self.at;
            self.at += character.len_utf8();
            match class {
                Class::Spaced => break (start, true),
                Class::Unspaced => break (start, false),
                Class::Mark | Class::Between => {}
            }
        };
        let mut has_later_capital = false;
        loop {
            if spaced {
                has_later_capital |= self.skip_ascii_word();
            }
            match self.peek() {
                Some((character, Class::Mark)) => self.at += character.len_utf8(),
                Some((character, Class::Spaced)) if spaced => self.at += character.len_utf8(),
                _ => break,
            }
        }
        Some(Unit { range: start..self.at, spaced, has_later_capital })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    Spaced,
    Unspaced,
    Mark,
    Between,
}

fn class(character: char) -> Class {
    if character.is_ascii() {
        return if character.is_ascii_alphanumeric() { Class::Spaced } else { Class::Between };
    }
    // Unicode classifies the half-width voicing marks of Japanese as letters, although they are diacritics.
    if is_combining_mark(character) || matches!(character, '\u{FF9E}' | '\u{FF9F}') {
        return Class::Mark;
    }
    if !character.is_alphanumeric() {
        return Class::Between;
    }
    let scripts = character.script_extension();
    let unspaced = !scripts.is_common() && UNSPACED.iter().any(|script| scripts.contains_script(*script));
    if unspaced { Class::Unspaced } else { Class::Spaced }
}

/// Appends at most `WORD_CHARS` characters of a folded word. A joined form is without its connectors.
pub fn fold_into(text: &str, out: &mut String) {
    match without_connectors(text) {
        Some(joined) => fold_as_written(&joined, out),
        None => fold_as_written(text, out),
    }
}

/// Appends at most `WORD_CHARS` characters of the folded text.
pub(crate) fn fold_as_written(text: &str, out: &mut String) {
    if text.len() <= WORD_CHARS && text.is_ascii() {
        let start = out.len();
        out.push_str(text);
        if let Some(added) = out.get_mut(start..) {
            added.make_ascii_lowercase();
        }
        return;
    }
    let mut left = WORD_CHARS;
    for character in text.chars() {
        if left == 0 {
            return;
        }
        if character.is_ascii() {
            out.push(character.to_ascii_lowercase());
            left -= 1;
            continue;
        }
        decompose_compatible(character, |piece| {
            // Diacritics of Latin, Greek and Cyrillic are removed; combining marks of other scripts distinguish
            // words.
            if matches!(piece, '\u{300}'..='\u{36F}') {
                return;
            }
            match undecomposable(piece) {
                Some(letters) => out.push_str(letters),
                None => out.extend(piece.to_lowercase()),
            }
            left = left.saturating_sub(1);
        });
    }
}

/// Returns the folded form of letters with a stroke and of ligatures, for which Unicode defines no decomposition.
fn undecomposable(letter: char) -> Option<&'static str> {
    Some(match letter {
        'ß' | 'ẞ' => "ss",
        'ø' | 'Ø' => "o",
        'ł' | 'Ł' => "l",
        'đ' | 'Đ' | 'ð' | 'Ð' => "d",
        'ħ' | 'Ħ' => "h",
        'ı' => "i",
        'æ' | 'Æ' => "ae",
        'œ' | 'Œ' => "oe",
        'þ' | 'Þ' => "th",
        'ς' => "σ",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expect: &[&str]) {
        let found: Vec<String> = words(text).map(|word| word.folded(text)).collect();
        assert_eq!(found, expect, "{text}");
    }

    #[test]
    fn words_are_folded() {
        check("Pay the INVOICE, now!", &["pay", "the", "invoice", "now"]);
        check("Ørésund Straße naïve ŁÓDŹ Æther", &["oresund", "strasse", "naive", "lodz", "aether"]);
        check("e\u{301}te\u{301} ÉTÉ", &["ete", "ete"]);
        check("ＡＢＣ１２ ﬁne", &["abc12", "fine"]);
        check("ΟΔΟΣ οδος οδός", &["οδοσ", "οδοσ", "οδοσ"]);
        check("user_123@mail.example", &["user", "_", "123", "mail", "example"]);
    }

    #[test]
    fn text_without_spaces_is_cut_into_characters_and_pairs() {
        check("東京都", &["東", "東京", "京", "京都", "都"]);
        check("iPhone用ケース", &["iphone", "用", "用ケ", "ケ", "ケー", "ー", "ース", "ス"]);
        check(
            "검색 은",
            &["검".to_owned(), "검색".into(), "색".into(), "은".into()]
                .map(|s| nfkd(&s))
                .each_ref()
                .map(String::as_str),
        );
        check("ไทย", &["ไ", "ไท", "ท", "ทย", "ย"]);
    }

    #[test]
    fn a_word_in_camel_case_is_followed_by_its_parts() {
        check("parseConfigFile x", &["parseconfigfile", "parse", "config", "file", "x"]);
        check("HTTPServer", &["httpserver", "http", "server"]);
        check("sha256Sum", &["sha256sum", "sha256", "sum"]);
        check("OAuthClient", &["oauthclient", "oauth", "client"]);
        check("getXPosition planB", &["getxposition", "get", "xposition", "planb"]);
        for whole in ["iPhone", "PDFs", "README", "Title", "aB3dEfGh", "IDs"] {
            check(whole, &[&whole.to_lowercase()]);
        }
        let positions: Vec<usize> = words("a parseConfigFile b").map(|word| word.position).collect();
        assert_eq!(positions, [0, 1, 1, 2, 3, 4]);
        assert_eq!(position_count("a parseConfigFile b"), 5);
    }

    fn nfkd(text: &str) -> String {
        use unicode_normalization::UnicodeNormalization;
        text.nfkd().collect()
    }

    #[test]
    fn voiced_kana_stay_apart_from_plain_ones_however_they_are_written() {
        let fold = |text: &str| words(text).map(|word| word.folded(text)).collect::<Vec<_>>();
        assert_eq!(fold("が"), fold("か\u{3099}"));
        assert_eq!(fold("ｶﾞ"), fold("ガ"));
        assert_ne!(fold("か"), fold("が"));
    }

    #[test]
    fn positions_count_words_and_pairs_share_their_first_characters() {
        let positions: Vec<usize> = words("a 東京 b").map(|word| word.position).collect();
        assert_eq!(positions, [0, 1, 1, 2, 3]);
    }

    #[test]
    fn a_long_word_is_known_by_its_start() {
        check(&"x".repeat(500), &[&"x".repeat(WORD_CHARS)]);
    }

    #[test]
    fn text_without_letters_has_no_words() {
        check("… *** \u{301} \"\" 😀", &[]);
    }
}
