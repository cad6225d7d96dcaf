//! Words to look for in texts, as a filter that is cheaper than folding a word and looking it up.

use super::{Word, WordKind};

/// Length from which on words are not told apart.
const MAX_LENGTH: usize = u64::BITS as usize - 1;

/// First byte and length of each word to look for. Most words of a text are none of them.
#[derive(Debug, Clone)]
pub(crate) struct PossibleWords {
    /// Lengths in bytes of the words with a first byte, one bit each.
    lengths: Vec<u64>,
}

impl Default for PossibleWords {
    /// Creates a filter without words.
    fn default() -> Self {
        Self { lengths: vec![0; 256] }
    }
}

impl PossibleWords {
    /// Adds a folded word.
    pub(crate) fn add(&mut self, folded: &str) {
        self.add_lengths(folded, 1 << folded.len().min(MAX_LENGTH));
    }

    /// Adds all words that begin with a folded text.
    pub(crate) fn add_beginning(&mut self, folded: &str) {
        if folded.is_empty() {
            self.lengths.fill(u64::MAX);
        }
        self.add_lengths(folded, u64::MAX << folded.len().min(MAX_LENGTH));
    }

    fn add_lengths(&mut self, folded: &str, lengths: u64) {
        let first = folded.as_bytes().first();
        if let Some(known) = first.and_then(|first| self.lengths.get_mut(usize::from(*first))) {
            *known |= lengths;
        }
    }

    /// Returns false for a word of a text that is none of those to look for. Words that folding may make longer or shorter
    /// are possible.
    pub(crate) fn may_have(&self, text: &str, word: &Word) -> bool {
        let Some(bytes @ [first, ..]) = text.as_bytes().get(word.range.clone()) else { return true };
        if word.kind == WordKind::Joined || !bytes.is_ascii() {
            return true;
        }
        let lengths = self.lengths.get(usize::from(first.to_ascii_lowercase())).copied().unwrap_or_default();
        lengths >> bytes.len().min(MAX_LENGTH) & 1 == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lexical::words::words;

    #[test]
    fn words_with_another_beginning_or_length_are_not_possible() {
        let mut possible = PossibleWords::default();
        possible.add("pay");
        possible.add("wifi");
        possible.add_beginning("invo");
        let long = "x".repeat(100);
        possible.add(long.get(..64).unwrap_or_default());
        let text = format!("Pay Pot paid the invoice invo Inv Wi-Fi wi Ünvo {long}");
        let found: Vec<&str> = words(&text)
            .filter(|word| possible.may_have(&text, word))
            .filter_map(|word| text.get(word.range))
            .collect();
        // Letters are not compared beyond the first one, and folding may change others.
        assert_eq!(found, ["Pay", "Pot", "invoice", "invo", "Wi-Fi", "Wi-Fi", "Ünvo", &long]);
        assert!(words("a b").all(|word| !PossibleWords::default().may_have("a b", &word)));
        possible.add_beginning("");
        assert!(words("a b").all(|word| possible.may_have("a b", &word)));
    }
}
