//! `fetchwell project remove`: removes a project.

use clap::Args;
use fetchwell_core::handle::RecordScope;
use fetchwell_pdpp::DEFAULT_DEADLINE;
use fetchwell_source::RecordStore;
use fetchwell_source::documents::{Project, ProjectRef};
use serde_json::json;
use tokio::runtime::Runtime;

use super::list::documents_of;
use super::show::no_project;
use super::store::open;
use crate::app::failure::Failure;
use crate::app::open::runtime;
use crate::app::state::StateArgs;
use crate::cli::backup::StoreArgs;
use crate::cli::print::{Printer, counted};
use crate::cli::store::Remove as RemoveRecords;
use crate::config::Environment;

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
        let records = store.store_to_write(environment)?;
        let (documents, runtime) = (open(&*records)?, runtime()?);
        let found = runtime.block_on(documents.project(&project))?.ok_or_else(|| no_project(&project))?;
        if records.file().is_none() {
            let documents = documents_of(&runtime.block_on(documents.categories(found.id))?);
            let removal = Removal { project: found, documents, yes, dry_run };
            return removal.run(&*records, &runtime, printer);
        }
        let connection = found.slug.connection().clone();
        let scope = RecordScope { connection, stream: None, record: None };
        RemoveRecords { scope, store, state, yes, dry_run }.run(printer, environment)
    }
}

/// Removal of a project from a database, which leaves the rest of the store as it is.
struct Removal {
    project: Project,
    documents: u64,
    yes: bool,
    dry_run: bool,
}

impl Removal {
    fn run(self, store: &dyn RecordStore, runtime: &Runtime, printer: Printer) -> Result<(), Failure> {
        let Self { project, documents, yes, dry_run } = self;
        let slug = &project.slug;
        let counted = counted(documents, "document");
        if !dry_run && !yes {
            return Err(Failure::usage(&format_args!(
                "the project `{slug}` and its {counted} would be removed; run the command with --yes to remove them"
            )));
        }
        if yes {
            let name = "store".parse().map_err(|error| Failure::usage(&error))?;
            runtime.block_on(store.remove_project(name, DEFAULT_DEADLINE, project.id))?;
        }
        if printer.json {
            let removed = json!({"documents": documents});
            printer.value(&json!({"project": slug, "dry_run": dry_run, "removed": removed}));
        } else {
            let verb = if dry_run { "Would remove" } else { "Removed" };
            printer.line(format_args!("{verb} {counted} of `{slug}`"));
        }
        Ok(())
    }
}
