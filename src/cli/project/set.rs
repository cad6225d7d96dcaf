//! `fetchwell project set`: changes the name or the history of a project.

use clap::{ArgGroup, Args};
use fetchwell_source::documents::{ProjectChange, ProjectName, ProjectRef};

use super::show::{described_history, no_project};
use super::store::open;
use crate::app::failure::Failure;
use crate::app::open::runtime;
use crate::cli::backup::StoreArgs;
use crate::cli::print::Printer;
use crate::config::Environment;

/// Change the name or the search history of a project. Its slug, its id and its documents stay.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("change").required(true).multiple(true))]
pub(super) struct Set {
    /// The slug or the id of the project.
    #[arg(value_name = "SLUG")]
    project: ProjectRef,
    /// A name for people, such as `Team handbook`.
    #[arg(long, value_name = "NAME", group = "change")]
    name: Option<ProjectName>,
    /// Keep a history of searches.
    #[arg(long, group = "change")]
    history: bool,
    /// Keep no history of searches, and delete those that it has.
    #[arg(long, conflicts_with_all = ["history", "history_days"], group = "change")]
    no_history: bool,
    /// Delete searches from the history after this number of days; 0 keeps no history.
    #[arg(long, value_name = "DAYS", group = "change")]
    history_days: Option<u32>,
    #[command(flatten)]
    store: StoreArgs,
}

impl Set {
    pub(super) fn run(self, printer: Printer, environment: &Environment) -> Result<(), Failure> {
        let Self { project, name, history, no_history, history_days, store } = self;
        let store = open(&*store.store_to_write(environment)?)?;
        // A number of days means a history.
        let has_history = history || history_days.is_some();
        let history = (has_history || no_history).then_some(has_history);
        let change = ProjectChange { name, history, history_days };
        let runtime = runtime()?;
        let found = runtime.block_on(store.project(&project))?.ok_or_else(|| no_project(&project))?;
        let changed = runtime.block_on(store.change_project(found.id, &change))?;
        let changed = changed.ok_or_else(|| no_project(&project))?;
        if printer.json {
            printer.value(&changed);
        } else {
            printer.line(format_args!(
                "changed `{}`: {}, {}",
                changed.slug,
                changed.name,
                described_history(&changed.settings)
            ));
        }
        Ok(())
    }
}
