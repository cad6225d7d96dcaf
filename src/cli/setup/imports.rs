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
use super::find::{Group, Home, Origin, find_origins};
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
}

/// The results of imports.
pub(super) struct ImportOutcome {
    pub(super) reports: Vec<SyncReport>,
    /// True if everything was imported.
    pub(super) is_complete: bool,
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
            kind: origin.kind,
        })
    };
    Ok(origins.into_iter().filter_map(candidate).collect())
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
    let mut outcome = ImportOutcome { reports: Vec::new(), is_complete: true };
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
                outcome.is_complete &= report.is_complete();
                if !printer.json {
                    report.print(printer);
                }
                outcome.reports.push(report);
            }
            Err(failure) if failure.is_stop() => return Err(failure),
            Err(failure) => {
                outcome.is_complete = false;
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
