//! Connectors: importers of users' files into a store.
//!
//! Each importer parses one kind of file into records and passes them to an `Intake`, which checks that each record
//! can be addressed by a handle, writes it, and reports rejected input with its position and the reason. A rejected
//! line never stops an import.
//!
//! * `records`, `json`, `json_line`, `json_target`: the importers of record envelopes and JSON, `tables`: of CSV files
//! * `files`: the importer of folders and archives, `item`: a file in them, `archive`: ZIP, tar and gzip files
//! * `documents`, `office`, `pdf`: documents and spreadsheets, `recognition`: text in pictures and on scanned pages
//! * `calendar`, `feed`, `exports`, `sqlite`, `git`: calendars and contacts, feeds, exports, databases, repositories
//! * `mail`: e-mails as records, and mailboxes, `attached`: readers of their attachments
//! * `values`, `field_names`, `key`: typed values, the fields with a role, canonical keys
//! * `input`, `text_input`, `lines`, `meter`, `depth`: reading files with bounds, `measured`: checks of their time in tests
//! * `intake`: the checks and writes of every importer
//! * `skips`: what an import does not take, by reason
//! * `sync`: imports that follow their origin
//!
//! Uses `core` and `source`.

mod archive;
mod attached;
mod calendar;
mod depth;
mod documents;
mod exports;
mod feed;
mod field_names;
mod files;
mod git;
mod input;
pub mod intake;
mod item;
mod json;
mod json_line;
mod json_target;
mod key;
mod lines;
mod mail;
#[cfg(test)]
mod measured;
mod meter;
mod office;
mod pdf;
mod recognition;
mod records;
mod skips;
mod sqlite;
mod sync;
mod tables;
mod text_input;
mod values;

use std::path::PathBuf;

use fetchwell_source::contract::StoreError;

pub use archive::unzip_input;
pub use depth::PARSER_STACK_BYTES;
pub use field_names::FieldNames;
pub use files::{
    CategoryFrom, FileSelection, InvalidCategoryFrom, import_content, import_files, import_mbox,
    is_generated, is_hidden, special_file,
};
pub use git::{import_git, import_git_log};
pub use input::Input;
pub use intake::{Intake, NoProgress, Progress, Report, UnreadAttachment};
pub use item::FileKind;
pub use json::import_json;
pub use pdf::{extract_pdf, limit_pdf_memory};
pub use recognition::{
    InvalidOcrLanguage, OcrError, OcrLanguages, Recognizer, picture_pages, recognized_words,
};
pub use records::import_records;
pub use skips::{Problem, SkipCounts, SkipReason};
pub use sync::{
    DryRun, DryRunOutcome, Guess, ImportKind, ImportOptions, StoreFiles, SyncOutcome, Synchronization,
    UnknownKind, connection_name, describe_held_records, file_kinds, guess_kind, watched_folder,
    without_links,
};
pub use tables::import_csv;

/// An error that ends an import early. Records written before it stay, and running the import again continues it.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// An error of the store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The file cannot be read.
    #[error("{} cannot be read ({problem}); check the path and its permissions", .path.display())]
    Unreadable {
        /// Path of the file or folder.
        path: PathBuf,
        /// Error message of the system.
        problem: String,
    },
    /// The path is that of a folder, a pipe or another thing that is not imported.
    #[error("{} {problem}", .path.display())]
    Unsuitable {
        /// Path of the file or folder.
        path: PathBuf,
        /// End of the message, with the remedy.
        problem: &'static str,
    },
    /// The kind of the file is not recognized.
    #[error("the kind of {} is not known; if it is text, add `--kind text`, otherwise another kind of import", .0.display())]
    UnknownKind(PathBuf),
    /// The file is of another kind than the command imports.
    #[error("{} is not {expected}: {problem}", .path.display())]
    WrongKind {
        /// Path of the file.
        path: PathBuf,
        /// Kind of file that the command imports.
        expected: &'static str,
        /// Position and kind of the difference.
        problem: String,
    },
    /// The table has no column of a given name.
    #[error("{} has no column `{column}`; its columns are {columns}", .path.display())]
    NoColumn {
        /// Path of the file.
        path: PathBuf,
        /// Name that was given.
        column: String,
        /// Names of the columns, separated by commas.
        columns: String,
    },
    /// The bounds of the attachments of a message are reached, as the problems of the message say.
    #[error("the bounds of the attachments of a message are reached")]
    AttachmentBounds,
    /// The folder has no file to import.
    #[error("there is nothing to import in {}: it has no {expected}; {found}", .path.display())]
    Nothing {
        /// Path of the folder.
        path: PathBuf,
        /// Kind of file that the command imports.
        expected: String,
        /// Description of the folder's content.
        found: String,
    },
    /// The folder of the store does not exist and cannot be created.
    #[error("{} cannot be made ({problem})", .path.display())]
    NoFolder {
        /// Path of the folder.
        path: PathBuf,
        /// Error message of the system.
        problem: String,
    },
    /// The bundled sample data is invalid, which is a bug.
    #[error("the sample data is broken ({problem}); that is an internal error of fetchwell")]
    BrokenSample {
        /// Description of the error.
        problem: String,
    },
    /// Another process synchronizes the import.
    #[error("`{0}` is being synchronized by another process; wait for it to end")]
    Synchronizing(String),
    /// The connection has the records of another file or folder.
    #[error("the connection `{connection}` has the records of {}; name another connection", .origin.display())]
    OtherOrigin {
        /// Id of the connection.
        connection: String,
        /// Path of the other file or folder.
        origin: PathBuf,
    },
    /// An option does not apply to the kind of the import.
    #[error("{option} does not apply to imports of kind {kind}")]
    UnusedOption {
        /// Name of the option.
        option: &'static str,
        /// Kind of the import.
        kind: ImportKind,
    },
    /// An importer panicked, which is a bug.
    #[error("an internal error stopped the import; please report it")]
    Panicked,
    /// The program `git` is not installed.
    #[error("git is not installed, or not in PATH; install it to import a repository")]
    NoGit,
    /// The user stopped the import.
    #[error("stopped; the records imported so far are kept. Run the same command again to import the rest")]
    Stopped,
}

impl ImportError {
    /// Returns the code for `/health`.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Store(_) => "store_unusable",
            Self::Unreadable { .. } | Self::Nothing { .. } => "origin_unreadable",
            Self::Unsuitable { .. } => "origin_unsuitable",
            Self::UnknownKind(_) => "unknown_kind",
            Self::WrongKind { .. } => "wrong_kind",
            Self::NoColumn { .. } => "no_column",
            Self::NoFolder { .. } => "no_folder",
            Self::Synchronizing(_) => "synchronizing",
            Self::OtherOrigin { .. } => "other_origin",
            Self::UnusedOption { .. } => "unused_option",
            Self::BrokenSample { .. } | Self::Panicked | Self::AttachmentBounds => "internal_error",
            Self::NoGit => "no_git",
            Self::Stopped => "stopped",
        }
    }
}
