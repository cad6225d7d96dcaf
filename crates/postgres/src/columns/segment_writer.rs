//! Columns of a segment while its records are added.

use std::collections::HashMap;
use std::sync::Arc;

use fetchwell_ranking::relational::columns::{Cell, ColumnValue, RecordColumns, Shape};
use sha2::{Digest, Sha256};

use super::block::{Numbers, sealed};
use super::cells::CellWriter;
use super::marks::{MarkWriter, bit_of};
use super::texts::put_texts;

/// Names of the blocks that are not of a column.
pub(super) const KEYS: &str = "keys";
pub(super) const ROWS: &str = "rows";
pub(super) const MARKS: &str = "marks";

/// Maximum number of records of a segment. A number of a record has 16 bits.
pub(super) const MAX_RECORDS: usize = 65_536;

/// Number of values, and bytes of texts, at which a segment ends.
const MAX_VALUES: usize = 1_000_000;
const MAX_TEXT_BYTES: usize = 24 * 1024 * 1024;

/// Bytes that a text takes in memory beside its own.
const TEXT_OVERHEAD: usize = 64;

/// Records of a segment.
#[derive(Debug, Default)]
pub(super) struct SegmentWriter {
    versions: Vec<i64>,
    keys: Vec<i64>,
    columns: HashMap<Arc<str>, ColumnWriter>,
    marks: MarkWriter,
    values: usize,
    text_bytes: usize,
}

/// Values of a column.
#[derive(Debug, Default)]
struct ColumnWriter {
    cells: CellWriter,
    /// Texts with the order in which they came.
    texts: HashMap<String, u32>,
}

/// Blocks of a segment.
#[derive(Debug)]
pub(super) struct SegmentBlocks {
    pub(super) records: usize,
    pub(super) columns: Vec<String>,
    pub(super) mark_parts: i64,
    pub(super) blocks: Vec<NamedBlock>,
}

/// Block with its name and part.
#[derive(Debug)]
pub(super) struct NamedBlock {
    pub(super) name: String,
    pub(super) part: i32,
    pub(super) data: Vec<u8>,
}

/// Returns the hash of the key of a record, by which a changed record is found in its segment.
pub(super) fn key_hash(key: &str) -> i64 {
    let digest = Sha256::digest(key);
    i64::from_le_bytes(digest.first_chunk().copied().unwrap_or_default())
}

impl SegmentWriter {
    /// Returns true if no more records are to be added to a segment of at most `max_records`.
    pub(super) fn is_full(&self, max_records: usize) -> bool {
        self.versions.len() >= max_records.min(MAX_RECORDS)
            || self.values >= MAX_VALUES
            || self.text_bytes >= MAX_TEXT_BYTES
    }

    pub(super) fn is_empty(&self) -> bool {
        self.versions.is_empty()
    }

    /// Adds a record; `None` for one that is read as JSON for every field.
    pub(super) fn add(&mut self, version: i64, key: &str, columns: Option<RecordColumns>) {
        let Ok(doc) = u16::try_from(self.versions.len()) else { return };
        self.versions.push(version);
        self.keys.push(key_hash(key));
        match columns {
            Some(columns) if self.marks.add(doc, &columns.unread) => self.add_values(doc.into(), columns),
            _ => self.marks.add_for_all(doc),
        }
    }

    fn add_values(&mut self, doc: u32, columns: RecordColumns) {
        let mut lists: HashMap<Arc<str>, Vec<ColumnValue>> = HashMap::new();
        for (name, shape) in columns.shapes {
            self.values += 1;
            match shape {
                Shape::List => {
                    lists.insert(name, Vec::new());
                }
                Shape::Object => self.columns.entry(name).or_default().cells.add(doc, Cell::Object),
                Shape::Empty => self.columns.entry(name).or_default().cells.add(doc, Cell::Empty),
            }
        }
        for (name, value) in columns.values {
            self.values += 1;
            if let ColumnValue::Text(text) = &value {
                self.text_bytes += text.len() + TEXT_OVERHEAD;
            }
            match lists.get_mut(&name) {
                Some(items) => items.push(value),
                None => {
                    let column = self.columns.entry(name).or_default();
                    let cell = column.cell(value);
                    column.cells.add(doc, cell);
                }
            }
        }
        for (name, items) in lists {
            let column = self.columns.entry(name).or_default();
            let items = items.into_iter().map(|item| column.cell(item)).collect();
            column.cells.add_list(doc, items);
        }
    }

    /// Returns the blocks of all records.
    pub(super) fn finish(self) -> SegmentBlocks {
        let records = self.versions.len();
        let mut blocks = Vec::new();
        let mut push = |name: &str, part, bytes| {
            blocks.push(NamedBlock { name: name.to_owned(), part, data: sealed(bytes) });
        };
        for (name, numbers) in [(KEYS, &self.keys), (ROWS, &self.versions)] {
            let mut bytes = Vec::new();
            Numbers::put(&mut bytes, numbers);
            push(name, 0, bytes);
        }
        let mut mark_parts = 0;
        for (part, bytes) in self.marks.blocks(records) {
            mark_parts |= bit_of(part);
            push(MARKS, part, bytes);
        }
        let columns = self.columns.keys().map(ToString::to_string).collect();
        for (name, column) in self.columns {
            for (part, bytes) in (0..).zip(column.blocks(records)) {
                push(&name, part, bytes);
            }
        }
        SegmentBlocks { records, columns, mark_parts, blocks }
    }
}

impl ColumnWriter {
    fn cell(&mut self, value: ColumnValue) -> Cell {
        match value {
            ColumnValue::Bool(value) => Cell::Bool(value),
            ColumnValue::Whole(number) => Cell::Whole(number),
            ColumnValue::Part(number) => Cell::Part(number),
            ColumnValue::Time(number) => Cell::Time(number),
            ColumnValue::Text(text) => {
                let next = u32::try_from(self.texts.len()).unwrap_or(u32::MAX);
                Cell::Text(*self.texts.entry(text).or_insert(next))
            }
        }
    }

    /// Returns the block of the values, and those of the texts.
    fn blocks(self, records: usize) -> Vec<Vec<u8>> {
        let mut texts: Vec<(&str, u32)> =
            self.texts.iter().map(|(text, came)| (text.as_str(), *came)).collect();
        texts.sort_unstable();
        let mut ordinals = vec![0_u32; texts.len()];
        for (ordinal, (_, came)) in (0..).zip(&texts) {
            if let Some(place) = usize::try_from(*came).ok().and_then(|came| ordinals.get_mut(came)) {
                *place = ordinal;
            }
        }
        let sorted: Vec<&str> = texts.into_iter().map(|(text, _)| text).collect();
        let mut values = Vec::new();
        let pieces = put_texts(&mut values, &sorted);
        self.cells.put(&mut values, records, |came| {
            usize::try_from(came).ok().and_then(|came| ordinals.get(came)).copied().unwrap_or(u32::MAX)
        });
        std::iter::once(values).chain(pieces).collect()
    }
}
