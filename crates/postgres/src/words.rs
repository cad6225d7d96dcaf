//! The words of a record as a `tsvector`, built and read without the parsers of the server.
//!
//! Besides the words with their positions, a vector has marked words without positions: those of the title and of the
//! author, the stream and the connection. A mark is no letter and no digit, so that it is in no word. The index of the
//! server then selects by field and by stream without reading records.

use std::collections::{BTreeMap, BTreeSet};
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

/// Bits of a position that mark the words of the title, as the server weighs them.
const TITLE_WEIGHT: u16 = 3 << 14;

/// Words with their positions, by their bytes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct WordVector(BTreeMap<String, Vec<u16>>);

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
        vector.add_mark(stream_word(place.stream));
        vector.add_mark(connection_word(place.connection));
        let mut folded = String::new();
        let mut marks = BTreeSet::new();
        for (mark, text) in content
            .title
            .map(|title| (TITLE, title))
            .into_iter()
            .chain(content.authors.iter().map(|author| (AUTHOR, *author)))
        {
            for word in words(text) {
                marks.insert(marked(mark, &word.folded(text)));
            }
        }
        marks.into_iter().for_each(|mark| vector.add_mark(mark));
        let (mut start, mut length) = (0, 0_usize);
        for text in &content.texts {
            let mut end = start;
            for word in words(text) {
                folded.clear();
                fold_into(text.get(word.range).unwrap_or_default(), &mut folded);
                let position = start + word.position;
                vector.add(&folded, position, position < content.title_words);
                end = position + 1;
                length += 1;
            }
            // No phrase goes from one text to the next.
            start = end + 1;
        }
        Self {
            words: vector.words,
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
    words: WordVector,
    bytes: usize,
}

impl Builder {
    fn add_mark(&mut self, word: String) {
        let bytes = word.len();
        if self.bytes + bytes <= MAX_BYTES && self.words.0.insert(word, Vec::new()).is_none() {
            self.bytes += bytes;
        }
    }

    fn add(&mut self, word: &str, position: usize, is_title: bool) {
        if let Some(positions) = self.words.0.get_mut(word) {
            self.bytes += add_position(positions, position, is_title, MAX_BYTES.saturating_sub(self.bytes));
            return;
        }
        // The number of positions takes two bytes, and one aligns it.
        let bytes = self.bytes + word.len() + 3;
        if bytes > MAX_BYTES {
            return;
        }
        let mut positions = Vec::new();
        self.bytes = bytes + add_position(&mut positions, position, is_title, MAX_BYTES - bytes);
        self.words.0.insert(word.to_owned(), positions);
    }
}

/// Adds a position if the limits of the server and `room` allow it. Returns the bytes that it takes.
fn add_position(positions: &mut Vec<u16>, position: usize, is_title: bool, room: usize) -> usize {
    // The server counts positions from 1.
    let position = position + 1;
    if position > MAX_POSITION || positions.len() >= MAX_POSITIONS || room < 2 {
        return 0;
    }
    let position = u16::try_from(position).unwrap_or_default();
    if positions.last().is_some_and(|last| last & !TITLE_WEIGHT >= position) {
        return 0;
    }
    positions.push(if is_title { position | TITLE_WEIGHT } else { position });
    2
}

impl WordVector {
    /// Returns the words without marks.
    pub(crate) fn plain_words(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str).filter(|word| is_plain(word))
    }
}

impl ToSql for WordVector {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        out.extend_from_slice(&i32::try_from(self.0.len())?.to_be_bytes());
        for (word, positions) in &self.0 {
            out.extend_from_slice(word.as_bytes());
            out.extend_from_slice(&[0]);
            out.extend_from_slice(&u16::try_from(positions.len())?.to_be_bytes());
            positions.iter().for_each(|position| out.extend_from_slice(&position.to_be_bytes()));
        }
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
        assert_eq!(words.words.plain_words().count(), 6);
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
