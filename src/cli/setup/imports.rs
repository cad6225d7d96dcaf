//! The imports of what was found. Each is that of `fetchwell add`.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use fetchwell_connectors::{ImportKind, connection_name};
use fetchwell_core::handle::ConnectionId;
use fetchwell_core::terminal::Line;
use fetchwell_core::terminal::output::note;
use fetchwell_source::SyncStore;
use fetchwell_source::contract::{RememberedImport, StoreError};
use fetchwell_sqlite::SqliteSyncStore;
use serde::Serialize;

use super::super::print::{FAINT, Printer};
use super::super::sync::{Add, SyncReport};
use super::find::{FileCounts, Group, Home, Origin, count_files, find_origins};
use crate::app::default_store::{default_store, store_to_fill};
use crate::app::failure::Failure;
use crate::config::Environment;

/// Records that can be imported, or are.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Candidate {
    group: &'static str,
    program: &'static str,
    path: PathBuf,
    connection_id: ConnectionId,
    is_imported: bool,
    /// False for a folder of files, which is imported only if the user names it.
    is_default: bool,
    /// Files of the folder by kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    files: Option<FileCounts>,
    #[serde(skip)]
    kind: Option<ImportKind>,
}

impl Candidate {
    pub(super) fn group(&self) -> &'static str {
        self.group
    }

    pub(super) fn program(&self) -> &'static str {
        self.program
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn connection(&self) -> &str {
        self.connection_id.as_str()
    }

    pub(super) fn is_imported(&self) -> bool {
        self.is_imported
    }

    /// Returns true unless it is a folder of files, which is imported only if the user names it.
    pub(super) fn is_default(&self) -> bool {
        self.is_default
    }

    /// Returns the files of a folder by kind as a phrase.
    pub(super) fn files(&self) -> Option<String> {
        self.files.as_ref().map(FileCounts::describe)
    }
}

/// The results of imports.
pub(super) struct ImportOutcome {
    pub(super) reports: Vec<SyncReport>,
    /// True if an import failed.
    pub(super) has_failed: bool,
    /// True if files or records of an import could not be read.
    pub(super) is_partial: bool,
}

impl ImportOutcome {
    /// Returns the failure with which the command ends. What is wrong was printed.
    pub(super) fn ended(&self, has_other_failure: bool) -> Result<(), Failure> {
        if self.has_failed || has_other_failure {
            Err(Failure::without_message())
        } else if self.is_partial {
            Err(Failure::partial(""))
        } else {
            Ok(())
        }
    }
}

/// Returns what was found with a connection for each. No two have the same, and those that the store has keep theirs.
pub(super) fn candidates(origins: Vec<Origin>, store: &Path) -> Result<Vec<Candidate>, Failure> {
    let known = imports_of(store)?;
    let mut names: HashSet<String> = known.iter().map(|import| import.connection_id.to_string()).collect();
    let candidate = |origin: Origin| {
        let import = known.iter().find(|import| import.settings.origin == origin.path);
        let connection_id = match import {
            Some(import) => import.connection_id.clone(),
            None => free_name(&origin, &mut names)?,
        };
        Some(Candidate {
            group: origin.group.as_str(),
            program: origin.program,
            path: origin.path,
            connection_id,
            is_imported: import.is_some(),
            is_default: origin.group != Group::Folder,
            files: None,
            kind: origin.kind,
        })
    };
    Ok(origins.into_iter().filter_map(candidate).collect())
}

/// Counts the files of the folders, and removes empty folders.
pub(super) fn with_counts(mut candidates: Vec<Candidate>) -> Vec<Candidate> {
    let folders = candidates.iter_mut().filter(|candidate| !candidate.is_default);
    let folders: Vec<&mut Candidate> = folders.collect();
    let counts = count_files(folders.iter().map(|folder| folder.path.clone()).collect());
    for (folder, counts) in folders.into_iter().zip(counts) {
        folder.files = Some(counts);
    }
    candidates.retain(|candidate| {
        candidate.is_imported || !candidate.files.as_ref().is_some_and(FileCounts::is_empty)
    });
    candidates
}

