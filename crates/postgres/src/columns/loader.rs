//! Blocks of segments that a read has in memory: the last ones, within a limit.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use fetchwell_ranking::relational::columns::ColumnError;

use super::block::{MAX_BLOCK_BYTES, unsealed};
use crate::queries::Queries;

/// Maximum bytes of blocks that are kept. One block may be larger.
const MAX_BYTES: usize = 4 * 1024 * 1024;

/// Name of a block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BlockName {
    pub(super) segment: i64,
    pub(super) name: String,
}

/// Blocks of the segments of a stream.
#[derive(Debug)]
pub(super) struct BlockLoader<'a> {
    queries: Queries<'a>,
    kept: RefCell<VecDeque<(BlockName, Rc<[u8]>)>>,
}

/// Returns the error of a block.
pub(super) fn unreadable(name: &str) -> ColumnError {
    ColumnError::Unreadable(format!("the block `{name}` is damaged or missing"))
}

impl<'a> BlockLoader<'a> {
    pub(super) fn new(queries: Queries<'a>) -> Self {
        Self { queries, kept: RefCell::default() }
    }

    /// Returns the first part of a block.
    pub(super) fn block(&self, name: &BlockName) -> Result<Rc<[u8]>, ColumnError> {
        let known =
            self.kept.borrow().iter().find(|(known, _)| known == name).map(|(_, block)| Rc::clone(block));
        if let Some(known) = known {
            return Ok(known);
        }
        let mut loaded: Option<Rc<[u8]>> = None;
        self.parts(name, &[0], |_, bytes| {
            loaded = Some(Rc::from(bytes));
            Ok(())
        })?;
        let block = loaded.ok_or_else(|| unreadable(&name.name))?;
        let mut kept = self.kept.borrow_mut();
        kept.push_back((name.clone(), Rc::clone(&block)));
        let mut bytes: usize = kept.iter().map(|(_, block)| block.len()).sum();
        while bytes > MAX_BYTES && kept.len() > 1 {
            bytes -= kept.pop_front().map_or(0, |(_, block)| block.len());
        }
        Ok(block)
    }

    /// Passes parts of a block, which are sorted and different, to `each`.
    pub(super) fn parts(
        &self,
        name: &BlockName,
        parts: &[i32],
        mut each: impl FnMut(i32, &[u8]) -> Result<(), ColumnError>,
    ) -> Result<(), ColumnError> {
        let sql = "SELECT part, CASE WHEN octet_length(data) <= $4 THEN data END FROM fetchwell.column_blocks
             WHERE segment = $1 AND name = $2 AND part = ANY ($3) ORDER BY part";
        let max_bytes = i32::try_from(MAX_BLOCK_BYTES).unwrap_or(i32::MAX);
        let BlockName { segment, name } = name;
        let rows = self.queries.query(sql, &[segment, name, &parts, &max_bytes])?;
        if rows.len() != parts.len() {
            return Err(unreadable(name));
        }
        for row in rows {
            let data = row.try_get::<_, Option<&[u8]>>(1).ok().flatten();
            let bytes = data.and_then(unsealed).ok_or_else(|| unreadable(name))?;
            each(row.try_get(0).unwrap_or_default(), bytes)?;
        }
        Ok(())
    }
}
