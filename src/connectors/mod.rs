//! Connectors: files of people's own, read into the embedded store.
//!
//! Each importer turns one kind of file into records and hands them to an [`Intake`], which checks that
//! each can be addressed by a handle, writes it, and reports what it refused with its place and the
//! reason. A refused line never stops an import.

mod csv;
mod depth;
mod field_names;
pub mod hostaway;
mod input;
mod intake;
mod json;
mod key;
mod lines;
mod mail;
mod mail_limits;
mod markdown;
mod mbox;
mod meter;
mod records;
mod sample;
mod text_input;
mod values;

use std::path::PathBuf;

pub use csv::import_csv;
pub use field_names::FieldNames;
pub use input::Input;
pub use intake::{Intake, Report};
pub use json::import_json;
pub use markdown::import_markdown;
pub use mbox::import_mbox;
pub use records::import_records;
pub use sample::{SampleAccount, import_account};

use crate::source::store::StoreError;

/// Why an import ended before its end. What was written until then stays, and running it again goes on.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The store cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The file cannot be read.
    #[error("{} cannot be read ({problem}); check the path and its permissions", .path.display())]
    Unreadable {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        problem: String,
    },
    /// The file is not of the kind the command reads.
    #[error("{} is not {expected}: {problem}", .path.display())]
    WrongKind {
        /// The file.
        path: PathBuf,
        /// What the command reads.
        expected: &'static str,
        /// Where it differs.
        problem: String,
    },
    /// There is nothing to import.
    #[error("there is nothing to import in {}: it has no {expected}; {found}", .path.display())]
    Nothing {
        /// The folder.
        path: PathBuf,
        /// What the command imports.
        expected: &'static str,
        /// What the folder has.
        found: String,
    },
    /// The folder of the store is not there and cannot be made.
    #[error("{} cannot be made ({problem})", .path.display())]
    NoFolder {
        /// The folder.
        path: PathBuf,
        /// What the system said.
        problem: String,
    },
    /// Sample data of ours is not what it has to be.
    #[error("the sample data is broken ({problem}); that is a defect of fetchwell")]
    BrokenSample {
        /// What is wrong.
        problem: String,
    },
    /// The user stopped it.
    #[error("stopped; the records imported so far are kept. Run the same command again to import the rest")]
    Stopped,
}
