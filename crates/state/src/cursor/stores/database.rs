//! The SQLite file of stored positions, and its connections.
//!
//! Positions contain queries of users, so deleted ones are overwritten.

use std::path::Path;

use parking_lot::Mutex;
use rusqlite::Connection;

use crate::{FileIdentity, FileKind, StateError, StateFile};

/// `fwcu` is in the file's header. The size is 256 MiB of positions, and the overhead of the file.
const KIND: FileKind = FileKind {
    name: "cursors.db",
    what: "cursor store",
    holds: "cursors",
    application_id: 0x6677_6375,
    format: 3,
    schema: include_str!("schema.sql"),
    // Cursors of earlier releases are valid for an hour at most.
    upgrades: &[
        (
            1,
            "ALTER TABLE positions ADD COLUMN expires_ms INTEGER;
             CREATE INDEX positions_by_expiry ON positions (coalesce(expires_ms, issued_ms + 3600000));",
        ),
        // The index of format 2 had the length of each position, which was read as a whole for it.
        (2, "DROP INDEX positions_by_issue; CREATE INDEX positions_by_issue ON positions (issued_ms);"),
    ],
    max_bytes: 312 * 1024 * 1024,
    // A position of a search over many hits has 0.1 MB.
    page_bytes: 16_384,
    is_disposable: true,
    overwrites: true,
};

/// Maximum number of idle connections.
const MAX_IDLE: usize = 4;

/// Database file of a state directory.
#[derive(Debug)]
pub struct Database {
    pub(super) file: StateFile,
    idle: Mutex<IdleConnections>,
}

/// Connections that are idle, all of one file.
#[derive(Debug, Default)]
struct IdleConnections {
    file: Option<FileIdentity>,
    connections: Vec<Connection>,
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

    /// Creates the directory and the file if they are missing, and verifies that the file is of this program. A damaged file
    /// is replaced.
    ///
    /// # Errors
    ///
    /// The directory or the file cannot be made, read or written, or is another program's or another version's.
    pub fn prepare(&self) -> Result<(), StateError> {
        self.replacing_damaged(|| {
            let connection = self.file.prepare()?;
            self.give_back(self.file.identity(), connection);
            Ok(())
        })
    }

    /// Runs an operation on a connection, again if the file was damaged. A file that was deleted is created again; its
    /// cursors have expired with it.
    ///
    /// # Errors
    ///
    /// As [`Database::prepare`], and whatever the call runs into.
    pub(super) fn with<Answer>(
        &self,
        call: impl Fn(&mut Connection) -> Result<Answer, rusqlite::Error>,
    ) -> Result<Answer, StateError> {
        self.replacing_damaged(|| {
            // Before the connection is opened: if the file is replaced in between, the connection is not used again.
            let file = self.file.identity();
            let mut connection = match file.and_then(|file| self.take_idle(file)) {
                Some(connection) => connection,
                None if file.is_some() => self.file.connect()?,
                None => self.file.prepare()?,
            };
            let answer = call(&mut connection).map_err(|error| self.file.error(&error))?;
            self.give_back(file, connection);
            Ok(answer)
        })
    }

    fn replacing_damaged<Answer>(
        &self,
        attempt: impl Fn() -> Result<Answer, StateError>,
    ) -> Result<Answer, StateError> {
        match attempt() {
            Err(error) if self.file.delete_damaged(&error)? => attempt(),
            answer => answer,
        }
    }

    fn take_idle(&self, file: FileIdentity) -> Option<Connection> {
        let mut idle = self.idle.lock();
        if idle.file != Some(file) {
            *idle = IdleConnections { file: Some(file), connections: Vec::new() };
        }
        idle.connections.pop()
    }

    /// Keeps a connection to a file, unless it was replaced or did not exist before.
    fn give_back(&self, file: Option<FileIdentity>, connection: Connection) {
        let mut idle = self.idle.lock();
        let Some(file) = file else { return };
        let is_current = *idle.file.get_or_insert(file) == file;
        if is_current && idle.connections.len() < MAX_IDLE {
            idle.connections.push(connection);
        }
    }
}
