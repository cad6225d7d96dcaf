//! Word pieces, as models of the BERT family have them.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::Value;
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// A vocabulary of word pieces, with the normalization of text.
pub(super) struct WordPieces {
    vocabulary: HashMap<String, i32>,
    /// Text before each piece that continues a word.
    prefix: String,
    max_word_chars: usize,
    is_lowercase: bool,
    strips_accents: bool,
    unknown: i32,
}

/// The part of `tokenizer.json` about the vocabulary.
#[derive(Deserialize)]
struct ModelFile {
    #[serde(default)]
    vocab: Value,
    #[serde(default = "unknown_piece")]
    unk_token: Option<String>,
    #[serde(default = "continuing_prefix")]
    continuing_subword_prefix: String,
    #[serde(default = "max_word_chars")]
    max_input_chars_per_word: usize,
}

/// The part of `tokenizer.json` about the normalization of text.
#[derive(Deserialize, Default)]
struct NormalizerFile {
    #[serde(default)]
    lowercase: bool,
    strip_accents: Option<bool>,
}

#[expect(clippy::unnecessary_wraps, reason = "the field is optional")]
fn unknown_piece() -> Option<String> {
    Some("[UNK]".to_owned())
}

fn continuing_prefix() -> String {
    "##".to_owned()
}

fn max_word_chars() -> usize {
    100
}

impl WordPieces {
    /// Reads the vocabulary and the normalizer of a tokenizer.
    pub(super) fn parse(model: Value, normalizer: Option<Value>) -> Result<Self, String> {
        let model: ModelFile = serde_json::from_value(model).map_err(|error| error.to_string())?;
        let normalizer = normalizer.map(serde_json::from_value).transpose();
        let normalizer: NormalizerFile = normalizer.map_err(|error| error.to_string())?.unwrap_or_default();
        let vocabulary: HashMap<String, i32> =
            serde_json::from_value(model.vocab).map_err(|error| format!("its vocabulary: {error}"))?;
        let unknown = model.unk_token.as_deref().unwrap_or("[UNK]");
        let unknown = vocabulary.get(unknown).copied();
        let unknown = unknown.ok_or("its vocabulary has no piece for unknown words")?;
        Ok(Self {
            vocabulary,
            prefix: model.continuing_subword_prefix,
            max_word_chars: model.max_input_chars_per_word,
            is_lowercase: normalizer.lowercase,
            strips_accents: normalizer.strip_accents.unwrap_or(normalizer.lowercase),
            unknown,
        })
    }

    /// Returns the id of a piece.
    pub(super) fn id(&self, piece: &str) -> Option<i32> {
        self.vocabulary.get(piece).copied()
    }

    /// Returns the number of pieces.
    pub(super) fn len(&self) -> usize {
        self.vocabulary.len()
    }

    /// Adds the pieces of a text without spaces.
    pub(super) fn add_word(&self, text: &str, ids: &mut Vec<i32>) {
        let mut word = String::new();
        for character in self.normalized(text) {
            if is_ideograph(character) || is_punctuation(character) {
                self.add_pieces(&word, ids);
                word.clear();
                self.add_pieces(character.encode_utf8(&mut [0; 4]), ids);
            } else if character.is_whitespace() {
                self.add_pieces(&word, ids);
                word.clear();
            } else {
                word.push(character);
            }
        }
        self.add_pieces(&word, ids);
    }

    /// Returns the characters of a text without control characters, in lower case and without accents if the model
    /// has it so.
    fn normalized(&self, text: &str) -> Vec<char> {
        let cleaned = text.chars().filter(|c| !c.is_control() && !is_invisible(*c));
        let folded: Vec<char> = if self.strips_accents {
            cleaned.nfd().filter(|c| !is_combining_mark(*c)).collect()
        } else {
            cleaned.collect()
        };
        if self.is_lowercase { folded.into_iter().flat_map(char::to_lowercase).collect() } else { folded }
    }

    /// Adds the longest known pieces of a word, or the unknown piece if it has a part that is not known.
    fn add_pieces(&self, word: &str, ids: &mut Vec<i32>) {
        if word.is_empty() {
            return;
        }
        if word.chars().count() > self.max_word_chars {
            ids.push(self.unknown);
            return;
        }
        let (before, mut start) = (ids.len(), 0);
        let mut piece = String::new();
        while start < word.len() {
            let prefix = if start == 0 { "" } else { self.prefix.as_str() };
            let rest = word.get(start..).unwrap_or_default();
            let ends = rest.char_indices().map(|(at, character)| at + character.len_utf8()).rev();
            let found = ends.into_iter().find_map(|end| {
                piece.clear();
                piece.push_str(prefix);
                piece.push_str(rest.get(..end)?);
                self.vocabulary.get(&piece).map(|id| (*id, end))
            });
            let Some((id, length)) = found else {
                ids.truncate(before);
                ids.push(self.unknown);
                return;
            };
            ids.push(id);
            start += length;
        }
    }
}

/// Returns true for a format character, and for the replacement of invalid bytes.
fn is_invisible(character: char) -> bool {
    matches!(character,
        '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2064}' | '\u{feff}'
        | '\u{fffd}')
}

/// Returns true for a Chinese character, which is a word of its own for models of the BERT family.
fn is_ideograph(character: char) -> bool {
    matches!(character,
        '\u{4e00}'..='\u{9fff}' | '\u{3400}'..='\u{4dbf}' | '\u{20000}'..='\u{2a6df}' | '\u{2a700}'..='\u{2b81f}'
        | '\u{2b820}'..='\u{2ceaf}' | '\u{f900}'..='\u{faff}' | '\u{2f800}'..='\u{2fa1f}')
}

/// Returns true for punctuation, which is a word of its own.
fn is_punctuation(character: char) -> bool {
    character.is_ascii_punctuation()
        || matches!(character,
            '¡' | '§' | '«' | '¶' | '·' | '»' | '¿' | '\u{37e}' | '\u{387}' | '\u{589}' | '\u{5be}' | '\u{60c}'
            | '\u{61b}' | '\u{61f}' | '\u{66a}'..='\u{66d}' | '\u{6d4}' | '\u{964}' | '\u{965}' | '\u{e5a}'
            | '\u{2010}'..='\u{2027}' | '\u{2030}'..='\u{2043}' | '\u{2045}'..='\u{2051}' | '\u{2053}'..='\u{205e}'
            | '\u{3001}'..='\u{3003}' | '\u{3008}'..='\u{3011}' | '\u{3014}'..='\u{301f}' | '\u{3030}' | '\u{30fb}'
            | '\u{ff01}'..='\u{ff03}' | '\u{ff05}'..='\u{ff0a}' | '\u{ff0c}'..='\u{ff0f}' | '\u{ff1a}' | '\u{ff1b}'
            | '\u{ff1f}' | '\u{ff20}' | '\u{ff3b}'..='\u{ff3d}' | '\u{ff3f}' | '\u{ff5b}' | '\u{ff5d}'
            | '\u{ff5f}'..='\u{ff65}')
}
