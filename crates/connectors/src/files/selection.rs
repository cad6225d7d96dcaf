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
    pub(crate) fn has(&self, kind: FileKind) -> bool {
        self.kinds.is_empty() || self.kinds.contains(&kind)
    }

    /// Returns true if entries of archives of a kind are read. If only archives are selected, these are all kinds.
    pub(super) fn has_entry(&self, kind: FileKind) -> bool {
        self.has(kind) || kind.is_archive() || self.kinds.iter().all(|kind| kind.is_archive())
    }

    /// Returns a phrase for the error of a folder without such a file.
    pub(crate) fn description(&self) -> String {
        let all: Vec<FileKind> = FileKind::all().collect();
        let kinds = if self.kinds.is_empty() { &all } else { &self.kinds };
        // Archives are read for the files in them.
        let mut read = kinds.iter().filter(|kind| !kind.is_archive());
        match (kinds.first(), read.next(), read.next()) {
            (_, Some(kind), None) | (Some(kind), None, _) => kind.description(),
            _ => {
                let names: Vec<&str> = kinds.iter().map(|kind| kind.as_str()).collect();
                format!("file of a kind that is read ({})", names.join(", "))
            }
        }
    }
}
