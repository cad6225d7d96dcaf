//! The configuration file that is used if none is named.
//!
//! A `fetchwell.toml` in the current folder comes first, then the user's own file. The first can come from anywhere,
//! because clients start programs in folders that were cloned. So it may only have the keys that `keys::table` allows,
//! unless it is named or the user trusts its content (`fetchwell config trust`). The user's own file is always
//! trusted.

use std::path::{Path, PathBuf};

use directories::ProjectDirs;

use super::error::ConfigError;
use super::trust::{TrustedFiles, restricted_keys};

/// Name of the file in the current folder.
const HERE: &str = "fetchwell.toml";

/// A configuration file that was found, not named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FoundFile {
    /// A file in the current folder, or in one that is treated like it.
    Here(PathBuf),
    /// A file in the user's configuration folder.
    OfUser(PathBuf),
}

impl FoundFile {
    /// Returns the path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        let (Self::Here(path) | Self::OfUser(path)) = self;
        path
    }

    /// Checks that the file may have all keys in `text`, its content.
    ///
    /// # Errors
    ///
    /// The file has keys that require trust, and the user does not trust it with this content.
    pub fn check_trust(&self, text: &str) -> Result<(), ConfigError> {
        let Self::Here(path) = self else { return Ok(()) };
        let mut restricted = restricted_keys(text, path)
            .map_err(|mistake| ConfigError::Invalid { path: path.clone(), mistake })?
            .into_iter();
        let Some(first) = restricted.next() else { return Ok(()) };
        if TrustedFiles::of_user()?.is_trusted(path, text)? {
            return Ok(());
        }
        Err(ConfigError::Untrusted { path: path.clone(), first, others: restricted.collect() })
    }
}

/// Returns the file to use if none is named.
#[must_use]
pub fn default_file() -> Option<FoundFile> {
    let here = PathBuf::from(HERE);
    if here.is_file() {
        return Some(FoundFile::Here(here));
    }
    users_file().filter(|path| path.is_file()).map(FoundFile::OfUser)
}

/// Returns the file to edit if none is named. It may not exist yet.
#[must_use]
pub fn file_to_edit() -> PathBuf {
    let found = default_file().map(|found| found.path().to_owned());
    found.or_else(users_file).unwrap_or_else(|| HERE.into())
}

/// Returns the path of the user's own file, which may not exist, or `None` if the system names no folder for it.
#[must_use]
pub fn users_file() -> Option<PathBuf> {
    Some(ProjectDirs::from("", "", "fetchwell")?.config_dir().join("config.toml"))
}
