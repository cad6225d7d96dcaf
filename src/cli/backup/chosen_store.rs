//! The store that a command means: the one that `--store` names, or one of a configuration.

use std::path::PathBuf;

use clap::Args;

use crate::app::failure::Failure;
use crate::app::secret::postgres_pool;
use crate::app::settings::SourceArgs;
use crate::config::{
    Environment, FileSettings, FoundFile, SourcePlace, SourceSettings, TrustedFiles, read_text,
};
use crate::source::PostgresError;
use crate::source::postgres::PostgresPool;
use crate::source::store::StoreError;

/// Store that a command means.
#[derive(Debug, Clone)]
pub(in crate::cli) enum StorePlace {
    /// Path of a file.
    File(PathBuf),
    /// Connections to a database.
    Postgres(PostgresPool),
}

/// The arguments that name a store. Those of record servers are accepted for scripts that pass them to every command, and
/// hidden, because a store is a file.
#[derive(Debug, Clone, Args)]
#[command(mut_arg("provider_url", |arg| arg.hide(true)), mut_arg("cache_root", |arg| arg.hide(true)))]
pub(in crate::cli) struct StoreArgs {
    #[command(flatten)]
    args: SourceArgs,

    /// The name of the store in the configuration, if that has several.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["store", "provider_url"])]
    source: Option<String>,
}

impl StoreArgs {
    /// Returns the settings of the configuration.
    pub(in crate::cli) fn settings(&self, environment: &Environment) -> Result<FileSettings, Failure> {
        self.args.settings(environment)
    }

    /// Returns the path of the store.
    pub(in crate::cli) fn path(&self, environment: &Environment) -> Result<PathBuf, Failure> {
        let settings = self.args.settings(environment)?;
        let stores = settings.sources.iter().filter_map(|source| match &source.place {
            SourcePlace::Store { path } => Some((source.name.as_str(), path)),
            SourcePlace::Postgres { .. } | SourcePlace::Provider { .. } => None,
        });
        let is_meant = |name: &str| self.source.as_deref().is_none_or(|meant| meant == name);
        let stores: Vec<_> = stores.collect();
        let meant: Vec<_> = stores.iter().filter(|(name, _)| is_meant(name)).collect();
        if let [(_, path)] = meant.as_slice() {
            return Ok((*path).clone());
        }
        let names: Vec<String> = stores.iter().map(|(name, _)| format!("`{name}`")).collect();
        Err(match (&self.source, names.as_slice()) {
            (_, []) if settings.sources.iter().any(is_in_postgres) => {
                StoreError::from(PostgresError::NotSupported { what: "this command on" }).into()
            }
            (_, []) => {
                Failure::usage(&"no store is configured, and this command needs one; name one with --store")
            }
            (Some(name), names) => {
                Failure::usage(&format_args!("there is no store `{name}`; there are {}", names.join(", ")))
            }
            (None, names) => Failure::usage(&format_args!(
                "there are several stores, {}; name one with --source",
                names.join(", ")
            )),
        })
    }

    /// Returns the store: a file or a database.
    pub(in crate::cli) fn place(&self, environment: &Environment) -> Result<StorePlace, Failure> {
        let settings = self.args.settings(environment)?;
        let is_meant = |source: &&SourceSettings| {
            self.source.as_deref().is_none_or(|meant| meant == source.name.as_str())
                && !matches!(source.place, SourcePlace::Provider { .. })
        };
        let meant: Vec<&SourceSettings> = settings.sources.iter().filter(is_meant).collect();
        if let [only] = meant.as_slice()
            && let SourcePlace::Postgres { url } = &only.place
        {
            return Ok(StorePlace::Postgres(postgres_pool(url, environment).map_err(StoreError::from)?));
        }
        self.path(environment).map(StorePlace::File)
    }

    /// Returns the store for a command that writes. Refuses one that only a found and untrusted file names.
    pub(in crate::cli) fn place_to_write(&self, environment: &Environment) -> Result<StorePlace, Failure> {
        match self.place(environment)? {
            StorePlace::File(_) => self.path_to_write(environment).map(StorePlace::File),
            StorePlace::Postgres(pool) => {
                self.refuse_found(environment)?;
                Ok(StorePlace::Postgres(pool))
            }
        }
    }

    /// Returns the path for a command that writes. Refuses a store that only a found and untrusted file names.
    pub(in crate::cli) fn path_to_write(&self, environment: &Environment) -> Result<PathBuf, Failure> {
        self.refuse_found(environment)?;
        self.path(environment)
    }

    fn refuse_found(&self, environment: &Environment) -> Result<(), Failure> {
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
        // Checks the file as a whole, too.
        self.args.settings(environment).map(drop)
    }
}

fn is_in_postgres(source: &SourceSettings) -> bool {
    matches!(source.place, SourcePlace::Postgres { .. })
}
