//! `fetchwell project remove`: removes a project.

use clap::Args;

use super::show::no_project;
use crate::app::failure::Failure;
use crate::app::open::runtime;
use crate::app::state::StateArgs;
use crate::cli::backup::StoreArgs;
use crate::cli::print::Printer;
use crate::cli::store::Remove as RemoveRecords;
use crate::config::Environment;
use crate::handle::RecordScope;
use crate::source::documents::{DocumentStore, ProjectRef};
use crate::source::store::Store;

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
        let path = store.path_to_write(environment)?;
        let opened = Store::open("store".parse().map_err(|error| Failure::usage(&error))?, &path)?;
        let found = runtime()?.block_on(opened.project(&project))?;
        let connection = found.ok_or_else(|| no_project(&project))?.slug.connection().clone();
        let scope = RecordScope { connection, stream: None, record: None };
        RemoveRecords { scope, store, state, yes, dry_run }.run(printer, environment)
    }
}
