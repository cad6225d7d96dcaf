//! The words of a record as a `tsvector`, built and read without the parsers of the server.
//!
//! Besides the words with their positions, a vector has marked words without positions: those of the title and of the
//! author, the stream and the connection. A mark is no letter and no digit, so that it is in no word. The index of the
//! server then selects by field and by stream without reading records.

use std::collections::HashMap;
use std::error::Error;

use bytes::BytesMut;
use fetchwell_core::record::RecordData;
use fetchwell_core::saturate::saturated;
use fetchwell_ranking::lexical::content::{RecordContent, RecordText};
use fetchwell_ranking::lexical::words::{fold_into, words};
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};

/// Version of the words. Words of earlier versions are replaced by the next import.
pub(crate) const WORDS_VERSION: i32 = 2;

/// First version that has all words of a text. It has no joined forms.
pub(crate) const FIRST_COMPLETE_VERSION: i32 = 1;

/// Second of a record of which no time is known.
pub(crate) const NO_TIME: i64 = i64::MIN;

/// Mark of words of the title.
pub(crate) const TITLE: char = '=';

/// Mark of words of the author.
pub(crate) const AUTHOR: char = '@';

/// Marks of the row ids of streams and connections.
const STREAM: &str = "/s";
const CONNECTION: &str = "/c";

/// Number of positions that a vector can have: the greatest number of 14 bits. Later words have no position.
const MAX_POSITION: usize = (1 << 14) - 1;

/// Maximum number of positions of a word.
const MAX_POSITIONS: usize = 255;

/// Maximum bytes of a vector: the server takes less than 1 MiB. Later words of a record are not found.
const MAX_BYTES: usize = 1_000_000;

/// Bytes that a word takes beside its own: the number of its positions takes two, one aligns it, and a position takes two.
const BYTES_BESIDE_WORD: usize = 5;

/// Bits of a position that mark the words of the title, as the server weighs them.
const TITLE_WEIGHT: u16 = 3 << 14;

/// Words with their positions in ascending order, as the server receives them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct WordVector {
    count: usize,
    bytes: Vec<u8>,
}

/// Row of the table of words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RecordWords {
    pub(crate) words: WordVector,
    pub(crate) length: i32,
    pub(crate) title_words: i32,
    pub(crate) time: i64,
    pub(crate) similarity: i64,
}

/// Returns the word that all records of a stream have.
pub(crate) fn stream_word(stream: i64) -> String {
    format!("{STREAM}{stream}")
}

/// Returns the word that all records of a connection have.
pub(crate) fn connection_word(connection: i64) -> String {
    format!("{CONNECTION}{connection}")
}

/// Returns a word with a mark.
pub(crate) fn marked(mark: char, word: &str) -> String {
    format!("{mark}{word}")
}

/// Returns true for a word without a mark.
pub(crate) fn is_plain(word: &str) -> bool {
    !word.starts_with([TITLE, AUTHOR, '/'])
}

/// Row ids of the stream and the connection of a record.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    pub(crate) stream: i64,
    pub(crate) connection: i64,
}

impl RecordWords {
    /// Returns the words of a record.
    pub(crate) fn new(place: Place, key: &str, data: &RecordData, emitted_at: Option<&str>) -> Self {
        let content = RecordContent::new(&RecordText { key, data, emitted_at });
        let mut vector = Builder::default();
        vector.add(None, |out| out.push_str(&stream_word(place.stream)));
        vector.add(None, |out| out.push_str(&connection_word(place.connection)));
        let titles = content.title.map(|title| (TITLE, title));
        let authors = content.authors.iter().map(|author| (AUTHOR, *author));
        for (mark, text) in titles.into_iter().chain(authors) {
            for word in words(text) {
                vector.add(None, |out| {
                    out.push(mark);
                    fold_into(text.get(word.range).unwrap_or_default(), out);
                });
            }
        }
        let (mut start, mut length) = (0, 0_usize);
        for text in &content.texts {
            let mut end = start;
            for word in words(text) {
                let position = start + word.position;
                let placed = Some((position, position < content.title_words));
                vector.add(placed, |out| fold_into(text.get(word.range).unwrap_or_default(), out));
                end = position + 1;
                length += 1;
            }
            // No phrase goes from one text to the next.
            start = end + 1;
        }
        Self {
            words: vector.finish(),
            length: saturated::<i32>(length),
            title_words: saturated::<i32>(content.title_words),
            time: content.time.unwrap_or(NO_TIME),
            similarity: content.similarity.cast_signed(),
        }
    }
}

