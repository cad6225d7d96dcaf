//! Commands about the records of a store: what it has, their export, and their removal.
//!
//! * `info`: `fetchwell store info`
//! * `export`: `fetchwell export`
//! * `remove`: `fetchwell remove`

mod export;
mod info;
mod remove;

use clap::{Args, Subcommand};

pub(super) use export::Export;
pub(super) use remove::Remove;

use super::print::Printer;
use crate::app::failure::Failure;
use crate::config::Environment;

/// Show the path, sizes and counts of a store.
#[derive(Debug, Args)]
pub(super) struct Store {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Info(info::Info),
}

impl Store {
    pub(super) fn run(self, printer: Printer, environment: &Environment) -> Result<(), Failure> {
        match self.command {
            Command::Info(command) => command.run(printer, environment),
        }
    }
}
