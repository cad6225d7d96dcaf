//! The files that an import reads.

use std::path::PathBuf;

use super::super::item::FileKind;

/// The files to import.
#[derive(Debug, Clone, Default)]
pub struct FileSelection {
    /// Kinds of files that are read. If empty, all kinds are read.
    pub kinds: Vec<FileKind>,
    /// Stream of the records; `None` is the stream of each kind.
    pub stream: Option<String>,
    /// Program that reads PDF documents in a process of its own. Without it, this process reads them.
    pub program: Option<PathBuf>,
}

impl FileSelection {
    /// Returns true if files of a kind are read.
    pub(super) fn has(&self, kind: FileKind) -> bool {
        self.kinds.is_empty() || self.kinds.contains(&kind)
    }

    /// Returns true if entries of archives of a kind are read. If only archives are selected, these are all kinds.
    pub(super) fn has_entry(&self, kind: FileKind) -> bool {
        self.has(kind) || kind.is_archive() || self.kinds.iter().all(|kind| kind.is_archive())
    }

    /// Returns a phrase for the error of a folder without such a file.
    pub(super) fn description(&self) -> String {
        match self.kinds.first() {
            Some(kind) => kind.description(),
            None => "file of a known kind".to_owned(),
        }
    }
}