/// Vector in progress.
#[derive(Debug, Default)]
struct Builder {
    /// All words one after the other.
    text: String,
    occurrences: Vec<Occurrence>,
}

/// Occurrence of a word. Those with equal first bytes are compared by the word and then by their order.
#[derive(Debug, Clone, Copy)]
struct Occurrence {
    first_bytes: u64,
    start: usize,
    end: usize,
    /// Position as the server counts it; `None` for a word without one.
    position: Option<u16>,
}

impl Builder {
    /// Adds a word that a function writes, with its position from 0, and true for one of the title.
    fn add(&mut self, placed: Option<(usize, bool)>, write: impl FnOnce(&mut String)) {
        let start = self.text.len();
        write(&mut self.text);
        let word = self.text.as_bytes().get(start..).unwrap_or_default();
        let mut first_bytes = [0; 8];
        first_bytes.iter_mut().zip(word).for_each(|(to, byte)| *to = *byte);
        let position = placed.and_then(|(position, is_title)| {
            // The server counts positions from 1.
            let position = u16::try_from(position + 1).ok()?;
            let weight = if is_title { TITLE_WEIGHT } else { 0 };
            (usize::from(position) <= MAX_POSITION).then_some(position | weight)
        });
        let first_bytes = u64::from_be_bytes(first_bytes);
        self.occurrences.push(Occurrence { first_bytes, start, end: self.text.len(), position });
    }

    /// Returns the vector: each word once, with its positions in ascending order.
    fn finish(mut self) -> WordVector {
        if self.text.len() + self.occurrences.len() * BYTES_BESIDE_WORD > MAX_BYTES {
            self.limit();
        }
        let Self { text, mut occurrences } = self;
        let word = |of: &Occurrence| text.as_bytes().get(of.start..of.end).unwrap_or_default();
        occurrences.sort_unstable_by(|a, b| {
            (a.first_bytes, word(a), a.start).cmp(&(b.first_bytes, word(b), b.start))
        });
        let mut vector = WordVector {
            count: 0,
            bytes: Vec::with_capacity(text.len() + occurrences.len() * BYTES_BESIDE_WORD),
        };
        for same in occurrences.chunk_by(|a, b| a.first_bytes == b.first_bytes && word(a) == word(b)) {
            vector.bytes.extend(same.first().map(word).unwrap_or_default());
            vector.bytes.extend([0_u8; 3]);
            let at = vector.bytes.len();
            let mut last = 0;
            for position in same.iter().filter_map(|of| of.position) {
                // Words at the same place are one.
                if position & !TITLE_WEIGHT > last && (vector.bytes.len() - at) / 2 < MAX_POSITIONS {
                    last = position & !TITLE_WEIGHT;
                    vector.bytes.extend(position.to_be_bytes());
                }
            }
            let positions = u16::try_from((vector.bytes.len() - at) / 2).unwrap_or_default();
            if let Some(count) = vector.bytes.get_mut(at - 2..at) {
                count.copy_from_slice(&positions.to_be_bytes());
            }
            vector.count += 1;
        }
        vector
    }

    /// Leaves out words and positions that a vector has no room for, in the order of the text.
    fn limit(&mut self) {
        let Self { text, occurrences } = self;
        let mut known: HashMap<&str, (usize, u16)> = HashMap::new();
        let mut bytes = 0;
        occurrences.retain_mut(|of| {
            let word = text.get(of.start..of.end).unwrap_or_default();
            let added = if known.contains_key(word) { 0 } else { word.len() + BYTES_BESIDE_WORD - 2 };
            if bytes + added > MAX_BYTES {
                return false;
            }
            bytes += added;
            let (positions, last) = known.entry(word).or_default();
            of.position = of.position.filter(|position| {
                bytes + 2 <= MAX_BYTES && *positions < MAX_POSITIONS && position & !TITLE_WEIGHT > *last
            });
            if let Some(position) = of.position {
                (*positions, *last) = (*positions + 1, position & !TITLE_WEIGHT);
                bytes += 2;
            }
            added > 0 || of.position.is_some()
        });
    }
}

impl WordVector {
    /// Calls a function with each word without a mark.
    pub(crate) fn for_each_plain<'v>(&'v self, mut with: impl FnMut(&'v str)) {
        let mut rest = self.bytes.as_slice();
        while let Some(end) = rest.iter().position(|byte| *byte == 0) {
            let Some((word, after)) = rest.split_at_checked(end) else { return };
            if let Some(word) = str::from_utf8(word).ok().filter(|word| is_plain(word)) {
                with(word);
            }
            let Some((&[_, high, low], after)) = after.split_first_chunk() else { return };
            rest = after.get(usize::from(u16::from_be_bytes([high, low])) * 2..).unwrap_or_default();
        }
    }
}

