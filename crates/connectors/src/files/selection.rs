//! The files that an import reads.

use std::path::PathBuf;
use std::sync::Arc;

use super::super::item::FileKind;
use super::super::recognition::Recognizer;

/// The files to import.
#[derive(Debug, Clone, Default)]
pub struct FileSelection {
    /// Kinds of files that are read. If empty, all kinds are read.
    pub kinds: Vec<FileKind>,
    /// Stream of the records; `None` is the stream of each kind.
    pub stream: Option<String>,
    /// Program that reads PDF documents in a process of its own. Without it, this process reads them.
    pub program: Option<PathBuf>,
    /// Text recognition of pictures and scanned pages. Without it, pictures are files of no kind that is read.
    pub ocr: Option<Arc<Recognizer>>,
}

impl FileSelection {
    /// Selects files of these kinds, or of all kinds if there is none, for a stream or those of the kinds.
    #[must_use]
    pub fn new(kinds: &[FileKind], stream: Option<String>) -> Self {
        Self { kinds: kinds.to_vec(), stream, ..Self::default() }
    }

    /// Returns true if files of a kind are read.
    pub(crate) fn has(&self, kind: FileKind) -> bool {
        let is_selected = self.kinds.is_empty() || self.kinds.contains(&kind);
        is_selected && (kind != FileKind::Image || self.ocr.is_some())
    }

    /// Returns true if entries of archives of a kind are read. If only archives are selected, these are all kinds.
    pub(super) fn has_entry(&self, kind: FileKind) -> bool {
        let is_any = kind != FileKind::Image || self.ocr.is_some();
        self.has(kind) || kind.is_archive() || is_any && self.kinds.iter().all(|kind| kind.is_archive())
    }

    /// Returns true if a program or a language was missing, so that another import may recognize what this one does not.
    pub(crate) fn lacks_ocr(&self) -> bool {
        self.ocr.as_ref().is_some_and(|ocr| ocr.is_unavailable())
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
