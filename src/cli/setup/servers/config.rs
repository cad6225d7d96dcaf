//! The user's configuration file, to which sources are added.

use std::path::Path;

use crate::app::default_store::is_store_at;
use crate::app::failure::Failure;
use crate::cli::client_config::absolute;
use crate::config::{ConfigError, EditedFile, NewSource, SourcePlace, SourceSettings, save, users_file};

/// Name of the source of the store.
const STORE_NAME: &str = "local";

/// The user's own configuration file with its settings. It may not exist yet.
#[derive(Debug, Clone)]
pub(crate) struct UserConfig(EditedFile);

impl UserConfig {
    /// Reads the file.
    ///
    /// # Errors
    ///
    /// The file cannot be read or is not valid, or the configuration folder is unknown.
    pub(crate) fn read() -> Result<Self, Failure> {
        let path = users_file();
        let path = path.ok_or_else(|| Failure::new("your configuration folder is unknown; set HOME"))?;
        Ok(Self(EditedFile::read(path)?))
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn sources(&self) -> &[SourceSettings] {
        &self.0.settings().sources
    }

    /// Returns the settings that a source would have in the file.
    ///
    /// # Errors
    ///
    /// The source is not valid.
    pub(crate) fn settings_of(&self, source: &NewSource) -> Result<SourceSettings, ConfigError> {
        let edited = self.0.with_source(source)?;
        let missing = || ConfigError::invalid(self.path().to_owned(), "the source is missing".to_owned());
        edited.settings().sources.last().cloned().ok_or_else(missing)
    }

    /// Returns the file with further sources, and with the store, which is not read beside others unless it is one of them.
    ///
    /// # Errors
    ///
    /// A source is not valid, or the file lists its sources inline.
    pub(crate) fn with_sources(&self, sources: &[NewSource], store: &Path) -> Result<Self, Failure> {
        let mut edited = self.clone();
        if store.exists() && !self.has_store(store) {
            let name = edited.free_name();
            let store = Some(absolute(store)?);
            edited = edited.with_source(&NewSource { name, store, ..NewSource::default() })?;
        }
        sources.iter().try_fold(edited, |edited, source| edited.with_source(source))
    }

    fn with_source(&self, source: &NewSource) -> Result<Self, Failure> {
        Ok(Self(self.0.with_source(source)?))
    }

    /// Writes the file.
    pub(crate) fn save(&self) -> Result<(), Failure> {
        Ok(save(self.path(), self.0.text())?)
    }

    /// Returns true if a server of this file reads MCP servers or searches by meaning, and reads the store if there is one.
    pub(crate) fn is_complete(&self, store: &Path) -> bool {
        let has_server = self.sources().iter().any(|source| matches!(source.place, SourcePlace::Mcp(_)));
        (has_server && !store.exists()) || ((has_server || self.has_model()) && self.has_store(store))
    }

    /// Returns true if the file has an embedding model.
    pub(crate) fn has_model(&self) -> bool {
        self.0.settings().embedding.is_some()
    }

    /// Returns true if the store is one of the sources.
    pub(crate) fn has_store(&self, store: &Path) -> bool {
        self.sources().iter().any(|source| is_store_at(source, store))
    }

    /// Returns true if the file has an embedding model and no source, so that its commands read the default store.
    pub(crate) fn has_only_model(&self) -> bool {
        self.has_model() && self.sources().is_empty()
    }

    fn free_name(&self) -> String {
        let is_free = |name: &String| self.sources().iter().all(|source| source.name.as_str() != name);
        let numbered = (2..).map(|number| format!("{STORE_NAME}-{number}"));
        std::iter::once(STORE_NAME.to_owned()).chain(numbered).find(is_free).unwrap_or_default()
    }
}
