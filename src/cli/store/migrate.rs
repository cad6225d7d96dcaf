//! `fetchwell store status` and `fetchwell store migrate`: the version of the tables of a store.

use clap::Args;
use serde_json::json;

use crate::app::failure::Failure;
use crate::app::open::runtime;
use crate::cli::backup::{StoreArgs, StorePlace};
use crate::cli::print::Printer;
use crate::config::Environment;
use crate::source::contract::StoreError;
use crate::source::postgres::{PostgresPool, TableVersions, migrate_tables, table_versions};
use crate::source::sqlite::store_format;

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
        match self.store.place(environment)? {
            StorePlace::Postgres(pool) => {
                let versions = runtime()?.block_on(table_versions(&pool)).map_err(StoreError::from)?;
                print_status(printer, &pool, &versions);
                if versions.is_current() {
                    return Ok(());
                }
                Err(Failure::new(problem(&versions)))
            }
            place @ StorePlace::File(_) => print_format(printer, &place),
        }
    }
}

impl Migrate {
    pub(super) fn run(self, printer: Printer, environment: &Environment) -> Result<(), Failure> {
        let pool = match self.store.place_to_write(environment)? {
            StorePlace::Postgres(pool) => pool,
            place @ StorePlace::File(_) => return print_format(printer, &place),
        };
        let (before, after) = runtime()?.block_on(migrate_tables(&pool)).map_err(StoreError::from)?;
        if printer.json {
            printer
                .value(&json!({ "store": pool.url().to_string(), "from": before.found, "to": after.found }));
            return Ok(());
        }
        let to = after.known;
        match before.found {
            Some(found) if found == to => {
                printer.line(format_args!("{}: the tables have version {to}", pool.url()));
            }
            Some(found) => {
                printer.line(format_args!("{}: migrated from version {found} to {to}", pool.url()));
            }
            None => printer.line(format_args!("{}: created tables of version {to}", pool.url())),
        }
        Ok(())
    }
}

fn print_status(printer: Printer, pool: &PostgresPool, versions: &TableVersions) {
    let TableVersions { found, known, applied } = versions;
    if printer.json {
        printer.value(&json!({
            "store": pool.url().to_string(), "version": found, "needed": known, "is_current": versions.is_current(),
            "applied": applied.iter().map(|(version, at)| json!({ "version": version, "at": at })).collect::<Vec<_>>(),
        }));
        return;
    }
    match found {
        Some(found) => printer
            .line(format_args!("{}: tables of version {found}, this release needs {known}", pool.url())),
        None => printer.line(format_args!("{}: no tables, this release needs version {known}", pool.url())),
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

/// Prints the format of a file, which needs no migration.
fn print_format(printer: Printer, place: &StorePlace) -> Result<(), Failure> {
    let StorePlace::File(path) = place else { return Ok(()) };
    let format = store_format(path)?;
    if printer.json {
        printer.value(&json!({ "store": path, "version": format, "is_current": true }));
    } else {
        printer
            .line(format_args!("{}: format {format}, which this release reads and writes", path.display()));
    }
    Ok(())
}
