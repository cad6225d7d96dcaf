//! `fetchwell project list`: lists the projects of a store.

use clap::Args;
use fetchwell_source::documents::CategoryCount;

use super::store;
use crate::app::failure::Failure;
use crate::app::open::runtime;
use crate::cli::backup::StoreArgs;
use crate::cli::print::{Printer, grouped};
use crate::config::Environment;

/// List the projects of a store.
#[derive(Debug, Args)]
pub(super) struct List {
    #[command(flatten)]
    store: StoreArgs,
}

impl List {
    pub(super) fn run(self, printer: Printer, environment: &Environment) -> Result<(), Failure> {
        let store = store::open(&*self.store.store(environment)?)?;
        let runtime = runtime()?;
        let projects = runtime.block_on(store.projects())?;
        if printer.json {
            printer.value(&projects);
            return Ok(());
        }
        if projects.is_empty() {
            printer.line("There are no projects yet; `fetchwell project create SLUG` makes one.");
            return Ok(());
        }
        let mut rows = vec![["project", "name", "documents", "version"].map(str::to_owned).to_vec()];
        for project in projects {
            let categories = runtime.block_on(store.categories(project.id))?;
            rows.push(vec![
                project.slug.to_string(),
                project.name,
                grouped(documents_of(&categories)),
                grouped(project.corpus_version.unsigned_abs()),
            ]);
        }
        printer.table(&rows);
        Ok(())
    }
}

/// Returns the number of documents of all categories.
pub(super) fn documents_of(categories: &[CategoryCount]) -> u64 {
    categories.iter().map(|count| count.documents).sum()
}
