//! Columns of the fields of records in one segment.

use std::collections::HashSet;
use std::fmt::Debug;
use std::sync::LazyLock;

use fetchwell_core::lru::{LruCache, LruLimits};
use fetchwell_ranking::relational::columns::{
    Cell, CellBlock, ColumnError, ColumnPath, ColumnSegment, Shape,
};
use tantivy::columnar::{Column, DynamicColumn, StrColumn};
use tantivy::index::SegmentId;
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{DocSet, SegmentReader, TERMINATED, TantivyError, Term};

use super::super::index::{Fields, PARTS, SHAPES, TIMES, VALUES, guard, row_term};
use super::words::WordSelection;

/// Records and fields whose columns are opened.
#[derive(Debug)]
pub(super) struct SegmentSelection<'a> {
    pub(super) fields: Fields,
    pub(super) stream: i64,
    pub(super) paths: &'a [ColumnPath],
    /// Row ids of records that changed since the commit.
    pub(super) changed: &'a HashSet<u64>,
    /// Words that a record must have.
    pub(super) words: Option<&'a WordSelection>,
}

/// Opened columns of a segment.
pub(super) struct OpenedSegment {
    pub(super) columns: SegmentColumns,
    /// Row ids of the records with the words that are to be read as JSON.
    pub(super) rest: Vec<i64>,
    /// Number of unchanged records of the stream, whatever words they have.
    pub(super) count: usize,
}

/// Number of columns of which it is remembered whether they have mail addresses.
const MAX_KNOWN: u64 = 4_096;

/// Maximum number of records that are looked up among the others one by one.
const MAX_LOOKED_UP: usize = 8;

/// Columns that have mail addresses or not. Segments do not change.
static ADDRESSES: LazyLock<LruCache<(SegmentId, String), bool>> =
    LazyLock::new(|| LruCache::new(LruLimits::new(MAX_KNOWN)));

/// Open columns of a segment.
pub(super) struct SegmentColumns {
    id: SegmentId,
    docs: Vec<u32>,
    records: Column<u64>,
    fields: Vec<FieldColumns>,
}

/// Columns of a field. A record has values in one of them, or a shape.
#[derive(Default)]
struct FieldColumns {
    name: String,
    bools: Option<Column<bool>>,
    wholes: Option<Column<i64>>,
    texts: Option<StrColumn>,
    parts: Option<Column<f64>>,
    times: Option<Column<i64>>,
    shapes: Option<Column<i64>>,
}

impl SegmentColumns {
    /// Opens the columns of a segment.
    pub(super) fn open(
        segment: &SegmentReader,
        selection: &SegmentSelection<'_>,
    ) -> Result<OpenedSegment, ColumnError> {
        let open = || {
            let SegmentSelection { fields, stream, paths, changed, words } = selection;
            let records = segment.fast_fields().u64("record")?;
            let mut docs = Vec::new();
            let alive = segment.alive_bitset();
            each_doc(segment, fields.stream, row_term(*stream), |doc| {
                if alive.is_none_or(|alive| alive.is_alive(doc)) {
                    docs.push(doc);
                }
            })?;
            if !changed.is_empty() {
                docs.retain(|doc| records.first(*doc).is_none_or(|row| !changed.contains(&row)));
            }
            let count = docs.len();
            if let Some(words) = words {
                docs = split(docs, &words.docs(segment)?).1;
            }
            let mut marked = Vec::new();
            let unread = fields.of_fields.map(|columns| columns.unread);
            let unread = unread.ok_or_else(|| TantivyError::InternalError("no columns".to_owned()))?;
            let marks: HashSet<u64> = paths.iter().flat_map(|path| path.marks.iter().copied()).collect();
            for mark in marks {
                each_doc(segment, unread, mark, |doc| marked.push(doc))?;
            }
            marked.sort_unstable();
            marked.dedup();
            let (docs, rest) = split(docs, &marked);
            let fields = paths.iter().map(|path| FieldColumns::open(segment, &path.column));
            let fields = fields.collect::<Result<_, _>>()?;
            let mut rows = Vec::new();
            let columns = Self { id: segment.segment_id(), docs, records, fields };
            columns.push_rows(&rest, &mut rows)?;
            Ok(OpenedSegment { columns, rest: rows, count })
        };
        guard(open).map_err(|error| unreadable(&error))
    }

    fn push_rows(&self, docs: &[u32], rows: &mut Vec<i64>) -> Result<(), TantivyError> {
        for doc in docs {
            let row = self.records.first(*doc).and_then(|row| i64::try_from(row).ok());
            rows.push(row.ok_or_else(|| TantivyError::InternalError("a record has no row id".to_owned()))?);
        }
        Ok(())
    }

