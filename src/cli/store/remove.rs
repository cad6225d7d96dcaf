//! `fetchwell remove`: removes a connection, a stream or a record from a store.

use std::io::{self, IsTerminal};
use std::path::Path;

use clap::Args;
use fetchwell_core::handle::RecordScope;
use fetchwell_core::terminal::err_is_terminal;
use fetchwell_core::terminal::output::note;
use fetchwell_source::RecordStore;
use fetchwell_source::contract::{RememberedImport, RemovalCounts, RemovalPlan, RemovalResult};
use fetchwell_source::documents::DOCS_KIND;
use fetchwell_state::cursor::delete_positions;
use serde_json::json;

use crate::app::failure::Failure;
use crate::app::open::runtime;
use crate::app::state::StateArgs;
use crate::cli::backup::StoreArgs;
use crate::cli::print::{Printer, counted};
use crate::config::Environment;

/// Remove a connection, a stream or a record from a store, with its history, its place in the index and its vectors.
///
/// The files that were imported stay. Lists that clients are reading have to be started again.
#[derive(Debug, Args)]
pub(crate) struct Remove {
    /// CONNECTION, CONNECTION/STREAM, or the id of a record.
    #[arg(value_name = "WHAT")]
    pub(crate) scope: RecordScope,

    #[command(flatten)]
    pub(crate) store: StoreArgs,

    #[command(flatten)]
    pub(crate) state: StateArgs,

    /// Remove without asking.
    #[arg(long)]
    pub(crate) yes: bool,

    /// Count what would be removed, and remove nothing.
    #[arg(long, conflicts_with = "yes")]
    pub(crate) dry_run: bool,
}

impl Remove {
    pub(crate) fn run(self, printer: Printer, environment: &Environment) -> Result<(), Failure> {
        let Self { scope, store: store_args, state, yes, dry_run } = self;
        let store = store_args.store_to_write(environment)?;
        let (store, runtime) = (&*store, runtime()?);
        if !dry_run {
            // Text that a removal left when its process was killed, also if its records are not found any more.
            runtime.block_on(store.finish_removal())?;
        }
        let RemovalPlan { counts, import } = runtime.block_on(store.plan_removal(&scope))?;
        if let Some(import) = import {
            note_import(store, &scope, &import);
        }
        if dry_run {
            print(printer, store, &scope, &Outcome { counts, is_dry_run: true, ..Outcome::default() });
            return Ok(());
        }
        // Everything that can fail comes before the removal, so that its result and its warnings are printed in any case.
        let state_directory = state.server_directory(store_args.settings(environment)?.state_dir)?;
        if !yes {
            confirm(store, &scope, counts)?;
        }
        let RemovalResult { counts, vectors, mut problems, notes } =
            runtime.block_on(store.remove(&scope))?;
        // Positions of lists have records that were read and not shown yet.
        problems.extend(delete_positions_in(state_directory.as_deref()));
        print(printer, store, &scope, &Outcome { counts, vectors, is_dry_run: false });
        notes.iter().for_each(note);
        after_removal(&problems)
    }
}

/// Deletes positions of lists, which have records that were read and not shown. Returns the problem if this fails.
fn delete_positions_in(directory: Option<&Path>) -> Option<String> {
    delete_positions(directory?).err().map(|error| error.to_string())
}

fn after_removal(problems: &[String]) -> Result<(), Failure> {
    match problems {
        [] => Ok(()),
        problems => Err(Failure::new(format!("the records are removed, but {}", problems.join("; ")))),
    }
}

/// Numbers to print.
#[derive(Debug, Default)]
struct Outcome {
    counts: RemovalCounts,
    vectors: u64,
    is_dry_run: bool,
}

fn print(printer: Printer, store: &dyn RecordStore, scope: &RecordScope, outcome: &Outcome) {
    let Outcome { counts, vectors, is_dry_run } = outcome;
    if printer.json {
        printer.value(&json!({
            "store": store.place(), "scope": scope.to_string(), "dry_run": is_dry_run, "removed": counts, "vectors": vectors,
        }));
        return;
    }
    let verb = if *is_dry_run { "Would remove" } else { "Removed" };
    let vectors = if *vectors == 0 { String::new() } else { format!(" and {}", counted(*vectors, "vector")) };
    printer.line(format_args!("{verb} {}{vectors} of `{scope}` from {}", described(*counts), store.place()));
}

fn described(counts: RemovalCounts) -> String {
    let RemovalCounts { records, deleted, .. } = counts;
    match deleted {
        0 => counted(records, "record"),
        deleted => {
            format!(
                "{} and the history of {}",
                counted(records, "record"),
                counted(deleted, "deleted record")
            )
        }
    }
}

/// Prints what keeps the records of a scope current.
fn note_import(store: &dyn RecordStore, scope: &RecordScope, import: &RememberedImport) {
    let connection = &scope.connection;
    let origin = import.settings.origin.display();
    if scope.stream.is_none() {
        note(&format_args!(
            "the removal of `{connection}` forgets its import of {origin}; a server that has it in [[import]] imports it again"
        ));
    } else {
        let again = if import.settings.kind == DOCS_KIND {
            format!("fetchwell import docs {origin} --project {connection}")
        } else {
            format!("fetchwell add {origin} --connection {connection}")
        };
        note(&format_args!(
            "`{connection}` is kept current with {origin}: `fetchwell sync` brings removed records back when their file \
             changes, and `{again} --store {}` at once",
            store.place()
        ));
    }
}

/// Asks on the terminal. Without one, the command needs `--yes`.
fn confirm(store: &dyn RecordStore, scope: &RecordScope, counts: RemovalCounts) -> Result<(), Failure> {
    let (described, store) = (described(counts), store.place());
    if !(io::stdin().is_terminal() && err_is_terminal()) {
        return Err(Failure::usage(&format_args!(
            "this removes {described} of `{scope}` from {store}; add --yes to remove them, or --dry-run to count them",
        )));
    }
    note(&format_args!("Remove {described} of `{scope}` from {store}? [y/N]"));
    let mut answer = String::new();
    io::stdin()
        .read_line(&mut answer)
        .map_err(|error| Failure::new(format!("the answer cannot be read ({error}); add --yes")))?;
    match answer.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => Err(Failure::new("nothing was removed")),
    }
}
