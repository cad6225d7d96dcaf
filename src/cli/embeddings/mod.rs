//! `fetchwell embeddings`: the vectors of a store, for search by meaning.
//!
//! * `install`, `status`, `build`, `remove`: the commands, `progress`: the progress of a build
//! * `imported`: embedding after an import, `described`: descriptions

mod build;
mod described;
mod imported;
mod install;
mod progress;
mod remove;
mod status;

use clap::{Args, Subcommand};

pub(super) use imported::EmbedArgs;
pub(super) use install::{ModelChoice, ModelConfig, build_vectors, configure};

use super::print::Printer;
use crate::app::failure::Failure;
use crate::config::Environment;

/// Install a model; build, show and remove the vectors of a store, by which searches find records by meaning.
#[derive(Debug, Args)]
pub(super) struct Embeddings {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Install(install::Install),
    Status(status::Status),
    Build(build::Build),
    Rebuild(build::Rebuild),
    Remove(remove::Remove),
}

impl Embeddings {
    pub(super) fn run(self, printer: Printer, environment: &Environment) -> Result<(), Failure> {
        match self.command {
            Command::Install(command) => command.run(printer, environment),
            Command::Status(command) => command.run(printer, environment),
            Command::Build(command) => command.run(printer, environment),
            Command::Rebuild(command) => command.run(printer, environment),
            Command::Remove(command) => command.run(printer, environment),
        }
    }
}
