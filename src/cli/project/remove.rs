//! `fetchwell project remove`: removes a project.

use clap::Args;
use serde_json::json;

use super::list::documents_of;
use super::show::no_project;
use super::store::{database, open};
use crate::app::failure::Failure;
use crate::app::open::runtime;
use crate::app::state::StateArgs;
use crate::cli::backup::{StoreArgs, StorePlace};
use crate::cli::print::{Printer, counted};
use crate::cli::store::Remove as RemoveRecords;
use crate::config::Environment;
use crate::handle::RecordScope;
use crate::source::documents::{DocumentStore, ProjectRef};
use crate::source::postgres::PostgresStore;

/// Remove a project with its documents, vectors and search history; the imported files stay.
#[derive(Debug, Args)]
pub(super) struct Remove {
    /// The slug or the id of the project.
    #[arg(value_name = "SLUG")]
    project: ProjectRef,

    #[command(flatten)]
    store: StoreArgs,

    #[command(flatten)]
    state: StateArgs,

    /// Remove without asking.
    #[arg(long)]
    yes: bool,

    /// Count what would be removed, and remove nothing.
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,
}

impl Remove {
    pub(super) fn run(self, printer: Printer, environment: &Environment) -> Result<(), Failure> {
        let Self { project, store, state, yes, dry_run } = self;
        let place = store.place_to_write(environment)?;
        if let StorePlace::Postgres(pool) = &place {
            return remove_from(&database(pool)?, &project, Confirmation { yes, dry_run }, printer);
        }
        let found = runtime()?.block_on(open(&place)?.project(&project))?;
        let connection = found.ok_or_else(|| no_project(&project))?.slug.connection().clone();
        let scope = RecordScope { connection, stream: None, record: None };
        RemoveRecords { scope, store, state, yes, dry_run }.run(printer, environment)
    }
}

/// Options of a removal.
#[derive(Debug, Clone, Copy)]
struct Confirmation {
    yes: bool,
    dry_run: bool,
}

/// Removes a project from a database.
fn remove_from(
    store: &PostgresStore,
    named: &ProjectRef,
    options: Confirmation,
    printer: Printer,
) -> Result<(), Failure> {
    let runtime = runtime()?;
    let project = runtime.block_on(store.project(named))?.ok_or_else(|| no_project(named))?;
    let documents = documents_of(&runtime.block_on(store.categories(project.id))?);
    let slug = &project.slug;
    if !options.dry_run && !options.yes {
        return Err(Failure::usage(&format_args!(
            "the project `{slug}` and its {} would be removed; run the command with --yes to remove them",
            counted(documents, "document")
        )));
    }
    if options.yes {
        runtime.block_on(store.delete_project(project.id))?;
    }
    if printer.json {
        let removed = json!({"documents": documents});
        printer.value(&json!({"project": slug, "dry_run": options.dry_run, "removed": removed}));
    } else {
        let verb = if options.dry_run { "Would remove" } else { "Removed" };
        printer.line(format_args!("{verb} {} of `{slug}`", counted(documents, "document")));
    }
    Ok(())
}
