//! `fetchwell project`: creates, lists, shows, changes and removes projects of documents.
//!
//! * `create`, `list`, `show`, `set`, `remove`: a file per command, `store`: the store that they mean

mod create;
mod list;
mod remove;
mod set;
mod show;
mod store;

use clap::{Args, Subcommand};

use super::print::Printer;
use crate::app::failure::Failure;
use crate::config::Environment;

/// Manage projects: collections of documents for search. `fetchwell import docs` imports the documents.
#[derive(Debug, Args)]
pub(super) struct Project {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Create(create::Create),
    List(list::List),
    Show(show::Show),
    Set(set::Set),
    Remove(remove::Remove),
}

impl Project {
    pub(super) fn run(self, printer: Printer, environment: &Environment) -> Result<(), Failure> {
        match self.command {
            Command::Create(command) => command.run(printer, environment),
            Command::List(command) => command.run(printer, environment),
            Command::Show(command) => command.run(printer, environment),
            Command::Set(command) => command.run(printer, environment),
            Command::Remove(command) => command.run(printer, environment),
        }
    }
}
