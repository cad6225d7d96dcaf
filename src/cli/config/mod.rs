//! `fetchwell config`: validates configuration files and manages the trust in those that were only found.
//!
//! * `check`: validates a file in the way `serve` does
//! * `trust`: records which found files are trusted

mod check;
mod trust;

use clap::{Args, Subcommand};

use super::print::Printer;
use crate::app::failure::Failure;
use crate::config::Environment;

/// Check a configuration file, or trust one that was only found.
#[derive(Debug, Args)]
pub(super) struct Config {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Check(check::Check),
    Trust(trust::Trust),
}

impl Config {
    pub(super) fn run(self, printer: Printer, environment: &Environment) -> Result<(), Failure> {
        match self.command {
            Command::Check(command) => command.run(printer, environment),
            Command::Trust(command) => command.run(printer),
        }
    }
}
