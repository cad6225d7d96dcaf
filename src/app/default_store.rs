//! The store that commands use if neither a flag nor a configuration names a source: the one that `FETCHWELL_STORE` names,
//! otherwise `store.db` in the user's data folder. Only an import creates it.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use directories::ProjectDirs;
use fetchwell_core::terminal::note;
use fetchwell_source::contract::{FILES_ONLY, PostgresError, StoreError, Unsupported};
use fetchwell_source::is_database;
use fetchwell_state::create_private_directory;

use super::failure::Failure;
use super::imports::ImportStore;
use crate::config::{
    Environment, FileSettings, SourceSettings, check_text, default_file, read_text, settings_of,
};

/// Name of the store in the user's data folder.
const FILE: &str = "store.db";

/// Returns the path of the default store, or `None` if the user has no data folder. There may be no file yet.
pub(crate) fn default_store(environment: &Environment) -> Option<PathBuf> {
    let of_user = || Some(ProjectDirs::from("", "", "fetchwell")?.data_local_dir().join(FILE));
    environment.store.clone().or_else(of_user)
}

/// Returns an error for a store in PostgreSQL, where a command works on files only.
pub(crate) fn refuse_database(store: &Path) -> Result<(), Failure> {
    refuse_database_for(store, FILES_ONLY)
}

/// Returns an error for a store in PostgreSQL, with the remedy of the operation.
pub(crate) fn refuse_database_for(store: &Path, unsupported: Unsupported) -> Result<(), Failure> {
    if is_database(store) {
        return Err(StoreError::from(PostgresError::not_supported(unsupported)).into());
    }
    Ok(())
}

/// Returns the path of the default store for a command that reads it.
///
/// # Errors
///
/// There is no such file.
pub(crate) fn existing_default_store(environment: &Environment) -> Result<PathBuf, Failure> {
    existing_store(
        environment,
        "import something with `fetchwell add PATH`, or name a source: --store, --provider-url or --config, or add one with \
         `fetchwell source add`",
    )
}

/// Returns the store of remembered imports: that of a named configuration, otherwise the default store.
///
/// # Errors
///
/// The configuration cannot be read or does not have exactly one store, or there is no such file.
pub(crate) fn store_of_imports(
    config: Option<&Path>,
    environment: &Environment,
) -> Result<ImportStore, Failure> {
    let Some(config) = config else {
        let remedy = "add an import with `fetchwell add PATH`, or name the store with --store or --config";
        return ImportStore::from_place(&existing_store(environment, remedy)?);
    };
    let settings = settings_of(&read_text(config)?, config, environment)?;
    let stores = settings.sources.iter().filter_map(|source| ImportStore::from_source(&source.place));
    let mut stores: Vec<ImportStore> = stores.collect();
    match (stores.pop(), stores.is_empty()) {
        (Some(store), true) => Ok(store),
        (Some(_), false) => Err(Failure::usage(&format_args!(
            "{} names several stores; name one with --store",
            config.display()
        ))),
        (None, _) => ImportStore::from_place(&existing_store(environment, "name the store with --store")?),
    }
}

/// Returns the path of the default store, or an error with a remedy.
pub(crate) fn existing_store(environment: &Environment, remedy: &str) -> Result<PathBuf, Failure> {
    let path = default_store(environment).ok_or_else(unknown_folder)?;
    if is_database(&path) {
        return Ok(path);
    }
    // A store that exists and cannot be read has an error of its own when it is opened.
    if std::fs::metadata(&path).is_err_and(|error| error.kind() == ErrorKind::NotFound) {
        return Err(Failure::usage(&format_args!("there is no store at {} yet; {remedy}", path.display())));
    }
    Ok(path)
}

/// Returns the path of the default store for an import. Creates its folder with mode 0700.
pub(crate) fn default_store_to_fill(environment: &Environment) -> Result<PathBuf, Failure> {
    let path = default_store(environment).ok_or_else(unknown_folder)?;
    refuse_database(&path)?;
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        create_private_directory(folder).map_err(|error| {
            Failure::new(format!(
                "the folder {} cannot be created ({error}); name a store with --store",
                folder.display()
            ))
        })?;
    }
    Ok(path)
}

/// Returns the path of a store that gets records: the named one, otherwise the default store. Notes that the default store
/// is new, or that no command reads it.
pub(crate) fn store_to_fill(named: Option<&Path>, environment: &Environment) -> Result<PathBuf, Failure> {
    if let Some(store) = named {
        refuse_database(store)?;
        return Ok(store.to_owned());
    }
    let store = default_store_to_fill(environment)?;
    if !store.exists() {
        note(&format_args!("the records go into the new store {}", store.display()));
    }
    // A configuration with a mistake is the concern of commands that read it.
    let found = default_file().and_then(|found| {
        let text = read_text(found.path()).ok()?;
        check_text(&text, found.path()).ok()
    });
    if let Some(unread) = found.and_then(|settings| unread_store_note(&settings, &store)) {
        note(&unread);
    }
    Ok(store)
}

/// Returns the path or the URL of a store that gets records, as [`store_to_fill`] does for files alone.
pub(crate) fn store_or_database_to_fill(
    named: Option<&Path>,
    environment: &Environment,
) -> Result<PathBuf, Failure> {
    match named.or(environment.store.as_deref()) {
        Some(store) if is_database(store) => Ok(store.to_owned()),
        _ => store_to_fill(named, environment),
    }
}

/// Returns the path or the URL of the store that [`store_or_database_to_fill`] returns. Creates nothing and prints nothing.
pub(crate) fn planned_store(named: Option<&Path>, environment: &Environment) -> Result<PathBuf, Failure> {
    let named = named.map(Path::to_owned).or_else(|| default_store(environment));
    named.ok_or_else(unknown_folder)
}

/// Returns a note if a configuration has sources and the default store is none of them, so that no command reads it.
pub(crate) fn unread_store_note(settings: &FileSettings, store: &Path) -> Option<String> {
    let is_read = settings.sources.iter().any(|source| is_store_at(source, store));
    let is_unread = !settings.sources.is_empty() && !is_read;
    is_unread.then(|| {
        format!(
            "the default store {} is not searched, because the configuration names other sources; run `fetchwell source \
             add NAME` to add it",
            store.display()
        )
    })
}

/// Returns true if a source is the store of a path.
pub(crate) fn is_store_at(source: &SourceSettings, store: &Path) -> bool {
    source.place.file().is_some_and(|path| is_same_file(path, store))
}

fn is_same_file(one: &Path, other: &Path) -> bool {
    let resolved = |path: &Path| std::fs::canonicalize(path).unwrap_or_else(|_missing| path.to_owned());
    resolved(one) == resolved(other)
}

fn unknown_folder() -> Failure {
    Failure::new("the user's data folder is unknown; name a store with --store")
}
