//! The relation of an item to a record.

use rusqlite::types::{ToSql, ToSqlOutput};

/// The relation of an item to a record, as a number in the table `item_records`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::source) enum Role {
    /// The item gave the record when it was read before, and has not given it since.
    Stale,
    /// The item gives the record.
    Gives,
    /// The item has a record with the same key as another item, which is rejected or kept under another key. It has to
    /// be read again when the other one changes.
    Depends,
}

impl Role {
    /// Returns the number of the role. A partial index is used only for a number in the text of a statement.
    pub(in crate::source) fn number(self) -> i64 {
        match self {
            Self::Stale => 0,
            Self::Gives => 1,
            Self::Depends => 2,
        }
    }
}

impl ToSql for Role {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(self.number().into())
    }
}
