//! The SQLite file that keeps positions, and the connections to it.
//!
//! It holds what users asked for, so what is deleted is overwritten.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use rusqlite::Connection;

use crate::state::{FileKind, StateError, StateFile};

/// `fwcu` is in its header. 256 MiB of positions in pages of 4,096 bytes, and what the file takes beside them.
const KIND: FileKind = FileKind {
    name: "cursors.db",
    what: "cursor store",
    holds: "cursors",
    application_id: 0x6677_6375,
    format: 2,
    schema: include_str!("schema.sql"),
    // Cursors of earlier versions are valid for an hour at most.
    upgrades: &[(
        1,
        "ALTER TABLE positions ADD COLUMN expires_ms INTEGER;
         CREATE INDEX positions_by_expiry ON positions (coalesce(expires_ms, issued_ms + 3600000));",
    )],
    pages_most: 80_000,
    overwrites: true,
};

/// Idle connections kept for the next call.
const IDLE: usize = 4;

/// The file of a state directory.
#[derive(Debug)]
pub struct Database {
    pub(super) file: StateFile,
    /// Holds only connections that no call is using.
    idle: Mutex<Vec<Connection>>,
}

impl Database {
    /// That of a state directory, whether it is there or not.
    #[must_use]
    pub fn in_directory(directory: &Path) -> Self {
        Self { file: StateFile::in_directory(KIND, directory), idle: Mutex::default() }
    }

    /// Whether there is a file.
    #[must_use]
    pub fn is_there(&self) -> bool {
        self.file.is_there()
    }

    /// Makes the directory and the file where they are not there, and proves that the file is of this program.
    ///
    /// # Errors
    ///
    /// The directory or the file cannot be made, read or written, or is another program's or another version's.
    pub fn prepare(&self) -> Result<(), StateError> {
        let connection = self.file.prepare()?;
        self.give_back(connection);
        Ok(())
    }

    /// Lends a connection. When the file was deleted it is made again: what it held has expired with it.
    ///
    /// # Errors
    ///
    /// As [`Database::prepare`], and whatever the call runs into.
    pub(super) fn with<Answer>(
        &self,
        call: impl FnOnce(&mut Connection) -> Result<Answer, rusqlite::Error>,
    ) -> Result<Answer, StateError> {
        if !self.is_there() {
            self.idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
            self.prepare()?;
        }
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut connection = match idle {
            Some(connection) => connection,
            None => self.file.connect()?,
        };
        let answer = call(&mut connection).map_err(|error| self.file.error(&error))?;
        self.give_back(connection);
        Ok(answer)
    }

    fn give_back(&self, connection: Connection) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < IDLE {
            idle.push(connection);
        }
    }
}
