//! Files and folders with records.

use std::path::PathBuf;

use fetchwell_connectors::ImportKind;

/// Kind of records for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Group {
    Mail,
    Notes,
    Export,
    /// A folder of files of all kinds, which is imported only if the user chooses it.
    Folder,
}

impl Group {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Mail => "mail",
            Self::Notes => "notes",
            Self::Export => "export",
            Self::Folder => "folder",
        }
    }
}

/// A file or folder with records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Origin {
    pub(crate) group: Group,
    /// Program or format of the records, such as `Thunderbird`.
    pub(crate) program: &'static str,
    /// Path without links.
    pub(crate) path: PathBuf,
    /// Kind of the import, or `None` to guess it.
    pub(crate) kind: Option<ImportKind>,
    /// Name for the connection, if the name of the file says little.
    pub(crate) name: Option<&'static str>,
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
