//! The tokenizer of a local model: word pieces or a unigram model.
//!
//! `tokenizer.json` says the vocabulary and how text is normalized. Other kinds of tokenizers are refused
//! (docs/decisions.md).

use std::fmt;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use super::folder::{ModelFolder, read_text};
use super::unigram::Unigram;
use super::word_pieces::WordPieces;
use crate::{EmbeddingError, PieceCount};

/// Tokenizer of a model, with the model's limit.
pub(super) struct Tokens {
    vocabulary: Vocabulary,
    first: i32,
    last: i32,
    /// Number of ends between a query and a passage.
    separators: usize,
    limit: usize,
}

/// The kinds of vocabularies.
enum Vocabulary {
    WordPieces(WordPieces),
    Unigram(Unigram),
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pieces = match &self.vocabulary {
            Vocabulary::WordPieces(pieces) => pieces.len(),
            Vocabulary::Unigram(unigram) => unigram.len(),
        };
        f.debug_struct("Tokens").field("pieces", &pieces).field("limit", &self.limit).finish_non_exhaustive()
    }
}

/// The parts of `tokenizer.json` that matter.
#[derive(Deserialize)]
struct TokenizerFile {
    normalizer: Option<Value>,
    pre_tokenizer: Option<Value>,
    model: Value,
}

/// Checks that a tokenizer can be used.
pub(crate) fn check_tokenizer(file: &Path) -> Result<(), EmbeddingError> {
    let checked = read_text(file).and_then(|text| Tokens::parse(&text, 0));
    checked.map(drop).map_err(|problem| EmbeddingError::InvalidModel { file: file.to_owned(), problem })
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
        match kind(Some(&model)) {
            Some("WordPiece") => Self::word_pieces(model, normalizer, pre_tokenizer.as_ref(), limit),
            // Files of earlier versions do not name this kind.
            Some("Unigram") | None if model.get("unk_id").is_some() => {
                Self::unigram(model, normalizer.as_ref(), pre_tokenizer.as_ref(), limit)
            }
            _ => Err("it is neither a word piece tokenizer, as models of the BERT family have, nor a unigram tokenizer; \
                      serve the model with Ollama or TEI and use provider = \"http\""
                .to_owned()),
        }
    }

    fn word_pieces(
        model: Value,
        normalizer: Option<Value>,
        pre_tokenizer: Option<&Value>,
        limit: usize,
    ) -> Result<Self, String> {
        let is_of_bert = |part: Option<&Value>, expect| kind(part).is_none_or(|kind| kind == expect);
        if !is_of_bert(normalizer.as_ref(), "BertNormalizer")
            || !is_of_bert(pre_tokenizer, "BertPreTokenizer")
        {
            return Err(
                "it normalizes or splits text in another way than models of the BERT family".to_owned()
            );
        }
        let pieces = WordPieces::parse(model, normalizer)?;
        let (first, last) = (required("[CLS]", pieces.id("[CLS]"))?, required("[SEP]", pieces.id("[SEP]"))?);
        Ok(Self { vocabulary: Vocabulary::WordPieces(pieces), first, last, separators: 1, limit })
    }

    fn unigram(
        model: Value,
        normalizer: Option<&Value>,
        pre_tokenizer: Option<&Value>,
        limit: usize,
    ) -> Result<Self, String> {
        let unigram = Unigram::parse(model, normalizer, pre_tokenizer)?;
        let (first, last) = (required("<s>", unigram.first)?, required("</s>", unigram.last)?);
        Ok(Self { vocabulary: Vocabulary::Unigram(unigram), first, last, separators: 2, limit })
    }

    /// Returns the ids of a text, truncated to the limit, between those of its beginning and end.
    pub(super) fn ids(&self, text: &str) -> Vec<i32> {
        let mut ids = vec![self.first];
        self.fill(text, &mut ids);
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
        ids.extend(std::iter::repeat_n(self.last, self.separators - 1));
        let first = ids.len();
        self.fill(passage, &mut ids);
        (ids, first)
    }

    /// Adds the ids of a text with its end, up to the limit.
    fn fill(&self, text: &str, ids: &mut Vec<i32>) {
        let room = self.limit.saturating_sub(1).max(ids.len());
        for word in text.split_whitespace() {
            if ids.len() >= room {
                break;
            }
            self.add_word(word, room - ids.len(), ids);
        }
        ids.truncate(room);
        ids.push(self.last);
    }

    /// Adds the pieces of a text without spaces; at least `enough` of them, or all.
    fn add_word(&self, word: &str, enough: usize, ids: &mut Vec<i32>) {
        match &self.vocabulary {
            Vocabulary::WordPieces(pieces) => pieces.add_word(word, ids),
            Vocabulary::Unigram(unigram) => unigram.add_word(word, enough, ids),
        }
    }
}

