//! `fetchwell store status` and `fetchwell store migrate`: the version of the tables of a store.

use clap::Args;
use fetchwell_source::RecordStore;
use fetchwell_source::contract::TableVersions;
use serde_json::json;

use crate::app::failure::Failure;
use crate::app::open::runtime;
use crate::cli::backup::StoreArgs;
use crate::cli::print::Printer;
use crate::config::Environment;

/// Show the version of a store's tables, and the one that this release needs. Changes nothing.
#[derive(Debug, Args)]
pub(super) struct Status {
    #[command(flatten)]
    store: StoreArgs,
}

/// Create the tables of a store in PostgreSQL, or bring them to the version of this release.
///
/// Any command does this when it connects with a role that may. A file is of the format of the release that wrote it last.
#[derive(Debug, Args)]
pub(super) struct Migrate {
    #[command(flatten)]
    store: StoreArgs,
}

impl Status {
    pub(super) fn run(self, printer: Printer, environment: &Environment) -> Result<(), Failure> {
        let store = self.store.store(environment)?;
        let versions = runtime()?.block_on(store.table_versions())?;
        print_status(printer, &*store, &versions);
        if versions.is_current() { Ok(()) } else { Err(Failure::new(problem(&versions))) }
    }
}

impl Migrate {
    pub(super) fn run(self, printer: Printer, environment: &Environment) -> Result<(), Failure> {
        let store = self.store.store_to_write(environment)?;
        let (before, after) = runtime()?.block_on(store.migrate())?;
        if store.file().is_some() {
            print_status(printer, &*store, &after);
            return Ok(());
        }
        let place = store.place();
        if printer.json {
            printer.value(&json!({ "store": place, "from": before.found, "to": after.found }));
            return Ok(());
        }
        let to = after.known;
        match before.found {
            Some(found) if found == to => {
                printer.line(format_args!("{place}: the tables have version {to}"));
            }
            Some(found) => {
                printer.line(format_args!("{place}: migrated from version {found} to {to}"));
            }
            None => printer.line(format_args!("{place}: created tables of version {to}")),
        }
        Ok(())
    }
}

fn print_status(printer: Printer, store: &dyn RecordStore, versions: &TableVersions) {
    let TableVersions { found, known, applied } = versions;
    let place = store.place();
    if store.file().is_some() {
        // A file is of the format of this release, or is not read.
        if printer.json {
            printer.value(&json!({ "store": place, "version": found, "is_current": true }));
        } else {
            printer.line(format_args!("{place}: format {known}, which this release reads and writes"));
        }
        return;
    }
    if printer.json {
        printer.value(&json!({
            "store": place, "version": found, "needed": known, "is_current": versions.is_current(),
            "applied": applied.iter().map(|(version, at)| json!({ "version": version, "at": at })).collect::<Vec<_>>(),
        }));
        return;
    }
    match found {
        Some(found) => {
            printer.line(format_args!("{place}: tables of version {found}, this release needs {known}"));
        }
        None => printer.line(format_args!("{place}: no tables, this release needs version {known}")),
    }
    for (version, at) in applied {
        printer.line(format_args!("  {version}  {at}"));
    }
}

fn problem(versions: &TableVersions) -> &'static str {
    if versions.found > Some(versions.known) {
        "the tables are of a newer release; upgrade fetchwell"
    } else {
        "the tables are not of this release; run `fetchwell store migrate` with the role that owns them"
    }
}