/// Removes candidates that are in a chosen folder, which is imported with them.
pub(super) fn without_nested(chosen: Vec<Candidate>) -> Vec<Candidate> {
    let folders: Vec<PathBuf> =
        chosen.iter().filter(|candidate| !candidate.is_default).map(|folder| folder.path.clone()).collect();
    let is_apart = |candidate: &Candidate| {
        let around =
            folders.iter().find(|folder| candidate.path != **folder && candidate.path.starts_with(folder));
        if let Some(folder) = around {
            let (path, folder) = (candidate.path.display(), folder.display());
            note(&format_args!("{path} is imported as a part of {folder}"));
        }
        around.is_none()
    };
    chosen.into_iter().filter(is_apart).collect()
}

/// Returns the files and folders that the user named.
pub(super) fn named_candidates(
    paths: &[PathBuf],
    home: &Home,
    store: &Path,
) -> Result<Vec<Candidate>, Failure> {
    let found = find_origins(home);
    let origin = |path: &PathBuf| {
        let absolute = std::path::absolute(path).unwrap_or_else(|_invalid| path.clone());
        let inside = home.inside(&absolute).ok_or_else(|| {
            Failure::usage(&format_args!(
                "{} is not a file or folder in your home folder; `fetchwell add` imports others",
                path.display()
            ))
        })?;
        let known = found.iter().find(|origin| origin.path == inside).cloned();
        Ok(known.unwrap_or(Origin {
            group: Group::Notes,
            program: "named",
            path: inside,
            kind: None,
            name: None,
        }))
    };
    candidates(paths.iter().map(origin).collect::<Result<_, Failure>>()?, store)
}

/// Returns the candidates that the store does not have.
pub(super) fn without_imported(found: &[Candidate]) -> Vec<Candidate> {
    found.iter().filter(|candidate| !candidate.is_imported).cloned().collect()
}

/// Imports the candidates one by one. An import that fails does not keep the others from being done.
pub(super) fn import_all(
    chosen: &[Candidate],
    store: &Path,
    is_dry: bool,
    printer: Printer,
    environment: &Environment,
) -> Result<ImportOutcome, Failure> {
    let mut outcome = ImportOutcome { reports: Vec::new(), has_failed: false, is_partial: false };
    if chosen.is_empty() {
        return Ok(outcome);
    }
    if is_dry {
        if !printer.json {
            for candidate in chosen {
                let path = candidate.path.display();
                let line = format!("would import {path} as `{}`", candidate.connection());
                printer.styled(Line::default().styled(FAINT, line));
            }
        }
        return Ok(outcome);
    }
    let named = std::path::absolute(store)
        .map_err(|error| Failure::new(format!("{} is not a path ({error})", store.display())))?;
    let is_default = default_store(environment).as_deref() == Some(store);
    // Creates the folder of the default store, and says that the store is new.
    let store = store_to_fill((!is_default).then_some(named.as_path()), environment)?;
    for candidate in chosen {
        let connection = candidate.connection_id.clone();
        let add = Add::new(candidate.path.clone(), store.clone(), candidate.kind, connection);
        match add.import_into(&store, environment) {
            Ok(report) => {
                outcome.is_partial |= report.is_partial();
                outcome.has_failed |= !report.is_complete() && !report.is_partial();
                if !printer.json {
                    report.print(printer);
                }
                outcome.reports.push(report);
            }
            Err(failure) if failure.is_stop() => return Err(failure),
            Err(failure) => {
                outcome.has_failed = true;
                note(&format_args!("{} is not imported: {failure}", candidate.path.display()));
            }
        }
    }
    Ok(outcome)
}

fn imports_of(store: &Path) -> Result<Vec<RememberedImport>, Failure> {
    match SqliteSyncStore::open(store) {
        Err(StoreError::Missing(_)) => Ok(Vec::new()),
        store => Ok(store?.imports()?),
    }
}

/// Returns a connection id from the name of an origin that no other one has, or `None` if its name has no letter or digit.
fn free_name(origin: &Origin, names: &mut HashSet<String>) -> Option<ConnectionId> {
    let base = match origin.name {
        Some(name) => name.to_owned(),
        None => connection_name(&origin.path)?.to_string(),
    };
    let numbered = (2..).map(|number| format!("{base}-{number}"));
    let name = std::iter::once(base.clone()).chain(numbered).find(|name| !names.contains(name))?;
    let id = name.parse().ok()?;
    names.insert(name);
    Some(id)
}
