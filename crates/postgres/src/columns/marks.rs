//! Marks of the records that are read as JSON for some field, in parts by the mark.

use std::collections::{BTreeSet, HashMap};

use fetchwell_ranking::relational::columns::ColumnPath;

use super::block::{BlockReader, Numbers, put_length};

/// Number of parts.
const PARTS: u64 = 64;

/// Maximum number of different marks of a segment, and of marks of all of its records. Further records are read as JSON for every
/// field.
const MAX_MARKS: usize = 20_000;
const MAX_MARKED: usize = 2_000_000;

/// A list of records is written as bits if it has at least so many.
const MIN_BITS: usize = 4_096;

/// Returns the part of a mark.
pub(super) fn part_of(mark: u64) -> i32 {
    i32::try_from(mark % PARTS).unwrap_or_default()
}

/// Returns the bit of a part.
pub(super) fn bit_of(part: i32) -> i64 {
    1_i64.checked_shl(part.unsigned_abs()).unwrap_or_default()
}

/// Returns the mark of records that are read as JSON for every field.
fn mark_of_all() -> Option<u64> {
    ColumnPath::for_field("").and_then(|path| path.marks.first().copied())
}

/// Marks of the records of a segment.
#[derive(Debug, Default)]
pub(super) struct MarkWriter {
    docs: HashMap<u64, Vec<u16>>,
    marked: usize,
}

impl MarkWriter {
    /// Marks a record. Returns false if the record must be marked for every field instead.
    pub(super) fn add(&mut self, doc: u16, marks: &[u64]) -> bool {
        let has_room = self.docs.len() + marks.len() <= MAX_MARKS && self.marked + marks.len() <= MAX_MARKED;
        if has_room {
            self.marked += marks.len();
            for mark in marks {
                self.docs.entry(*mark).or_default().push(doc);
            }
        }
        has_room
    }

    /// Marks a record for every field.
    pub(super) fn add_for_all(&mut self, doc: u16) {
        if let Some(mark) = mark_of_all() {
            self.docs.entry(mark).or_default().push(doc);
        }
    }

    /// Returns the blocks of the parts that have marks, for `count` records.
    pub(super) fn blocks(self, count: usize) -> Vec<(i32, Vec<u8>)> {
        let mut marks: Vec<(u64, Vec<u16>)> = self.docs.into_iter().collect();
        marks.sort_unstable_by_key(|(mark, _)| (part_of(*mark), *mark));
        let same = marks.chunk_by(|(a, _), (b, _)| part_of(*a) == part_of(*b));
        let block = |marks: &[(u64, Vec<u16>)]| {
            let mut bytes = Vec::new();
            put_length(&mut bytes, marks.len());
            for (mark, docs) in marks {
                bytes.extend_from_slice(&mark.to_le_bytes());
                put_docs(&mut bytes, docs, count);
            }
            Some((part_of(marks.first()?.0), bytes))
        };
        same.filter_map(block).collect()
    }
}

fn put_docs(bytes: &mut Vec<u8>, docs: &[u16], count: usize) {
    if docs.len() < MIN_BITS {
        bytes.push(0);
        let docs: Vec<i64> = docs.iter().map(|doc| i64::from(*doc)).collect();
        Numbers::put(bytes, &docs);
        return;
    }
    let mut bits = Bits::new(count);
    docs.iter().for_each(|doc| bits.set((*doc).into()));
    bytes.push(1);
    put_length(bytes, bits.bytes.len());
    bytes.extend_from_slice(&bits.bytes);
}

/// Adds the records of a part that have one of some marks to `marked`. Returns `None` if the part is damaged.
pub(super) fn add_marked(bytes: &[u8], marks: &BTreeSet<u64>, marked: &mut Bits) -> Option<()> {
    let mut reader = BlockReader::new(bytes);
    for _ in 0..reader.u32()? {
        let is_wanted = marks.contains(&reader.u64()?);
        if reader.u8()? == 0 {
            let docs = Numbers::read(&mut reader)?;
            if is_wanted {
                for at in 0..docs.len() {
                    marked.set(u32::try_from(docs.get(at)?).ok()?);
                }
            }
        } else {
            let length = reader.length()?;
            let bits = reader.take(length)?;
            if is_wanted {
                marked.add(bits);
            }
        }
    }
    reader.is_empty().then_some(())
}

/// A bit for each record of a segment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Bits {
    pub(super) bytes: Vec<u8>,
}

impl Bits {
    /// Creates bits for `count` records, none of them set.
    pub(super) fn new(count: usize) -> Self {
        Self { bytes: vec![0; count.div_ceil(8)] }
    }

    pub(super) fn set(&mut self, doc: u32) {
        if let Some(byte) = usize::try_from(doc / 8).ok().and_then(|at| self.bytes.get_mut(at)) {
            *byte |= 1 << (doc % 8);
        }
    }

    pub(super) fn has(&self, doc: u32) -> bool {
        let byte = usize::try_from(doc / 8).ok().and_then(|at| self.bytes.get(at));
        byte.is_some_and(|byte| byte & 1 << (doc % 8) != 0)
    }

    /// Sets the bits that are set in `bits`.
    pub(super) fn add(&mut self, bits: &[u8]) {
        for (byte, other) in self.bytes.iter_mut().zip(bits) {
            *byte |= other;
        }
    }

    /// Returns the number of bits that are set.
    pub(super) fn count(&self) -> usize {
        self.bytes.iter().map(|byte| byte.count_ones() as usize).sum()
    }
}
