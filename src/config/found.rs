//! The configuration file that is used when none is named.
//!
//! A `fetchwell.toml` of the current folder comes first, then the user's own. Whoever wrote the folder wrote the
//! first: clients start programs in folders that were cloned from anywhere. So it may name stores and servers, and
//! not commands to run, variables and files to send somewhere, or pages elsewhere that may ask; for that it has to be
//! named.

use std::path::{Path, PathBuf};

use directories::ProjectDirs;

use super::{CredentialSettings, FileSettings, SourcePlace, SourceSettings};

/// The file of the current folder.
const HERE: &str = "fetchwell.toml";

/// A configuration file that was found and not named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FoundFile {
    /// In the current folder.
    Here(PathBuf),
    /// In the user's configuration folder.
    OfUser(PathBuf),
}

impl FoundFile {
    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        let (Self::Here(path) | Self::OfUser(path)) = self;
        path
    }

    /// A key that the file may not have unless it is named: it would let others in than this machine.
    #[must_use]
    pub fn opening(&self, settings: &FileSettings) -> Option<&'static str> {
        match self {
            Self::Here(_) => settings.http.opening().or_else(|| settings.auth.is_some().then_some("auth")),
            Self::OfUser(_) => None,
        }
    }

    /// A source that the file may not have unless it is named, by what it says.
    #[must_use]
    pub fn overreaching<'a>(&self, settings: &'a FileSettings) -> Option<&'a SourceSettings> {
        let overreaches = |source: &&SourceSettings| match &source.place {
            SourcePlace::Store { .. } => false,
            SourcePlace::Provider { credential, .. } => {
                !matches!(credential, CredentialSettings::PdppCache(_))
            }
        };
        match self {
            Self::Here(_) => settings.sources.iter().find(overreaches),
            Self::OfUser(_) => None,
        }
    }
}

/// The file to use when none is named, if there is one.
#[must_use]
pub fn default_file() -> Option<FoundFile> {
    let here = PathBuf::from(HERE);
    if here.is_file() {
        return Some(FoundFile::Here(here));
    }
    users_file().filter(|path| path.is_file()).map(FoundFile::OfUser)
}

/// The file to edit when none is named. It may not be there yet.
#[must_use]
pub fn file_to_edit() -> PathBuf {
    let found = default_file().map(|found| found.path().to_owned());
    found.or_else(users_file).unwrap_or_else(|| HERE.into())
}

fn users_file() -> Option<PathBuf> {
    Some(ProjectDirs::from("", "", "fetchwell")?.config_dir().join("config.toml"))
}
