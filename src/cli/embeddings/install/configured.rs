//! The configuration file that gets the model.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::app::failure::Failure;
use crate::cli::source::FileArgs;
use crate::config::{ConfigError, FileSettings, check_text, default_file, read_text, with_local_model};

/// A configuration file with its settings, before or after the model is written.
#[derive(Debug)]
pub(in crate::cli) struct ModelConfig {
    file: FileArgs,
    path: PathBuf,
    /// Text on the disk.
    before: String,
    text: String,
    settings: FileSettings,
}

impl ModelConfig {
    /// Reads the file, which may not exist yet.
    ///
    /// # Errors
    ///
    /// The file cannot be read or edited, or it has an embedding service that is not to be replaced.
    pub(in crate::cli) fn read(file: FileArgs, may_replace: bool) -> Result<Self, Failure> {
        let path = file.path_to_edit()?;
        let is_missing = std::fs::metadata(&path).is_err_and(|error| error.kind() == ErrorKind::NotFound);
        let text = if is_missing { String::new() } else { read_text(&path)? };
        let settings = check_text(&text, &path)?;
        let is_service = settings.embedding.as_ref().is_some_and(|known| !known.settings.is_folder());
        if is_service && !may_replace {
            return Err(Failure::usage(&format_args!(
                "{} has an embedding service as [embedding]; add --replace to use the model in its place",
                path.display()
            )));
        }
        Ok(Self { file, path, before: text.clone(), text, settings })
    }

    /// Returns the file with the model in a folder. Nothing is written yet.
    pub(super) fn with_model(self, folder: &Path) -> Result<Self, Failure> {
        let folder = std::path::absolute(folder).unwrap_or_else(|_error| folder.to_owned());
        let Some(folder) = folder.to_str() else {
            let problem = format!("{} is not UTF-8, and a configuration file is", folder.display());
            return Err(Failure::new(problem));
        };
        let edited = with_local_model(&self.text, folder);
        let text = edited.map_err(|problem| ConfigError::invalid(self.path.clone(), problem))?;
        let settings = check_text(&text, &self.path)?;
        Ok(Self { text, settings, ..self })
    }

    /// Writes the file if it differs.
    pub(super) fn save(&self) -> Result<(), Failure> {
        if self.is_changed() { self.file.save(&self.path, &self.before, &self.text) } else { Ok(()) }
    }

    pub(in crate::cli) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn settings(&self) -> &FileSettings {
        &self.settings
    }

    /// Returns true if the model was not in the file.
    pub(super) fn is_changed(&self) -> bool {
        self.before != self.text
    }

    /// Returns true if commands use the file: the user named it, or it is the user's own or trusted.
    pub(super) fn is_trusted(&self) -> bool {
        let found = default_file().filter(|_| self.file.config.is_none());
        found.is_none_or(|found| found.check_trust(&self.text).is_ok())
    }
}
