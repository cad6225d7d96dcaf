//! `fetchwell project create`: creates a project.

use std::path::PathBuf;

use clap::Args;
use fetchwell_source::documents::{NewProject, ProjectName, ProjectSettings, ProjectSlug};

use super::store;
use crate::app::default_store::store_or_database_to_fill;
use crate::app::failure::Failure;
use crate::app::open::{open_store_at, runtime};
use crate::cli::print::Printer;
use crate::config::Environment;

/// Create an empty project; `fetchwell import docs` then imports its documents.
#[derive(Debug, Args)]
pub(super) struct Create {
    /// The short name of the project in commands and calls: a letter or digit, then up to 99 of a-z, 0-9, _ and -.
    slug: ProjectSlug,
    /// A name for people, such as `Team handbook` [default: the slug]
    #[arg(long, value_name = "NAME")]
    name: Option<ProjectName>,
    /// Keep no history of searches.
    #[arg(long, conflicts_with = "history_days")]
    no_history: bool,
    /// Delete searches from the history after this number of days; 0 keeps no history [default: 90]
    #[arg(long, value_name = "DAYS")]
    history_days: Option<u32>,
    /// The store: a file, or the URL of a PostgreSQL database; created if it does not exist [default: `FETCHWELL_STORE`, or
    /// else the default store]
    #[arg(long, value_name = "DB")]
    store: Option<PathBuf>,
}

impl Create {
    pub(super) fn run(self, printer: Printer, environment: &Environment) -> Result<(), Failure> {
        let path = store_or_database_to_fill(self.store.as_deref(), environment)?;
        let store = open_store_at(&path, environment)?;
        store.create()?;
        let store = store::open(&*store)?;
        let name = self.name.unwrap_or_else(|| ProjectName::from(&self.slug));
        let settings = ProjectSettings {
            history: !self.no_history,
            history_days: self.history_days,
            ..ProjectSettings::default()
        };
        let new = NewProject { slug: self.slug, name, settings };
        let Some(project) = runtime()?.block_on(store.create_project(&new))? else {
            return Err(Failure::usage(&format_args!(
                "the store has a project or another connection `{}`; choose another slug",
                new.slug
            )));
        };
        if printer.json {
            printer.value(&project);
        } else {
            printer.line(format_args!(
                "created `{0}`; import documents with `fetchwell import docs DIR --project {0}`",
                project.slug
            ));
        }
        Ok(())
    }
}
