//! The SQLite file that stores calls. Several processes of a state directory write to it.

use std::path::Path;

use fetchwell_state::{FileKind, StateFile};

/// The file's header contains `fwte`. The maximum is three times the size of [`MAX_ROWS`].
const KIND: FileKind = FileKind {
    name: "telemetry.db",
    what: "store of calls",
    holds: "statistics",
    application_id: 0x6677_7465,
    format: 3,
    schema: include_str!("schema.sql"),
    upgrades: &[
        (1, "ALTER TABLE telemetry ADD COLUMN caller TEXT CHECK (length(caller) = 8)"),
        // Format 2 did not count lists, so the count starts with the paginated ones.
        (
            2,
            "ALTER TABLE totals ADD COLUMN lists INTEGER NOT NULL DEFAULT 0; UPDATE totals SET lists = paginated",
        ),
    ],
    max_bytes: 128 * 1024 * 1024,
    page_bytes: 4_096,
    is_disposable: false,
    overwrites: false,
};

/// Maximum number of rows. The oldest are deleted.
const MAX_ROWS: i64 = 100_000;

/// The telemetry file of a state directory.
#[derive(Debug)]
pub(crate) struct Database {
    pub(crate) file: StateFile,
    /// Maximum number of rows.
    pub(crate) max_rows: i64,
}

impl Database {
    pub(crate) fn in_directory(directory: &Path) -> Self {
        Self { file: StateFile::in_directory(KIND, directory), max_rows: MAX_ROWS }
    }
}
