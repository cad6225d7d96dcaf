//! The reasons for which the file of a client is left as it is.

use std::path::PathBuf;

use crate::config::ConfigError;

/// A file of a client that is not changed. The message ends with what to do, after which a snippet follows.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClientFileError {
    #[error("it cannot be read ({problem})")]
    Unreadable { problem: String },
    #[error("it is not a file")]
    NotAFile,
    #[error("it is a link to {}, which does not exist", .target.display())]
    DanglingLink { target: PathBuf },
    #[error("it is a link to {}, which is outside of your home folder", .target.display())]
    OutsideHome { target: PathBuf },
    #[error("it is read-only")]
    ReadOnly,
    #[error("it has more than {limit} bytes")]
    TooLarge { limit: u64 },
    #[error("it is not UTF-8")]
    NotUtf8,
    #[error("it is not valid {format}: {problem} in line {line}, column {column}")]
    InvalidSyntax { format: &'static str, problem: String, line: usize, column: usize },
    #[error("{place} in it is not {expected}")]
    UnexpectedShape { place: String, expected: &'static str },
    #[error("it has a server `fetchwell` at a URL; remove that entry first")]
    OtherServer,
    #[error("an edit would lose comments or other settings")]
    Lossy,
    #[error("it was changed by another program meanwhile; run `fetchwell setup` again")]
    ChangedMeanwhile,
    #[error("no copy can be made beside it ({problem})")]
    NoBackup { problem: String },
    #[error(transparent)]
    Unwritable(#[from] ConfigError),
}

impl ClientFileError {
    /// Returns the identifier of the error in JSON output.
    pub(crate) fn code(&self) -> &'static str {
        match self {
            Self::Unreadable { .. } => "unreadable",
            Self::NotAFile => "not_a_file",
            Self::DanglingLink { .. } => "dangling_link",
            Self::OutsideHome { .. } => "outside_home",
            Self::ReadOnly => "read_only",
            Self::TooLarge { .. } => "too_large",
            Self::NotUtf8 => "not_utf8",
            Self::InvalidSyntax { .. } => "invalid_syntax",
            Self::UnexpectedShape { .. } => "unexpected_shape",
            Self::OtherServer => "other_server",
            Self::Lossy => "lossy",
            Self::ChangedMeanwhile => "changed_meanwhile",
            Self::NoBackup { .. } => "no_backup",
            Self::Unwritable(_) => "unwritable",
        }
    }
}
