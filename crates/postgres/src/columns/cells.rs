//! Values of a column for the records of a segment, as a block.
//!
//! A value is a kind and a number. A block has the kinds and numbers of all records, or, if few records have a value, of those.

use fetchwell_ranking::relational::columns::{Cell, CellBlock};

use super::block::{BlockReader, Numbers, put_length};
use super::texts::TextIndex;

/// Kinds of values in blocks.
const MISSING: u8 = 0;
const BOOL: u8 = 1;
const WHOLE: u8 = 2;
const PART: u8 = 3;
const TIME: u8 = 4;
const TEXT: u8 = 5;
const EMPTY: u8 = 6;
const LIST: u8 = 7;
const OBJECT: u8 = 8;

/// Kind of a block whose values have several.
const MIXED: u8 = 255;

/// A block has the records that have a value if at most one of this many has.
const SPARSE_SHARE: usize = 8;

/// Values of a column, in the order of their records.
#[derive(Debug, Default)]
pub(super) struct CellWriter {
    docs: Vec<u32>,
    cells: CellBlock,
}

impl CellWriter {
    /// Adds the value of a record other than a list.
    pub(super) fn add(&mut self, doc: u32, cell: Cell) {
        self.docs.push(doc);
        self.cells.cells.push(cell);
    }

    /// Adds the list of a record.
    pub(super) fn add_list(&mut self, doc: u32, items: Vec<Cell>) {
        let list = u32::try_from(self.cells.lists.len()).unwrap_or(u32::MAX);
        self.cells.lists.push(items);
        self.add(doc, Cell::List(list));
    }

    /// Appends the values for `count` records to a block. `text_at` returns the ordinal of a text by its provisional one.
    pub(super) fn put(&self, bytes: &mut Vec<u8>, count: usize, text_at: impl Fn(u32) -> u32) {
        let pair = |cell: &Cell| pair(*cell, &text_at);
        let pairs = self.cells.cells.iter().map(pair);
        let is_sparse = self.docs.len() <= count / SPARSE_SHARE;
        let (kinds, numbers): (Vec<u8>, Vec<i64>) = if is_sparse {
            let docs: Vec<i64> = self.docs.iter().map(|doc| i64::from(*doc)).collect();
            bytes.push(1);
            Numbers::put(bytes, &docs);
            pairs.unzip()
        } else {
            bytes.push(0);
            // The number of a missing value must not widen those of the others.
            let missing = self.cells.cells.first().map(pair).map_or(0, |(_, number)| number);
            let mut all = vec![(MISSING, missing); count];
            for (doc, pair) in self.docs.iter().zip(pairs) {
                if let Some(place) = usize::try_from(*doc).ok().and_then(|at| all.get_mut(at)) {
                    *place = pair;
                }
            }
            all.into_iter().unzip()
        };
        put_pairs(bytes, &kinds, &numbers);
        let lists = &self.cells.lists;
        let mut end = 0;
        let ends: Vec<i64> = lists
            .iter()
            .map(|list| {
                end += i64::try_from(list.len()).unwrap_or_default();
                end
            })
            .collect();
        Numbers::put(bytes, &ends);
        let (kinds, numbers): (Vec<u8>, Vec<i64>) = lists.iter().flatten().map(pair).unzip();
        put_pairs(bytes, &kinds, &numbers);
    }
}

/// Appends kinds, once if all are the same, and numbers.
fn put_pairs(bytes: &mut Vec<u8>, kinds: &[u8], numbers: &[i64]) {
    match kinds {
        [first, rest @ ..] if rest.iter().all(|kind| kind == first) => bytes.push(*first),
        _ => {
            bytes.push(MIXED);
            put_length(bytes, kinds.len());
            bytes.extend_from_slice(kinds);
        }
    }
    Numbers::put(bytes, numbers);
}

/// Returns kind and number of a value.
fn pair(cell: Cell, text_at: &impl Fn(u32) -> u32) -> (u8, i64) {
    match cell {
        Cell::Missing => (MISSING, 0),
        Cell::Bool(value) => (BOOL, value.into()),
        Cell::Whole(number) => (WHOLE, number),
        Cell::Part(number) => (PART, number.to_bits().cast_signed()),
        Cell::Time(number) => (TIME, number),
        Cell::Text(text) => (TEXT, text_at(text).into()),
        Cell::Empty => (EMPTY, 0),
        Cell::List(list) => (LIST, list.into()),
        Cell::Object => (OBJECT, 0),
    }
}

