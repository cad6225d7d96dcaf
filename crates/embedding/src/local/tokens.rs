//! The tokenizer of a local model: word pieces, as models of the BERT family have them.
//!
//! `tokenizer.json` says the vocabulary and how text is normalized. Other kinds of tokenizers are refused
//! (docs/decisions.md).

use std::collections::HashMap;
use std::fmt;

use serde::Deserialize;
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

use super::folder::ModelFolder;
use crate::{EmbeddingError, PieceCount};

/// Tokenizer of a model, with the model's limit.
pub(super) struct Tokens {
    vocabulary: HashMap<String, i32>,
    /// Text before each piece that continues a word.
    prefix: String,
    max_word_chars: usize,
    is_lowercase: bool,
    strips_accents: bool,
    unknown: i32,
    first: i32,
    last: i32,
    limit: usize,
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (pieces, limit) = (self.vocabulary.len(), self.limit);
        f.debug_struct("Tokens").field("pieces", &pieces).field("limit", &limit).finish_non_exhaustive()
    }
}

/// The parts of `tokenizer.json` that matter.
#[derive(Deserialize)]
struct TokenizerFile {
    normalizer: Option<NormalizerFile>,
    pre_tokenizer: Option<KindFile>,
    model: ModelFile,
}

#[derive(Deserialize)]
struct KindFile {
    #[serde(rename = "type")]
    kind: String,
}

#[derive(Deserialize)]
struct NormalizerFile {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    lowercase: bool,
    strip_accents: Option<bool>,
}

#[derive(Deserialize)]
struct ModelFile {
    #[serde(rename = "type", default)]
    kind: String,
    #[serde(default)]
    vocab: serde_json::Value,
    #[serde(default = "unknown_piece")]
    unk_token: Option<String>,
    #[serde(default = "continuing_prefix")]
    continuing_subword_prefix: String,
    #[serde(default = "max_word_chars")]
    max_input_chars_per_word: usize,
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

impl Tokens {
    /// Reads the tokenizer of a model.
    pub(super) fn open(folder: &ModelFolder) -> Result<Self, EmbeddingError> {
        Self::parse(&folder.tokenizer()?, folder.limit).map_err(|problem| EmbeddingError::InvalidModel {
            file: folder.path.join("tokenizer.json"),
            problem,
        })
    }

    fn parse(text: &str, limit: usize) -> Result<Self, String> {
        let TokenizerFile { normalizer, pre_tokenizer, model } =
            serde_json::from_str(text).map_err(|error| error.to_string())?;
        if model.kind != "WordPiece" {
            return Err("it is not a word piece tokenizer, as models of the BERT family have; serve the model with Ollama or TEI and use provider = \"http\"".to_owned());
        }
        let is_of_bert = |kind: Option<&str>, expect| kind.is_none_or(|kind| kind == expect);
        if !is_of_bert(normalizer.as_ref().map(|known| known.kind.as_str()), "BertNormalizer")
            || !is_of_bert(pre_tokenizer.as_ref().map(|known| known.kind.as_str()), "BertPreTokenizer")
        {
            return Err(
                "it normalizes or splits text in another way than models of the BERT family".to_owned()
            );
        }
        let vocabulary: HashMap<String, i32> =
            serde_json::from_value(model.vocab).map_err(|error| format!("its vocabulary: {error}"))?;
        let piece = |name: &str| {
            vocabulary.get(name).copied().ok_or_else(|| format!("its vocabulary has no piece `{name}`"))
        };
        let (first, last) = (piece("[CLS]")?, piece("[SEP]")?);
        let unknown = piece(model.unk_token.as_deref().unwrap_or("[UNK]"))?;
        let is_lowercase = normalizer.as_ref().is_some_and(|known| known.lowercase);
        let strips_accents = normalizer.and_then(|known| known.strip_accents).unwrap_or(is_lowercase);
        Ok(Self {
            vocabulary,
            prefix: model.continuing_subword_prefix,
            max_word_chars: model.max_input_chars_per_word,
            is_lowercase,
            strips_accents,
            unknown,
            first,
            last,
            limit,
        })
    }

