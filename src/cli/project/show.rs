//! `fetchwell project show`: shows a project with its categories.

use clap::Args;
use fetchwell_core::terminal::Line;
use fetchwell_source::documents::{ProjectRef, ProjectSettings};
use serde_json::{Map, Value, json};

use super::list::documents_of;
use super::store;
use crate::app::failure::Failure;
use crate::app::open::runtime;
use crate::cli::backup::StoreArgs;
use crate::cli::print::{Printer, STRONG, counted, grouped};
use crate::config::Environment;

/// Show a project, the folder of its documents and its categories.
#[derive(Debug, Args)]
pub(super) struct Show {
    /// The slug or the id of the project.
    #[arg(value_name = "SLUG")]
    project: ProjectRef,
    #[command(flatten)]
    store: StoreArgs,
}

impl Show {
    pub(super) fn run(self, printer: Printer, environment: &Environment) -> Result<(), Failure> {
        let records = self.store.store(environment)?;
        let store = store::open(&*records)?;
        let runtime = runtime()?;
        let Some(project) = runtime.block_on(store.project(&self.project))? else {
            return Err(no_project(&self.project));
        };
        let categories = runtime.block_on(store.categories(project.id))?;
        let connection = project.slug.connection();
        let imports = runtime.block_on(records.imports())?;
        let import = imports.into_iter().find(|import| import.connection_id == *connection);
        let origin = import.map(|import| import.settings.origin.display().to_string());
        if printer.json {
            let counts = categories.iter().map(|count| (count.category.to_string(), count.documents.into()));
            let counts: Map<String, Value> = counts.collect();
            printer.value(&json!({"project": project, "origin": origin, "categories": counts}));
            return Ok(());
        }
        let slug = project.slug.to_string();
        printer.styled(Line::default().styled(STRONG, &slug).text("  ").text(&project.name));
        printer.line(format_args!("  id {}, version {}", project.id, project.corpus_version));
        printer.line(format_args!("  {}", counted(documents_of(&categories), "document")));
        for count in &categories {
            printer.line(format_args!("  {}  {}", count.category, grouped(count.documents)));
        }
        if let Some(origin) = origin {
            printer.line(format_args!("  imported from {origin}"));
        }
        printer.line(format_args!("  {}", described_history(&project.settings)));
        Ok(())
    }
}

/// Describes the search history of a project.
pub(super) fn described_history(settings: &ProjectSettings) -> String {
    match settings.kept_days() {
        0 => "no search history".to_owned(),
        1 => "searches are kept for 1 day".to_owned(),
        days => format!("searches are kept for {} days", grouped(u64::from(days))),
    }
}

/// Returns the error for a project that does not exist.
pub(super) fn no_project(named: &ProjectRef) -> Failure {
    Failure::usage(&format_args!("there is no project `{named}`; `fetchwell project list` lists them"))
}
