//! Files and folders with records.

use std::path::PathBuf;

use crate::connectors::ImportKind;

/// Kind of records for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cli::setup) enum Group {
    Mail,
    Notes,
    Export,
}

impl Group {
    pub(in crate::cli::setup) fn as_str(self) -> &'static str {
        match self {
            Self::Mail => "mail",
            Self::Notes => "notes",
            Self::Export => "export",
        }
    }
}

/// A file or folder with records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::cli::setup) struct Origin {
    pub(in crate::cli::setup) group: Group,
    /// Program or format of the records, such as `Thunderbird`.
    pub(in crate::cli::setup) program: &'static str,
    /// Path without links.
    pub(in crate::cli::setup) path: PathBuf,
    /// Kind of the import, or `None` to guess it.
    pub(in crate::cli::setup) kind: Option<ImportKind>,
    /// Name for the connection, if the name of the file says little.
    pub(in crate::cli::setup) name: Option<&'static str>,
}

impl Origin {
    pub(super) fn new(group: Group, program: &'static str, path: PathBuf) -> Self {
        Self { group, program, path, kind: None, name: None }
    }

    /// Sets the kind of the import, a name of `fetchwell import`.
    pub(super) fn with_kind(self, kind: &str) -> Self {
        Self { kind: kind.parse().ok(), ..self }
    }
}