    /// Returns the ids of a text, truncated to the limit, between those of its beginning and end.
    pub(super) fn ids(&self, text: &str) -> Vec<i32> {
        let mut ids = vec![self.first];
        let room = self.limit.saturating_sub(1);
        for word in text.split_whitespace() {
            if ids.len() >= room {
                break;
            }
            self.add_word(word, &mut ids);
        }
        ids.truncate(room);
        ids.push(self.last);
        ids
    }

    /// Returns the ids of a query and a passage, each with its end, and the number of ids of the query. The query takes at
    /// most half of the limit.
    pub(super) fn pair(&self, query: &str, passage: &str) -> (Vec<i32>, usize) {
        let mut ids = self.ids(query);
        let half = (self.limit / 2).max(2);
        if ids.len() > half {
            ids.truncate(half - 1);
            ids.push(self.last);
        }
        let first = ids.len();
        let room = self.limit.saturating_sub(1).max(first);
        for word in passage.split_whitespace() {
            if ids.len() >= room {
                break;
            }
            self.add_word(word, &mut ids);
        }
        ids.truncate(room);
        ids.push(self.last);
        (ids, first)
    }

    /// Adds the pieces of a text without spaces.
    fn add_word(&self, text: &str, ids: &mut Vec<i32>) {
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

impl PieceCount for Tokens {
    fn count(&self, text: &str) -> usize {
        let mut ids = Vec::new();
        text.split_whitespace().for_each(|word| self.add_word(word, &mut ids));
        ids.len()
    }

    fn limit(&self) -> usize {
        self.limit
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tokens(limit: usize) -> Tokens {
        let names = ["[UNK]", "[CLS]", "[SEP]", "un", "##aff", "##able", "cafe", "!", "会", "議", "i"];
        let vocab: serde_json::Map<_, _> =
            names.iter().enumerate().map(|(id, name)| ((*name).to_owned(), json!(id))).collect();
        let file = json!({
            "normalizer": {"type": "BertNormalizer", "lowercase": true, "strip_accents": null},
            "pre_tokenizer": {"type": "BertPreTokenizer"},
            "model": {"type": "WordPiece", "vocab": vocab, "unk_token": "[UNK]"},
        });
        Tokens::parse(&file.to_string(), limit).unwrap()
    }

    #[test]
    fn words_become_their_longest_known_pieces() {
        let tokens = tokens(16);
        for (text, expect) in [
            ("", vec![1, 2]),
            ("unaffable", vec![1, 3, 4, 5, 2]),
            ("UNAFF  Café!!", vec![1, 3, 4, 6, 7, 7, 2]),
            ("会議i", vec![1, 8, 9, 10, 2]),
            ("unaffx", vec![1, 0, 2]),
            ("un\u{0}\u{ad}aff", vec![1, 3, 4, 2]),
        ] {
            assert_eq!(tokens.ids(text), expect, "{text}");
            assert_eq!(tokens.count(text), expect.len() - 2, "{text}");
        }
        assert_eq!(tokens.ids(&"a".repeat(101)), [1, 0, 2]);
    }

    #[test]
    fn ids_are_truncated_to_the_limit() {
        let ids = tokens(5).ids(&"unaffable ".repeat(100_000));
        assert_eq!(ids, [1, 3, 4, 5, 2]);
    }

    #[test]
    fn other_tokenizers_are_refused() {
        for (file, expect) in [
            (json!({"model": {"type": "BPE", "vocab": {}}}), "not a word piece tokenizer"),
            (json!({"model": {"type": "Unigram", "vocab": [["a", 1.0]]}}), "not a word piece tokenizer"),
            (json!({"model": {"type": "WordPiece", "vocab": {"[CLS]": 1}}}), "no piece `[SEP]`"),
            (json!({"model": {"type": "WordPiece", "vocab": [1]}}), "its vocabulary"),
            (
                json!({"normalizer": {"type": "NFC"}, "model": {"type": "WordPiece", "vocab": {}}}),
                "in another way",
            ),
        ] {
            let problem = Tokens::parse(&file.to_string(), 16).unwrap_err();
            assert!(problem.contains(expect), "{problem}");
        }
    }
}
