//! The store that a command means: the one that `--store` names, or one of a configuration.

use std::path::{Path, PathBuf};

use clap::Args;
use fetchwell_source::RecordStore;
use fetchwell_source::contract::{BACKUP, PostgresError, StoreError, Unsupported};

use crate::app::failure::Failure;
use crate::app::imports::ImportStore;
use crate::app::open::{NO_STORE, open_store};
use crate::app::settings::SourceArgs;
use crate::config::{
    Environment, FileSettings, FoundFile, SourcePlace, SourceSettings, TrustedFiles, read_text,
};

/// The arguments that name a store. Those of record servers are accepted for scripts that pass them to every command, and
/// hidden, because a store is a file or a database.
#[derive(Debug, Clone, Args)]
#[command(mut_arg("provider_url", |arg| arg.hide(true)), mut_arg("cache_root", |arg| arg.hide(true)))]
pub(crate) struct StoreArgs {
    #[command(flatten)]
    args: SourceArgs,

    /// The name of the store in the configuration, if that has several.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["store", "provider_url"])]
    source: Option<String>,
}

impl StoreArgs {
    /// Returns the settings of the configuration.
    pub(crate) fn settings(&self, environment: &Environment) -> Result<FileSettings, Failure> {
        self.args.settings(environment)
    }

    /// Returns the path of the store. The error for a database has the remedy of the operation.
    pub(super) fn file_for(
        &self,
        environment: &Environment,
        operation: Unsupported,
    ) -> Result<PathBuf, Failure> {
        let place = self.settings_place(environment)?;
        let refused = || StoreError::from(PostgresError::not_supported(operation)).into();
        place.file().map(Path::to_owned).ok_or_else(refused)
    }

    /// Opens the store.
    pub(crate) fn store(&self, environment: &Environment) -> Result<Box<dyn RecordStore>, Failure> {
        open_store(&self.settings_place(environment)?, environment)
    }

    /// Opens the store for a command that writes. Refuses one that only a found and untrusted file names.
    pub(crate) fn store_to_write(&self, environment: &Environment) -> Result<Box<dyn RecordStore>, Failure> {
        self.refuse_found()?;
        self.store(environment)
    }

    /// Returns the place of the store: a file or a database.
    pub(crate) fn place(&self, environment: &Environment) -> Result<ImportStore, Failure> {
        let place = ImportStore::from_source(&self.settings_place(environment)?);
        place.ok_or_else(|| Failure::usage(&NO_STORE))
    }

    /// Returns the place of the only store, or of the one that is named.
    fn settings_place(&self, environment: &Environment) -> Result<SourcePlace, Failure> {
        let settings = self.args.settings(environment)?;
        let stores: Vec<&SourceSettings> =
            settings.sources.iter().filter(|source| source.place.is_store()).collect();
        let is_meant = |name: &str| self.source.as_deref().is_none_or(|meant| meant == name);
        let meant: Vec<_> = stores.iter().filter(|source| is_meant(source.name.as_str())).collect();
        if let [only] = meant.as_slice() {
            return Ok(only.place.clone());
        }
        let names: Vec<String> = stores.iter().map(|source| format!("`{}`", source.name)).collect();
        Err(match (&self.source, names.as_slice()) {
            (_, []) => Failure::usage(&NO_STORE),
            (Some(name), names) => {
                Failure::usage(&format_args!("there is no store `{name}`; there are {}", names.join(", ")))
            }
            (None, names) => Failure::usage(&format_args!(
                "there are several stores, {}; name one with --source",
                names.join(", ")
            )),
        })
    }

    /// Returns the store for a command that writes. Refuses one that only a found and untrusted file names.
    pub(crate) fn place_to_write(&self, environment: &Environment) -> Result<ImportStore, Failure> {
        self.refuse_found()?;
        self.place(environment)
    }

    /// Returns the path of a store that is restored.
    pub(super) fn file_to_restore(&self, environment: &Environment) -> Result<PathBuf, Failure> {
        self.refuse_found()?;
        self.file_for(environment, BACKUP)
    }

    fn refuse_found(&self) -> Result<(), Failure> {
        let is_named = self.args.config.is_some()
            || self.args.place.store.is_some()
            || self.args.place.provider_url.is_some();
        if !is_named && let Some(FoundFile::Here(file)) = self.args.found_file() {
            let text = read_text(&file)?;
            let files = TrustedFiles::of_user().map_err(crate::config::ConfigError::from)?;
            if !files.is_trusted(&file, &text).map_err(crate::config::ConfigError::from)? {
                return Err(Failure::usage(&format_args!(
                    "{} was only found, and this command writes; name the store with --store, or that file with --config",
                    file.display()
                )));
            }
        }
        Ok(())
    }
}