/// Kinds and numbers of values in a block.
#[derive(Debug, Clone, Copy)]
struct Pairs<'a> {
    kind: u8,
    kinds: &'a [u8],
    numbers: Numbers<'a>,
}

impl<'a> Pairs<'a> {
    fn read(reader: &mut BlockReader<'a>) -> Option<Self> {
        let kind = reader.u8()?;
        let kinds = if kind == MIXED {
            let count = reader.length()?;
            reader.take(count)?
        } else {
            &[]
        };
        let numbers = Numbers::read(reader)?;
        let is_complete = kind != MIXED || kinds.len() == numbers.len();
        is_complete.then_some(Self { kind, kinds, numbers })
    }

    /// Returns the value at a place.
    fn get(&self, at: usize) -> Option<Cell> {
        let number = self.numbers.get(at)?;
        let kind = if self.kind == MIXED { *self.kinds.get(at)? } else { self.kind };
        Some(match kind {
            MISSING => Cell::Missing,
            BOOL => Cell::Bool(number != 0),
            WHOLE => Cell::Whole(number),
            PART => Cell::Part(f64::from_bits(number.cast_unsigned())),
            TIME => Cell::Time(number),
            TEXT => Cell::Text(u32::try_from(number).ok()?),
            EMPTY => Cell::Empty,
            LIST => Cell::List(u32::try_from(number).ok()?),
            OBJECT => Cell::Object,
            _ => return None,
        })
    }
}

/// Block of a column.
#[derive(Debug)]
pub(super) struct ColumnBlock<'a> {
    pub(super) texts: TextIndex<'a>,
    /// Records that have a value, if they are few.
    docs: Option<Numbers<'a>>,
    pairs: Pairs<'a>,
    /// Ends of the lists among the items.
    ends: Numbers<'a>,
    items: Pairs<'a>,
}

impl<'a> ColumnBlock<'a> {
    /// Reads a block for `count` records. Returns `None` for one that is damaged.
    pub(super) fn read(bytes: &'a [u8], count: usize) -> Option<Self> {
        let mut reader = BlockReader::new(bytes);
        let texts = TextIndex::read(&mut reader)?;
        let docs = match reader.u8()? {
            0 => None,
            1 => Some(Numbers::read(&mut reader)?),
            _ => return None,
        };
        let pairs = Pairs::read(&mut reader)?;
        let ends = Numbers::read(&mut reader)?;
        let items = Pairs::read(&mut reader)?;
        let is_complete = pairs.numbers.len() == docs.map_or(count, |docs| docs.len())
            && ends.len().checked_sub(1).map_or(Some(0), |last| ends.get(last))
                == i64::try_from(items.numbers.len()).ok()
            && reader.is_empty();
        is_complete.then_some(Self { texts, docs, pairs, ends, items })
    }

    /// Reads the values of some records. Returns `None` if the block is damaged.
    pub(super) fn cells(&self, docs: &[u32], block: &mut CellBlock) -> Option<()> {
        block.cells.clear();
        block.lists.clear();
        for doc in docs {
            let at = match self.docs {
                None => Some(usize::try_from(*doc).ok()?),
                Some(present) => present.place((*doc).into()),
            };
            let cell = match at {
                None => Cell::Missing,
                Some(at) => match self.checked(self.pairs.get(at)?)? {
                    Cell::List(list) => {
                        block.lists.push(self.list(list)?);
                        Cell::List(u32::try_from(block.lists.len() - 1).ok()?)
                    }
                    cell => cell,
                },
            };
            block.cells.push(cell);
        }
        Some(())
    }

    /// Returns a value; `None` if its text does not exist.
    fn checked(&self, cell: Cell) -> Option<Cell> {
        match cell {
            Cell::Text(ordinal) if ordinal >= self.texts.count => None,
            cell => Some(cell),
        }
    }

    fn list(&self, list: u32) -> Option<Vec<Cell>> {
        let list = usize::try_from(list).ok()?;
        let start = list.checked_sub(1).map_or(Some(0), |before| self.ends.get(before))?;
        let (start, end) = (usize::try_from(start).ok()?, usize::try_from(self.ends.get(list)?).ok()?);
        let item = |at| match self.checked(self.items.get(at)?)? {
            Cell::List(_) => None,
            cell => Some(cell),
        };
        (start..end).map(item).collect()
    }
}
