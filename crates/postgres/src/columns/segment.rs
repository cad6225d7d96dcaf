//! One segment of the columns of a read.

use std::cell::OnceCell;
use std::rc::Rc;

use fetchwell_ranking::relational::columns::{CellBlock, ColumnError, ColumnSegment};

use super::block::{BlockReader, Numbers};
use super::cells::ColumnBlock;
use super::loader::{BlockLoader, BlockName, unreadable};
use super::segment_writer::ROWS;
use super::texts::TextPiece;

/// Number of pieces of texts that are read at a time.
const PIECES: usize = 32;

/// Segment of which some columns can be read.
#[derive(Debug)]
pub(super) struct OpenSegment<'a> {
    pub(super) id: i64,
    /// Number of records, with those that are not read.
    pub(super) records: usize,
    pub(super) docs: Vec<u32>,
    /// Columns of the opened fields; a column without a name has no values.
    pub(super) columns: Vec<OpenColumn>,
    pub(super) loader: Rc<BlockLoader<'a>>,
}

/// Column of an opened field.
#[derive(Debug)]
pub(super) struct OpenColumn {
    name: Option<String>,
    /// Number of texts and whether one may be a mail address, once they are known.
    texts: OnceCell<(u32, bool)>,
}

impl OpenColumn {
    /// Creates the column of a name; `None` for a field without values.
    pub(super) fn new(name: Option<String>) -> Self {
        Self { name, texts: OnceCell::new() }
    }
}

impl OpenSegment<'_> {
    /// Passes the block of a field to `read`; `None` if the field has no values.
    fn with_block<T>(
        &self,
        field: usize,
        read: impl FnOnce(&BlockName, &ColumnBlock<'_>) -> Result<T, ColumnError>,
    ) -> Result<Option<T>, ColumnError> {
        let column = self.columns.get(field).ok_or_else(|| unreadable("of a field"))?;
        let Some(name) = &column.name else { return Ok(None) };
        let block_name = BlockName { segment: self.id, name: name.clone() };
        let bytes = self.loader.block(&block_name)?;
        let block = ColumnBlock::read(&bytes, self.records).ok_or_else(|| unreadable(name))?;
        let _known = column.texts.set((block.texts.count, block.texts.has_addresses));
        read(&block_name, &block).map(Some)
    }

    /// Passes the pieces of texts with some numbers, which are sorted and different, to `each`.
    fn pieces(
        &self,
        name: &BlockName,
        block: &ColumnBlock<'_>,
        pieces: &[usize],
        each: &mut dyn FnMut(usize, &TextPiece<'_>) -> Result<(), ColumnError>,
    ) -> Result<(), ColumnError> {
        for pieces in pieces.chunks(PIECES) {
            // The first part has the values.
            let parts = pieces.iter().map(|piece| i32::try_from(piece + 1));
            let parts: Option<Vec<i32>> = parts.map(Result::ok).collect();
            let parts = parts.ok_or_else(|| unreadable(&name.name))?;
            self.loader.parts(name, &parts, |part, bytes| {
                let piece = usize::try_from(part - 1).unwrap_or_default();
                let texts = block.texts.piece(piece, bytes).ok_or_else(|| unreadable(&name.name))?;
                each(piece, &texts)
            })?;
        }
        Ok(())
    }

    fn texts_of(&self, field: usize) -> Result<(u32, bool), ColumnError> {
        let known = self.columns.get(field).and_then(|column| column.texts.get());
        if let Some(known) = known {
            return Ok(*known);
        }
        let found = self.with_block(field, |_, block| Ok((block.texts.count, block.texts.has_addresses)))?;
        Ok(found.unwrap_or_default())
    }
}

impl ColumnSegment for OpenSegment<'_> {
    fn docs(&self) -> &[u32] {
        &self.docs
    }

    fn read(&self, field: usize, docs: &[u32], block: &mut CellBlock) -> Result<(), ColumnError> {
        let read = self.with_block(field, |name, column| {
            column.cells(docs, block).ok_or_else(|| unreadable(&name.name))
        })?;
        if read.is_none() {
            block.clear(docs.len());
        }
        Ok(())
    }

    fn text_count(&self, field: usize) -> Result<usize, ColumnError> {
        Ok(usize::try_from(self.texts_of(field)?.0).unwrap_or(usize::MAX))
    }

    fn texts(
        &self,
        field: usize,
        ordinals: &[u32],
        each: &mut dyn FnMut(u32, &str),
    ) -> Result<(), ColumnError> {
        self.with_block(field, |name, block| {
            let piece_of = |ordinal: &u32| block.texts.piece_of_ordinal(*ordinal);
            let pieces = ordinals.iter().map(piece_of).collect::<Option<Vec<usize>>>();
            let mut pieces = pieces.ok_or_else(|| unreadable(&name.name))?;
            pieces.dedup();
            let mut rest = ordinals.iter().peekable();
            self.pieces(name, block, &pieces, &mut |piece, texts| {
                while let Some(ordinal) = rest.next_if(|ordinal| piece_of(ordinal) == Some(piece)) {
                    each(*ordinal, texts.text(*ordinal).ok_or_else(|| unreadable(&name.name))?);
                }
                Ok(())
            })
        })?
        .map_or_else(|| if ordinals.is_empty() { Ok(()) } else { Err(unreadable("of a field")) }, Ok)
    }

    fn ordinal(&self, field: usize, text: &str) -> Result<Option<u32>, ColumnError> {
        let found = self.with_block(field, |name, block| {
            let Some(piece) = block.texts.piece_of_text(text) else { return Ok(None) };
            let mut ordinal = None;
            self.pieces(name, block, &[piece], &mut |_, texts| {
                ordinal = texts.ordinal(text);
                Ok(())
            })?;
            Ok(ordinal)
        })?;
        Ok(found.flatten())
    }

    fn has_addresses(&self, field: usize) -> Result<bool, ColumnError> {
        Ok(self.texts_of(field)?.1)
    }

    fn rows(&self, docs: &[u32], rows: &mut Vec<i64>) -> Result<(), ColumnError> {
        if docs.is_empty() {
            return Ok(());
        }
        let bytes = self.loader.block(&BlockName { segment: self.id, name: ROWS.to_owned() })?;
        let numbers = Numbers::read(&mut BlockReader::new(&bytes)).ok_or_else(|| unreadable(ROWS))?;
        for doc in docs {
            let row = usize::try_from(*doc).ok().and_then(|doc| numbers.get(doc));
            rows.push(row.ok_or_else(|| unreadable(ROWS))?);
        }
        Ok(())
    }
}