    fn field(&self, field: usize) -> Result<&FieldColumns, TantivyError> {
        let missing = || TantivyError::InternalError("a field was not opened".to_owned());
        self.fields.get(field).ok_or_else(missing)
    }
}

impl ColumnSegment for SegmentColumns {
    fn docs(&self) -> &[u32] {
        &self.docs
    }

    fn read(&self, field: usize, docs: &[u32], block: &mut CellBlock) -> Result<(), ColumnError> {
        guard(|| self.field(field)?.read(docs, block)).map_err(|error| unreadable(&error))
    }

    fn text_count(&self, field: usize) -> Result<usize, ColumnError> {
        let texts = self.fields.get(field).and_then(|columns| columns.texts.as_ref());
        Ok(texts.map_or(0, |texts| texts.dictionary().num_terms()))
    }

    fn texts(
        &self,
        field: usize,
        ordinals: &[u32],
        each: &mut dyn FnMut(u32, &str),
    ) -> Result<(), ColumnError> {
        let read = || {
            let Some(texts) = &self.field(field)?.texts else { return Ok(ordinals.is_empty()) };
            let wide: Vec<u64> = ordinals.iter().map(|ordinal| u64::from(*ordinal)).collect();
            let (mut at, mut is_text) = (ordinals.iter(), true);
            let found = texts.dictionary().sorted_ords_to_term_cb(&wide, |term| {
                match (at.next(), std::str::from_utf8(term)) {
                    (Some(ordinal), Ok(text)) => each(*ordinal, text),
                    _ => is_text = false,
                }
            })?;
            Ok(found && is_text)
        };
        match guard(read) {
            Ok(true) => Ok(()),
            Ok(false) => Err(ColumnError::Unreadable("a column lacks a text".to_owned())),
            Err(error) => Err(unreadable(&error)),
        }
    }

    fn ordinal(&self, field: usize, text: &str) -> Result<Option<u32>, ColumnError> {
        let find = || {
            let Some(texts) = &self.field(field)?.texts else { return Ok(None) };
            Ok(texts.dictionary().term_ord(text)?)
        };
        let ordinal = guard(find).map_err(|error| unreadable(&error))?;
        Ok(ordinal.map(|ordinal| u32::try_from(ordinal).unwrap_or(u32::MAX)))
    }

    fn has_addresses(&self, field: usize) -> Result<bool, ColumnError> {
        let find = || {
            let columns = self.field(field)?;
            let Some(texts) = &columns.texts else { return Ok(false) };
            let key = (self.id, columns.name.clone());
            if let Some(known) = ADDRESSES.get(&key) {
                return Ok(known);
            }
            let (mut terms, mut has_addresses) = (texts.dictionary().stream()?, false);
            while !has_addresses && terms.advance() {
                has_addresses = terms.key().contains(&b'@');
            }
            ADDRESSES.insert(key, has_addresses);
            Ok(has_addresses)
        };
        guard(find).map_err(|error| unreadable(&error))
    }

    fn rows(&self, docs: &[u32], rows: &mut Vec<i64>) -> Result<(), ColumnError> {
        guard(|| self.push_rows(docs, rows)).map_err(|error| unreadable(&error))
    }
}

impl FieldColumns {
    /// Opens the columns with a name.
    fn open(segment: &SegmentReader, name: &str) -> Result<Self, TantivyError> {
        let mut columns = Self { name: name.to_owned(), ..Self::default() };
        for kind in [VALUES, PARTS, TIMES, SHAPES] {
            for handle in segment.fast_fields().dynamic_column_handles(&format!("{kind}.{name}"))? {
                match (kind, handle.open()?) {
                    (VALUES, DynamicColumn::Bool(column)) => columns.bools = Some(column),
                    (VALUES, DynamicColumn::I64(column)) => columns.wholes = Some(column),
                    (VALUES, DynamicColumn::Str(column)) => columns.texts = Some(column),
                    (PARTS, DynamicColumn::F64(column)) => columns.parts = Some(column),
                    (TIMES, DynamicColumn::I64(column)) => columns.times = Some(column),
                    (SHAPES, DynamicColumn::I64(column)) => columns.shapes = Some(column),
                    (_, other) => {
                        let problem = format!("a column of {kind} has the type {:?}", other.column_type());
                        return Err(TantivyError::InternalError(problem));
                    }
                }
            }
        }
        Ok(columns)
    }

