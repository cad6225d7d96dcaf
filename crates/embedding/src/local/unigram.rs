//! Unigram models, as multilingual models of the XLM-R family have them: the pieces of a word are the most probable ones.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::Value;

use super::charsmap::CharsMap;

/// Mark before each word, in place of a space.
const SPACE: &str = "\u{2581}";

/// Pattern of a normalizer that joins spaces. Words are separated before, so nothing is left for it.
const SPACES: &str = " {2,}";

/// Difference between the score of an unknown character and that of the least probable piece.
const UNKNOWN_PENALTY: f64 = 10.0;

/// Maximum number of characters whose pieces are chosen together. Longer texts without spaces are cut.
const MAX_WORD_CHARS: usize = 2_048;

/// Pieces that stand for the ends of texts and the like. A text that contains their names does not contain them.
const CONTROLS: [&str; 5] = ["<s>", "</s>", "<pad>", "<unk>", "<mask>"];

/// A vocabulary of pieces with their scores.
pub(super) struct Unigram {
    pieces: HashMap<String, Piece>,
    /// Id of the beginning of a text.
    pub(super) first: Option<i32>,
    /// Id of the end of a text.
    pub(super) last: Option<i32>,
    chars: Option<CharsMap>,
    unknown: Piece,
    /// Maximum length of a piece in characters.
    max_chars: usize,
}

/// A piece: its id, and the logarithm of its probability.
#[derive(Debug, Clone, Copy)]
struct Piece {
    id: i32,
    score: f64,
}

/// The part of `tokenizer.json` about the vocabulary.
#[derive(Deserialize)]
struct ModelFile {
    unk_id: Option<usize>,
    vocab: Vec<(String, f64)>,
    #[serde(default)]
    byte_fallback: bool,
}

/// The best way to the end of a character: the piece that ends there, and the place where it begins.
#[derive(Debug, Clone, Copy)]
struct Step {
    score: f64,
    start: usize,
    id: i32,
}

impl Unigram {
    /// Reads the vocabulary and the normalizer of a tokenizer.
    pub(super) fn parse(
        model: Value,
        normalizer: Option<&Value>,
        pre_tokenizer: Option<&Value>,
    ) -> Result<Self, String> {
        if !parts(pre_tokenizer, "pretokenizers").iter().all(|part| splits_at_spaces(part)) {
            return Err("it splits text at other places than spaces".to_owned());
        }
        let chars = chars_map(&parts(normalizer, "normalizers"))?;
        let ModelFile { unk_id, vocab, byte_fallback } =
            serde_json::from_value(model).map_err(|error| format!("its vocabulary: {error}"))?;
        let unknown = unk_id.filter(|id| *id < vocab.len()).and_then(|id| i32::try_from(id).ok());
        let unknown = unknown.ok_or("its vocabulary has no piece for unknown characters")?;
        if byte_fallback || vocab.iter().any(|(_, score)| !score.is_finite()) {
            return Err("its vocabulary has pieces of single bytes or without a score".to_owned());
        }
        let lowest = vocab.iter().map(|(_, score)| *score).fold(0.0, f64::min);
        let max_chars = vocab.iter().map(|(piece, _)| piece.chars().count()).max().unwrap_or(0);
        let pieces = vocab.into_iter().zip(0..).map(|((piece, score), id)| (piece, Piece { id, score }));
        let mut pieces: HashMap<String, Piece> = pieces.collect();
        let [first, last, ..] = CONTROLS.map(|name| pieces.remove(name).map(|piece| piece.id));
        let unknown = Piece { id: unknown, score: lowest - UNKNOWN_PENALTY };
        Ok(Self { pieces, first, last, chars, unknown, max_chars })
    }

    /// Returns the number of pieces.
    pub(super) fn len(&self) -> usize {
        self.pieces.len()
    }

    /// Adds the pieces of a text without spaces; at least `enough` of them, or all.
    pub(super) fn add_word(&self, text: &str, enough: usize, ids: &mut Vec<i32>) {
        let enough = ids.len().saturating_add(enough);
        let text = self.chars.as_ref().map_or_else(|| text.to_owned(), |chars| chars.normalize(text));
        for word in text.split_whitespace() {
            let marked = format!("{SPACE}{word}");
            let mut rest = marked.as_str();
            while !rest.is_empty() && ids.len() < enough {
                let end = rest.char_indices().nth(MAX_WORD_CHARS).map_or(rest.len(), |(at, _)| at);
                let (now, later) = rest.split_at_checked(end).unwrap_or((rest, ""));
                self.add_pieces(now, ids);
                rest = later;
            }
        }
    }

    /// Adds the pieces with the greatest sum of scores.
    fn add_pieces(&self, text: &str, ids: &mut Vec<i32>) {
        let starts: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
        let mut steps: Vec<Option<Step>> = vec![None; starts.len()];
        for (number, from) in starts.iter().enumerate() {
            let before = steps.get(number).copied().flatten().map_or(0.0, |step| step.score);
            let mut has_one = false;
            for (length, to) in starts.iter().skip(number + 1).take(self.max_chars).enumerate() {
                let Some(piece) = text.get(*from..*to).and_then(|part| self.pieces.get(part)) else {
                    continue;
                };
                has_one |= length == 0;
                offer(
                    &mut steps,
                    number + 1 + length,
                    Step { score: before + piece.score, start: number, id: piece.id },
                );
            }
            if !has_one && number + 1 < starts.len() {
                let Piece { id, score } = self.unknown;
                offer(&mut steps, number + 1, Step { score: before + score, start: number, id });
            }
        }
        let (first, mut end) = (ids.len(), starts.len().saturating_sub(1));
        while let Some(step) = steps.get(end).copied().flatten() {
            // Unknown characters side by side are one piece.
            if step.id != self.unknown.id || ids.len() == first || ids.last() != Some(&step.id) {
                ids.push(step.id);
            }
            end = step.start;
        }
        if let Some(added) = ids.get_mut(first..) {
            added.reverse();
        }
    }
}