impl ToSql for WordVector {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        out.extend_from_slice(&i32::try_from(self.count)?.to_be_bytes());
        out.extend_from_slice(&self.bytes);
        Ok(IsNull::No)
    }

    fn accepts(kind: &Type) -> bool {
        *kind == Type::TS_VECTOR
    }

    to_sql_checked!();
}

/// Positions of some words in a vector, read from its bytes without building the rest.
#[derive(Debug)]
pub(crate) struct RawVector<'a>(&'a [u8]);

impl<'a> RawVector<'a> {
    /// Calls a function with each word and its positions in ascending order, counted from 0.
    pub(crate) fn for_each(
        &self,
        mut with: impl FnMut(&'a [u8], &mut dyn Iterator<Item = u32>),
    ) -> Option<()> {
        let (count, mut rest) = self.0.split_first_chunk::<4>()?;
        for _ in 0..u32::from_be_bytes(*count) {
            let end = rest.iter().position(|byte| *byte == 0)?;
            let word = rest.get(..end)?;
            let (positions, after) = rest.get(end + 1..)?.split_first_chunk::<2>()?;
            let bytes = usize::from(u16::from_be_bytes(*positions)) * 2;
            let mut positions = after.get(..bytes)?.chunks_exact(2).filter_map(|pair| {
                let position = u16::from_be_bytes(pair.try_into().ok()?) & !TITLE_WEIGHT;
                Some(u32::from(position.saturating_sub(1)))
            });
            with(word, &mut positions);
            rest = after.get(bytes..)?;
        }
        Some(())
    }
}

impl<'a> FromSql<'a> for RawVector<'a> {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Self(raw))
    }

    fn accepts(kind: &Type) -> bool {
        *kind == Type::TS_VECTOR
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn words_of(data: serde_json::Value) -> RecordWords {
        let data = serde_json::from_value(data).unwrap();
        RecordWords::new(Place { stream: 7, connection: 3 }, "k1", &data, None)
    }

    fn read(vector: &WordVector) -> Vec<(String, Vec<u32>)> {
        let mut bytes = BytesMut::new();
        vector.to_sql(&Type::TS_VECTOR, &mut bytes).unwrap();
        let mut found = Vec::new();
        let read = RawVector(&bytes).for_each(|word, positions| {
            found.push((String::from_utf8(word.to_vec()).unwrap(), positions.collect()));
        });
        read.unwrap();
        found
    }

    #[test]
    fn a_vector_has_words_with_positions_and_marks() {
        let words = words_of(json!({"title": "Pay Ann", "from": "Bob", "body": "ann pays", "n": 12}));
        let found = read(&words.words);
        let expect = [
            ("/c3", vec![]),
            ("/s7", vec![]),
            ("12", vec![5]),
            ("=ann", vec![]),
            ("=pay", vec![]),
            ("@bob", vec![]),
            ("ann", vec![1, 9]),
            ("bob", vec![7]),
            ("k1", vec![3]),
            ("pay", vec![0]),
            ("pays", vec![10]),
        ];
        assert_eq!(found, expect.map(|(word, positions)| (word.to_owned(), positions)));
        assert_eq!((words.length, words.title_words, words.time), (7, 2, NO_TIME));
        let mut plain = Vec::new();
        words.words.for_each_plain(|word| plain.push(word));
        assert_eq!(plain, ["12", "ann", "bob", "k1", "pay", "pays"]);
    }

    #[test]
    fn a_long_text_keeps_the_limits_of_the_server() {
        let body: String = (0..200_000).map(|number| format!("word{number} the ")).collect();
        let words = words_of(json!({"body": body}));
        let mut bytes = BytesMut::new();
        words.words.to_sql(&Type::TS_VECTOR, &mut bytes).unwrap();
        assert!(bytes.len() < 1 << 20, "{}", bytes.len());
        assert_eq!(words.length, 400_001);
        let found = read(&words.words);
        let positions = |word: &str| found.iter().find(|(found, _)| found == word).unwrap().1.clone();
        assert_eq!(positions("the").len(), MAX_POSITIONS);
        assert_eq!(positions("word10000"), Vec::<u32>::new());
        assert_eq!(positions("word2"), [6]);
    }
}
