//! Slots that stand for several words of a query: `wifi` for `wi-fi`, `foobar` for `foo_bar`, `setup` for `set up`.
//!
//! A record with such a word has the words that it stands for (`scoring`). The words of a query with connectors or signs have one,
//! and adjacent words that texts may write as one.

use std::collections::HashMap;

use super::{JoinedSlot, Place, QueryTerms, Slot, WrittenWord};
use crate::lexical::compounds::{are_certain, are_joined, grouped_numbers};
use crate::lexical::understanding::request_words::WHOLE;
use crate::lexical::words::{UNDERSCORE, Word, WordKind, words};

/// Maximum number of slots that stand for several words.
const MAX_JOINED: usize = 16;

/// Slot for several words that is to be added.
#[derive(Debug)]
struct NewSlot {
    kind: WordKind,
    text: String,
    parts: Vec<usize>,
    offsets: Vec<usize>,
    is_certain: bool,
    underscore: Option<usize>,
}

impl NewSlot {
    /// Describes the slot for words that the query writes as one piece.
    fn written(words: &[&WrittenWord], text: String) -> Self {
        let first = words.first().map_or(0, |word| word.position);
        Self {
            kind: WordKind::Joined,
            text,
            parts: words.iter().map(|word| word.slot).collect(),
            offsets: words.iter().map(|word| word.position.saturating_sub(first)).collect(),
            is_certain: true,
            underscore: None,
        }
    }
}

impl Slot {
    /// Returns true for a slot that stands for several words of the query, which have slots, too.
    pub(crate) fn is_joined(&self) -> bool {
        matches!(self.kind, WordKind::Joined | WordKind::Adjacent | WordKind::Underscore)
    }
}

impl QueryTerms {
    /// Adds slots for the words of a piece that are joined in it, or have signs.
    pub(super) fn add_written(
        &mut self,
        piece: &str,
        written: &[WrittenWord],
        slots: &mut HashMap<String, usize>,
    ) {
        let spaced = written.iter().filter(|word| word.kind == WordKind::Spaced);
        let spaced: Vec<&WrittenWord> = spaced.collect();
        for joined in words(piece).filter(Word::is_joined) {
            let parts = spaced
                .iter()
                .filter(|word| joined.range.start <= word.range.start && word.range.end <= joined.range.end);
            let parts: Vec<&WrittenWord> = parts.copied().collect();
            self.add_joined(&NewSlot::written(&parts, joined.folded(piece)), slots);
        }
        let runs =
            spaced.chunk_by(|one, other| piece.get(one.range.end..other.range.start) == Some(UNDERSCORE));
        for run in runs.filter(|run| run.len() > 1) {
            self.add_identifier(run, slots);
        }
        // Records may have the parts of a word in camel case with underscores between them.
        let in_parts = written.chunk_by(|_, other| other.kind == WordKind::Part);
        for word in in_parts.filter(|word| word.len() > 1) {
            let parts: Vec<&WrittenWord> = word.iter().skip(1).collect();
            self.add_identifier(&parts, slots);
        }
    }

    /// Adds a slot for words that records may have with underscores between them.
    fn add_identifier(&mut self, parts: &[&WrittenWord], slots: &mut HashMap<String, usize>) {
        let underscore = self.slot(UNDERSCORE.to_owned(), WordKind::Underscore, WHOLE, slots);
        let text = parts.iter().filter_map(|word| self.slots.get(word.slot)).map(|slot| slot.text.as_str());
        let text = text.collect();
        let new = NewSlot { underscore: Some(underscore), ..NewSlot::written(parts, text) };
        self.add_joined(&new, slots);
    }

    /// Gives each slot for several words the greatest share of these.
    pub(super) fn weigh_joined(&mut self) {
        let shares: Vec<Option<u8>> =
            self.joined.iter().map(|joined| self.greatest_share(&joined.parts)).collect();
        for (joined, share) in self.joined.iter().zip(shares) {
            if let (Some(slot), Some(share)) = (self.slots.get_mut(joined.slot), share) {
                slot.share = slot.share.max(share);
            }
        }
    }

    fn greatest_share(&self, slots: &[usize]) -> Option<u8> {
        slots.iter().filter_map(|slot| self.slots.get(*slot)).map(|slot| slot.share).max()
    }

    /// Adds slots for adjacent words that texts may write as one.
    pub(super) fn add_adjacent(&mut self, slots: &mut HashMap<String, usize>) {
        let mut found: Vec<Vec<usize>> = Vec::new();
        let word = |place: &Place| self.slots.get(place.slot).filter(|slot| slot.kind == WordKind::Spaced);
        for pair in self.places.windows(2) {
            if let [first, second] = pair
                && first.unit != second.unit
                && second.position == first.position + 1
                && let (Some(one), Some(other)) = (word(first), word(second))
                && one.is_matter()
                && (other.is_matter() || !other.text.starts_with(|first: char| first.is_ascii_digit()))
                && are_joined(&one.text, &other.text)
            {
                found.push(vec![first.slot, second.slot]);
            }
        }
        // The numbers of a date are no groups of one.
        let matter = |place: &Place| word(place).filter(|slot| slot.is_matter());
        let texts = self.places.iter().map(|place| matter(place).map_or("", |slot| slot.text.as_str()));
        let texts: Vec<&str> = texts.collect();
        let numbers = grouped_numbers(&texts).into_iter().filter_map(|range| self.places.get(range));
        found.extend(numbers.map(|places| places.iter().map(|place| place.slot).collect()));
        for parts in found {
            let text = parts.iter().filter_map(|part| self.slots.get(*part)).map(|slot| slot.text.as_str());
            let texts: Vec<&str> = text.collect();
            let (is_certain, text) = (are_certain(&texts), texts.concat());
            let (kind, offsets) = (WordKind::Adjacent, (0..parts.len()).collect());
            let new = NewSlot { kind, text, parts, offsets, is_certain, underscore: None };
            self.add_joined(&new, slots);
        }
    }

    /// Adds a slot for several words.
    fn add_joined(&mut self, new: &NewSlot, slots: &mut HashMap<String, usize>) {
        let NewSlot { kind, text, parts, offsets, is_certain, underscore } = new;
        if self.joined.len() == MAX_JOINED || parts.is_empty() {
            return;
        }
        let share = self.greatest_share(parts).unwrap_or(WHOLE);
        let slot = self.slot(text.clone(), *kind, share, slots);
        let is_known = self.joined.iter().any(|known| known.slot == slot && known.parts == *parts);
        if !parts.contains(&slot) && !is_known {
            let (parts, offsets) = (parts.clone(), offsets.clone());
            let (is_certain, underscore) = (*is_certain, *underscore);
            self.joined.push(JoinedSlot { slot, parts, offsets, is_certain, underscore });
        }
    }

    /// Returns the number of the slot of a word. One that is a word of the query by itself is no joined one.
    pub(super) fn slot(
        &mut self,
        text: String,
        kind: WordKind,
        share: u8,
        slots: &mut HashMap<String, usize>,
    ) -> usize {
        let slot = *slots.entry(text).or_insert_with_key(|text| {
            self.slots.push(Slot { text: text.clone(), kind, share });
            self.slots.len() - 1
        });
        if let Some(known) = self.slots.get_mut(slot)
            && known.is_joined()
            && kind != WordKind::Adjacent
        {
            known.kind = kind;
        }
        slot
    }
}