impl PieceCount for Tokens {
    fn count(&self, text: &str) -> usize {
        let mut ids = Vec::new();
        text.split_whitespace().for_each(|word| self.add_word(word, usize::MAX, &mut ids));
        ids.len()
    }

    fn limit(&self) -> usize {
        self.limit
    }
}

/// Returns the type of a part of `tokenizer.json`.
fn kind(part: Option<&Value>) -> Option<&str> {
    part?.get("type")?.as_str()
}

fn required(piece: &str, id: Option<i32>) -> Result<i32, String> {
    id.ok_or_else(|| format!("its vocabulary has no piece `{piece}`"))
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
    fn unigram_models_have_two_ends_between_query_and_passage() {
        let vocab: Vec<_> =
            ["<s>", "</s>", "<unk>", "\u{2581}a", "\u{2581}b"].map(|piece| json!([piece, -1.0])).into();
        let file = json!({
            "normalizer": null,
            "pre_tokenizer": {"type": "Metaspace", "replacement": "\u{2581}", "add_prefix_space": true},
            "model": {"type": "Unigram", "unk_id": 2, "vocab": vocab},
        });
        let tokens = Tokens::parse(&file.to_string(), 8).unwrap();
        assert_eq!(tokens.ids("a b"), [0, 3, 4, 1]);
        assert_eq!(tokens.pair("a", "b a"), (vec![0, 3, 1, 1, 4, 3, 1], 4));
        assert_eq!(tokens.ids(&"a ".repeat(100_000)), [0, 3, 3, 3, 3, 3, 3, 1]);
        assert_eq!(tokens.count("a b a"), 3);
    }

    #[test]
    fn unigram_models_give_the_ids_of_sentence_piece() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/embedding/tiny-unigram");
        let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
        let tokens = Tokens::parse(&read("tokenizer.json"), 512).unwrap();
        let cases: Vec<(String, Vec<i32>)> = serde_json::from_str(&read("ids.json")).unwrap();
        assert!(cases.len() > 50, "{}", cases.len());
        for (text, expect) in cases {
            assert_eq!(tokens.ids(&text), expect, "{text}");
            assert_eq!(tokens.count(&text), expect.len() - 2, "{text}");
        }
    }

    #[test]
    fn other_tokenizers_are_refused() {
        for (file, expect) in [
            (json!({"model": {"type": "BPE", "vocab": {}}}), "neither a word piece tokenizer"),
            (json!({"model": {"type": "Unigram", "vocab": [["a", 1.0]]}}), "neither a word piece tokenizer"),
            (json!({"model": {"type": "Unigram", "unk_id": 0, "vocab": [["a", 1.0]]}}), "no piece `<s>`"),
            (json!({"model": {"type": "WordPiece", "vocab": {"[CLS]": 1, "[UNK]": 0}}}), "no piece `[SEP]`"),
            (json!({"model": {"type": "WordPiece", "vocab": {"[CLS]": 1}}}), "no piece for unknown words"),
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
