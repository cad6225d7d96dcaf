//! `fetchwell remove`: removes a connection, a stream or a record from a store.

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;

use crate::app::failure::Failure;
use crate::app::open::runtime;
use crate::app::state::StateArgs;
use crate::cli::backup::{StoreArgs, StorePlace};
use crate::cli::print::{Printer, counted, note};
use crate::config::Environment;
use crate::cursor::delete_positions;
use crate::handle::RecordScope;
use crate::source::SyncStore;
use crate::source::contract::{RemovalCounts, RemovalResult};
use crate::source::documents::DOCS_KIND;
use crate::source::postgres::{self, PostgresPool};
use crate::source::sqlite::{SqliteSyncStore, count_removal, finish_removal, remove_records};
use crate::terminal::err_is_terminal;

/// Remove a connection, a stream or a record from a store, with its history, its place in the index and its vectors.
///
/// The files that were imported stay. Lists that clients are reading have to be started again.
#[derive(Debug, Args)]
pub(in crate::cli) struct Remove {
    /// CONNECTION, CONNECTION/STREAM, or the id of a record.
    #[arg(value_name = "WHAT")]
    pub(in crate::cli) scope: RecordScope,

    #[command(flatten)]
    pub(in crate::cli) store: StoreArgs,

    #[command(flatten)]
    pub(in crate::cli) state: StateArgs,

    /// Remove without asking.
    #[arg(long)]
    pub(in crate::cli) yes: bool,

    /// Count what would be removed, and remove nothing.
    #[arg(long, conflicts_with = "yes")]
    pub(in crate::cli) dry_run: bool,
}

impl Remove {
    pub(in crate::cli) fn run(self, printer: Printer, environment: &Environment) -> Result<(), Failure> {
        let Self { scope, store: store_args, state, yes, dry_run } = self;
        let place = store_args.place_to_write(environment)?;
        let store = match &place {
            StorePlace::File(path) => path.clone(),
            StorePlace::Postgres(pool) => {
                let state_directory = state.server_directory(store_args.settings(environment)?.state_dir)?;
                let removal = DatabaseRemoval { pool, place: &place, scope: &scope, state_directory };
                return removal.run(printer, Consent { yes, dry_run });
            }
        };
        let store = store.as_path();
        if !dry_run {
            // Text that a removal left when its process was killed, also if its records are not found any more.
            finish_removal(store)?;
        }
        let counts = count_removal(store, &scope)?;
        note_import(store, &scope)?;
        if dry_run {
            print(printer, &place, &scope, &Outcome { counts, is_dry_run: true, ..Outcome::default() });
            return Ok(());
        }
        // Everything that can fail comes before the removal, so that its result and its warnings are printed in any case.
        let state_directory = state.server_directory(store_args.settings(environment)?.state_dir)?;
        let copies = earlier_copies(store);
        let runtime = runtime()?;
        if !yes {
            confirm(&place, &scope, counts)?;
        }
        let RemovalResult { counts, vectors, mut problems } =
            runtime.block_on(remove_records(store, &scope))?;
        // Positions of lists have records that were read and not shown yet.
        problems.extend(delete_positions_in(state_directory.as_deref()));
        print(printer, &place, &scope, &Outcome { counts, vectors, is_dry_run: false });
        if !copies.is_empty() {
            let copies: Vec<String> = copies.iter().map(|copy| copy.display().to_string()).collect();
            note(&format_args!(
                "copies that `fetchwell restore` kept are not changed: {}",
                copies.join(", ")
            ));
        }
        after_removal(&problems)
    }
}

/// Removal from a database.
struct DatabaseRemoval<'a> {
    pool: &'a PostgresPool,
    place: &'a StorePlace,
    scope: &'a RecordScope,
    state_directory: Option<PathBuf>,
}

/// Flags of the command.
#[derive(Debug, Clone, Copy)]
struct Consent {
    yes: bool,
    dry_run: bool,
}

impl DatabaseRemoval<'_> {
    fn run(self, printer: Printer, consent: Consent) -> Result<(), Failure> {
        let Self { pool, place, scope, state_directory } = self;
        let runtime = runtime()?;
        let counts = runtime.block_on(postgres::count_removal(pool, scope))?;
        if consent.dry_run {
            print(printer, place, scope, &Outcome { counts, is_dry_run: true, ..Outcome::default() });
            return Ok(());
        }
        if !consent.yes {
            confirm(place, scope, counts)?;
        }
        let counts = runtime.block_on(postgres::remove_records(pool, scope))?;
        let problems: Vec<String> = delete_positions_in(state_directory.as_deref()).into_iter().collect();
        print(printer, place, scope, &Outcome { counts, ..Outcome::default() });
        note(
            &"other servers of this database forget positions of lists when these expire, after ten minutes",
        );
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

fn print(printer: Printer, store: &StorePlace, scope: &RecordScope, outcome: &Outcome) {
    let Outcome { counts, vectors, is_dry_run } = outcome;
    if printer.json {
        printer.value(&json!({
            "store": store.to_string(), "scope": scope.to_string(), "dry_run": is_dry_run, "removed": counts, "vectors": vectors,
        }));
        return;
    }
    let verb = if *is_dry_run { "Would remove" } else { "Removed" };
    let vectors = if *vectors == 0 { String::new() } else { format!(" and {}", counted(*vectors, "vector")) };
    printer.line(format_args!("{verb} {}{vectors} of `{scope}` from {}", described(*counts), store));
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

/// Prints what keeps the records of a scope current, if anything does.
fn note_import(store: &Path, scope: &RecordScope) -> Result<(), Failure> {
    let imports = SqliteSyncStore::open(store)?.imports()?;
    let connection = &scope.connection;
    let Some(import) = imports.into_iter().find(|import| import.connection_id == *connection) else {
        return Ok(());
    };
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
            store.display()
        ));
    }
    Ok(())
}

/// Asks on the terminal. Without one, the command needs `--yes`.
fn confirm(store: &StorePlace, scope: &RecordScope, counts: RemovalCounts) -> Result<(), Failure> {
    let described = described(counts);
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

/// Returns the backups beside a store that a restore made of its earlier records.
fn earlier_copies(store: &Path) -> Vec<PathBuf> {
    let Some(name) = store.file_name().and_then(|name| name.to_str()) else { return Vec::new() };
    let prefix = format!("{name}-before-restore-");
    let folder = store.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut copies: Vec<PathBuf> = entries
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(&prefix))
        .map(|entry| entry.path())
        .collect();
    copies.sort();
    copies
}