    /// Reads the values of some records.
    fn read(&self, docs: &[u32], block: &mut CellBlock) -> Result<(), TantivyError> {
        block.clear(docs.len());
        let CellBlock { cells, lists } = block;
        fill(self.bools.as_ref(), docs, cells, Cell::Bool);
        fill(self.wholes.as_ref(), docs, cells, Cell::Whole);
        fill(self.parts.as_ref(), docs, cells, Cell::Part);
        fill(self.times.as_ref(), docs, cells, Cell::Time);
        fill(self.texts.as_ref().map(|texts| texts.ords()), docs, cells, text_cell);
        let Some(shapes) = &self.shapes else { return Ok(()) };
        for (doc, cell) in docs.iter().zip(cells.iter_mut()) {
            let Some(shape) = shapes.first(*doc) else { continue };
            let shape = u64::try_from(shape).ok().and_then(Shape::from_number);
            *cell = match shape {
                Some(Shape::Object) => Cell::Object,
                Some(Shape::Empty) => Cell::Empty,
                Some(Shape::List) => {
                    lists.push(self.items(*doc));
                    Cell::List(u32::try_from(lists.len() - 1).unwrap_or(u32::MAX))
                }
                None => return Err(TantivyError::InternalError("a shape is unknown".to_owned())),
            };
        }
        Ok(())
    }

    /// Returns the items of a list.
    fn items(&self, doc: u32) -> Vec<Cell> {
        let mut items = Vec::new();
        extend(self.bools.as_ref(), doc, &mut items, Cell::Bool);
        extend(self.wholes.as_ref(), doc, &mut items, Cell::Whole);
        extend(self.parts.as_ref(), doc, &mut items, Cell::Part);
        extend(self.times.as_ref(), doc, &mut items, Cell::Time);
        extend(self.texts.as_ref().map(|texts| texts.ords()), doc, &mut items, text_cell);
        items
    }
}

fn text_cell(ordinal: u64) -> Cell {
    Cell::Text(u32::try_from(ordinal).unwrap_or(u32::MAX))
}

/// Writes the values of a column into the cells of the records that have one.
fn fill<T: PartialOrd + Copy + Debug + Send + Sync + 'static>(
    column: Option<&Column<T>>,
    docs: &[u32],
    cells: &mut [Cell],
    cell_of: impl Fn(T) -> Cell,
) {
    let Some(column) = column else { return };
    let mut values = vec![None; docs.len()];
    column.first_vals(docs, &mut values);
    for (cell, value) in cells.iter_mut().zip(values) {
        if let Some(value) = value {
            *cell = cell_of(value);
        }
    }
}

fn extend<T: PartialOrd + Copy + Debug + Send + Sync + 'static>(
    column: Option<&Column<T>>,
    doc: u32,
    items: &mut Vec<Cell>,
    cell_of: impl Fn(T) -> Cell,
) {
    if let Some(column) = column {
        items.extend(column.values_for_doc(doc).map(cell_of));
    }
}

/// Divides records into those that are not among others, and those that are. Both lists are ascending.
fn split(mut docs: Vec<u32>, others: &[u32]) -> (Vec<u32>, Vec<u32>) {
    if others.len() <= MAX_LOOKED_UP {
        let among: Vec<u32> =
            others.iter().copied().filter(|other| docs.binary_search(other).is_ok()).collect();
        for other in &among {
            if let Ok(at) = docs.binary_search(other) {
                docs.remove(at);
            }
        }
        return (docs, among);
    }
    let (mut others, mut among) = (others.iter().peekable(), Vec::new());
    docs.retain(|doc| {
        while others.next_if(|other| *other < doc).is_some() {}
        let is_among = others.peek() == Some(&doc);
        if is_among {
            among.push(*doc);
        }
        !is_among
    });
    (docs, among)
}

/// Passes the records of a segment with a term, ascending.
fn each_doc(
    segment: &SegmentReader,
    field: Field,
    term: u64,
    mut each: impl FnMut(u32),
) -> Result<(), TantivyError> {
    let index = segment.inverted_index(field)?;
    let term = Term::from_field_u64(field, term);
    let Some(mut postings) = index.read_postings(&term, IndexRecordOption::Basic)? else { return Ok(()) };
    while postings.doc() != TERMINATED {
        each(postings.doc());
        postings.advance();
    }
    Ok(())
}

fn unreadable(error: &TantivyError) -> ColumnError {
    ColumnError::Unreadable(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_and_many_records_are_split_off() {
        for count in [0, 1, 8, 9, 40] {
            let (docs, others): (Vec<u32>, Vec<u32>) =
                ((0..60).map(|doc| doc * 2).collect(), (0..count).map(|other| other * 3).collect());
            let is_other = |doc: &u32| others.binary_search(doc).is_ok();
            let (among, rest): (Vec<u32>, Vec<u32>) = docs.iter().partition(|doc| is_other(doc));
            assert_eq!(split(docs, &others), (rest, among), "{count}");
        }
    }
}
