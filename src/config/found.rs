//! The configuration file that is used when none is named.
//!
//! A `fetchwell.toml` of the current folder comes first, then the user's own. The first can come from anywhere: clients start
//! programs in folders that were cloned. So it may only have the keys of `trust::allow_list`, unless it is named or the user
//! trusts its content (`fetchwell config trust`). The user's own file is trusted.

use std::path::{Path, PathBuf};

use directories::ProjectDirs;

use super::error::ConfigError;
use super::trust::{TrustedFiles, restricted_keys};

/// The file of the current folder.
const HERE: &str = "fetchwell.toml";

/// A configuration file that was found and not named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FoundFile {
    /// In the current folder, or one that is treated as if it were.
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

    /// Checks that the file may have the keys that this text of it has.
    ///
    /// # Errors
    ///
    /// It has keys that need trust, and the user does not trust it with this content.
    pub fn check_trust(&self, text: &str) -> Result<(), ConfigError> {
        let Self::Here(path) = self else { return Ok(()) };
        let mut restricted = restricted_keys(text, path)?.into_iter();
        let Some(first) = restricted.next() else { return Ok(()) };
        if TrustedFiles::of_user()?.is_trusted(path, text)? {
            return Ok(());
        }
        Err(ConfigError::Untrusted { path: path.clone(), first, others: restricted.collect() })
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
