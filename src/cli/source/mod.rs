//! `fetchwell source`: changes and tests the sources of a configuration file.
//!
//! * `add`, `list`, `test`, `inspect`, `login`, `remove`: the commands
//! * `file_args`: the configuration file, which all of them read

mod add;
mod file_args;
mod inspect;
mod list;
mod login;
mod remove;
mod test;

use clap::{Args, Subcommand};

pub(super) use file_args::FileArgs;

use super::print::Printer;
use crate::app::failure::Failure;
use crate::config::Environment;

/// Add, list, test and remove the sources of a configuration file.
#[derive(Debug, Args)]
pub(super) struct Source {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Add(Box<add::Add>),
    List(list::List),
    Test(test::Test),
    Inspect(inspect::Inspect),
    Login(login::Login),
    Remove(remove::Remove),
}

impl Source {
    pub(super) fn run(self, printer: Printer, environment: &Environment) -> Result<(), Failure> {
        match self.command {
            Command::Add(command) => command.run(printer, environment),
            Command::List(command) => command.run(printer),
            Command::Test(command) => command.run(printer, environment),
            Command::Inspect(command) => command.run(printer, environment),
            Command::Login(command) => command.run(printer, environment),
            Command::Remove(command) => command.run(printer),
        }
    }
}
