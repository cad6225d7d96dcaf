//! A configuration file to which sources are added. Its text is validated after each change.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::{NewSource, with_source};
use crate::config::error::ConfigError;
use crate::config::file::check_text;
use crate::config::settings::FileSettings;
use crate::config::text::read_text;

/// Text of a configuration file with its settings. Nothing is written.
#[derive(Debug, Clone)]
pub struct EditedFile {
    path: PathBuf,
    text: String,
    settings: FileSettings,
}

impl EditedFile {
    /// Reads a file. One that does not exist is empty.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or is not valid.
    pub fn read(path: PathBuf) -> Result<Self, ConfigError> {
        let is_missing = || std::fs::metadata(&path).is_err_and(|error| error.kind() == ErrorKind::NotFound);
        let text = match read_text(&path) {
            Err(_) if is_missing() => String::new(),
            text => text?,
        };
        Self::new(path, text)
    }

    /// Returns the file with a source appended.
    ///
    /// # Errors
    ///
    /// The source is not valid, or the file lists its sources inline.
    pub fn with_source(&self, source: &NewSource) -> Result<Self, ConfigError> {
        let edited = with_source(&self.text, source);
        let text = edited.map_err(|problem| ConfigError::invalid(self.path.clone(), problem))?;
        Self::new(self.path.clone(), text)
    }

    fn new(path: PathBuf, text: String) -> Result<Self, ConfigError> {
        let settings = check_text(&text, &path)?;
        Ok(Self { path, text, settings })
    }

    /// Returns the path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the text with all changes.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the settings of the text.
    #[must_use]
    pub fn settings(&self) -> &FileSettings {
        &self.settings
    }
}
