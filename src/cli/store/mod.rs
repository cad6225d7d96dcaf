//! Commands about the records of a store: what it has, their export, and their removal.
//!
//! * `info`: `fetchwell store info`, `migrate`: `store status` and `store migrate`
//! * `copy`: `fetchwell store copy`
//! * `export`: `fetchwell export`
//! * `remove`: `fetchwell remove`

mod copy;
mod export;
mod info;
mod migrate;
mod remove;

use clap::{Args, Subcommand};

pub(super) use export::Export;
pub(super) use remove::Remove;

use super::print::Printer;
use crate::app::failure::Failure;
use crate::config::Environment;

/// Show what a store has, migrate its tables, and copy it to another store.
#[derive(Debug, Args)]
pub(super) struct Store {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Info(info::Info),
    Status(migrate::Status),
    Migrate(migrate::Migrate),
    Copy(copy::Copy),
}

impl Store {
    pub(super) fn run(self, printer: Printer, environment: &Environment) -> Result<(), Failure> {
        match self.command {
            Command::Info(command) => command.run(printer, environment),
            Command::Status(command) => command.run(printer, environment),
            Command::Migrate(command) => command.run(printer, environment),
            Command::Copy(command) => command.run(printer, environment),
        }
    }
}