/// Keeps the better of two ways to a place.
fn offer(steps: &mut [Option<Step>], at: usize, step: Step) {
    if let Some(best) = steps.get_mut(at)
        && best.is_none_or(|best| step.score > best.score)
    {
        *best = Some(step);
    }
}

/// Returns the parts of a sequence, or the part itself.
fn parts<'v>(part: Option<&'v Value>, list: &str) -> Vec<&'v Value> {
    let Some(part) = part.filter(|part| !part.is_null()) else { return Vec::new() };
    match part.get(list).and_then(Value::as_array) {
        Some(parts) => parts.iter().collect(),
        None => vec![part],
    }
}

fn text<'v>(part: &'v Value, key: &str) -> Option<&'v str> {
    part.get(key)?.as_str()
}

/// Returns true for a part that separates words at spaces and marks the beginning of each.
fn splits_at_spaces(part: &Value) -> bool {
    match text(part, "type") {
        Some("WhitespaceSplit") => true,
        Some("Metaspace") => {
            let has_prefix = part.get("add_prefix_space").and_then(Value::as_bool).unwrap_or(true);
            let scheme = text(part, "prepend_scheme").unwrap_or("always");
            text(part, "replacement").is_none_or(|mark| mark == SPACE) && has_prefix && scheme == "always"
        }
        _ => false,
    }
}

/// Returns the map of characters among the normalizers, which may otherwise only join and strip spaces.
fn chars_map(normalizers: &[&Value]) -> Result<Option<CharsMap>, String> {
    let mut chars = None;
    for part in normalizers {
        match text(part, "type") {
            Some("Precompiled") if chars.is_none() => {
                let map = text(part, "precompiled_charsmap").unwrap_or_default();
                chars = Some(CharsMap::parse(map).ok_or("its map of characters is damaged")?);
            }
            Some("Strip") => {}
            Some("Replace") if part.pointer("/pattern/Regex").and_then(Value::as_str) == Some(SPACES) => {}
            _ => return Err("it normalizes text in another way than models of the XLM-R family".to_owned()),
        }
    }
    Ok(chars)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn unigram(pre_tokenizer: &Value, normalizer: &Value) -> Result<Unigram, String> {
        let vocab = json!([
            ["<s>", 0.0],
            ["<unk>", 0.0],
            ["\u{2581}", -2.0],
            ["\u{2581}un", -3.0],
            ["able", -3.0],
            ["a", -4.0],
            ["b", -4.0],
            ["ab", -5.0],
            ["le", -4.5],
            ["会", -4.0],
            ["\u{2581}会議", -3.0],
            ["é", -4.0]
        ]);
        let model = json!({"type": "Unigram", "unk_id": 1, "vocab": vocab});
        Unigram::parse(model, Some(normalizer), Some(pre_tokenizer))
    }

    #[test]
    fn the_most_probable_pieces_are_chosen() {
        let pre = json!({"type": "Sequence", "pretokenizers": [
            {"type": "WhitespaceSplit"}, {"type": "Metaspace", "replacement": "\u{2581}", "prepend_scheme": "always"}]});
        let unigram = unigram(&pre, &Value::Null).unwrap();
        for (word, expect) in [
            ("unable", vec![3, 4]),
            ("able", vec![2, 4]),
            ("ab", vec![2, 7]),
            ("会議", vec![10]),
            ("会会", vec![2, 9, 9]),
            ("ax", vec![2, 5, 1]),
            ("xyzé", vec![2, 1, 11]),
            ("xbyz", vec![2, 1, 6, 1]),
        ] {
            let mut ids = vec![1];
            unigram.add_word(word, usize::MAX, &mut ids);
            assert_eq!(ids[1..], expect, "{word}");
        }
    }

    #[test]
    fn long_texts_without_spaces_are_read_as_far_as_needed() {
        let pre = json!({"type": "Metaspace", "replacement": "\u{2581}", "add_prefix_space": true});
        let unigram = unigram(&pre, &Value::Null).unwrap();
        let long = "会".repeat(1_000_000);
        let mut ids = Vec::new();
        unigram.add_word(&long, 500, &mut ids);
        assert!((500..=MAX_WORD_CHARS).contains(&ids.len()), "{}", ids.len());
        ids.clear();
        unigram.add_word(&long, usize::MAX, &mut ids);
        assert_eq!(ids.len(), 1_000_001);
    }

    #[test]
    fn other_normalizers_and_splits_are_refused() {
        let space = json!({"type": "Metaspace", "replacement": "\u{2581}"});
        let spaces = json!({"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "});
        let strip = json!({"type": "Strip", "strip_left": false, "strip_right": true});
        let sequence = json!({"type": "Sequence", "normalizers": [strip, spaces]});
        assert!(unigram(&space, &sequence).is_ok());
        for (pre_tokenizer, normalizer, expect) in [
            (json!({"type": "ByteLevel"}), Value::Null, "other places"),
            (json!({"type": "Metaspace", "prepend_scheme": "never"}), Value::Null, "other places"),
            (space.clone(), json!({"type": "Lowercase"}), "in another way"),
            (space.clone(), json!({"type": "Precompiled", "precompiled_charsmap": "AAAA/w=="}), "is damaged"),
            (space, json!({"type": "Precompiled"}), "is damaged"),
        ] {
            let problem = unigram(&pre_tokenizer, &normalizer).err().unwrap();
            assert!(problem.contains(expect), "{problem}");
        }
    }
}
