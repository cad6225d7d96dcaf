//! The SQLite file of stored positions, and its connections.
//!
//! Positions contain queries of users, so deleted ones are overwritten.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use rusqlite::Connection;

use crate::state::{FileKind, StateError, StateFile};

/// `fwcu` is in the file's header. The size is 256 MiB of positions in pages of 4,096 bytes, and the overhead of the
/// file.
const KIND: FileKind = FileKind {
    name: "cursors.db",
    what: "cursor store",
    holds: "cursors",
    application_id: 0x6677_6375,
    format: 2,
    schema: include_str!("schema.sql"),
    // Cursors of earlier releases are valid for an hour at most.
    upgrades: &[(
        1,
        "ALTER TABLE positions ADD COLUMN expires_ms INTEGER;
         CREATE INDEX positions_by_expiry ON positions (coalesce(expires_ms, issued_ms + 3600000));",
    )],
    max_pages: 80_000,
    overwrites: true,
};

/// Maximum number of idle connections.
const IDLE: usize = 4;

/// Database file of a state directory.
#[derive(Debug)]
pub struct Database {
    pub(super) file: StateFile,
    /// Connections that are idle.
    idle: Mutex<Vec<Connection>>,
}

impl Database {
    /// Returns the database of a state directory, whether the file exists or not.
    #[must_use]
    pub fn in_directory(directory: &Path) -> Self {
        Self { file: StateFile::in_directory(KIND, directory), idle: Mutex::default() }
    }

    /// Returns true if the file exists.
    #[must_use]
    pub fn is_there(&self) -> bool {
        self.file.is_there()
    }

    /// Creates the directory and the file if they are missing, and verifies that the file is of this program.
    ///
    /// # Errors
    ///
    /// The directory or the file cannot be made, read or written, or is another program's or another version's.
    pub fn prepare(&self) -> Result<(), StateError> {
        let connection = self.file.prepare()?;
        self.give_back(connection);
        Ok(())
    }

    /// Runs an operation on a connection. A file that was deleted is created again; its cursors have expired with it.
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
