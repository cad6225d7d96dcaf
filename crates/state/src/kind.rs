//! The kinds of state files.

/// The properties of one kind of state file.
#[derive(Debug, Clone, Copy)]
pub struct FileKind {
    /// File name in the state directory.
    pub name: &'static str,
    /// Description for errors, such as `cursor store`.
    pub what: &'static str,
    /// Data that is lost with the file, in the plural, for errors.
    pub holds: &'static str,
    /// SQLite application id in the header, which distinguishes the file from databases of other programs.
    pub application_id: i64,
    /// Format version that this program reads and writes.
    pub format: i64,
    /// SQL that creates the tables.
    pub schema: &'static str,
    /// Earlier format versions that can be upgraded, each with the SQL that upgrades it to the next version.
    pub upgrades: &'static [(i64, &'static str)],
    /// Maximum size of the file in bytes.
    pub max_bytes: i64,
    /// Size of the pages of a new file in bytes. Large pages need fewer system calls for large rows.
    pub page_bytes: i64,
    /// True if the content may be lost: the file is written without syncs, and one that a power failure damaged is deleted
    /// and created again.
    pub is_disposable: bool,
    /// True if deleted content is overwritten with zeros (SQLite's `secure_delete`).
    pub overwrites: bool,
}
