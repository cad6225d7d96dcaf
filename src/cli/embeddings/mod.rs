//! `fetchwell embeddings`: the vectors of a store, for search by meaning.
//!
//! * `status`, `build`, `remove`: the commands, `progress`: the progress of a build
//! * `imported`: embedding after an import, `described`: descriptions

mod build;
mod described;
mod imported;
mod progress;
mod remove;
mod status;

use clap::{Args, Subcommand};

pub(super) use imported::EmbedArgs;

use super::backup::StorePlace;
use super::print::Printer;
use crate::app::embedding::{open_vectors, shown_streams};
use crate::app::failure::Failure;
use crate::app::imports::ImportStore;
use crate::config::{Environment, FileSettings};
use crate::source::vectors::StoreVectors;

/// Build, show and remove the vectors of a store, by which searches find records by meaning.
#[derive(Debug, Args)]
pub(super) struct Embeddings {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Status(status::Status),
    Build(build::Build),
    Rebuild(build::Rebuild),
    Remove(remove::Remove),
}

impl Embeddings {
    pub(super) fn run(self, printer: Printer, environment: &Environment) -> Result<(), Failure> {
        match self.command {
            Command::Status(command) => command.run(printer, environment),
            Command::Build(command) => command.run(printer, environment),
            Command::Rebuild(command) => command.run(printer, environment),
            Command::Remove(command) => command.run(printer, environment),
        }
    }
}

/// Returns the vectors of a store that a command means.
fn vectors_of(
    place: &StorePlace,
    settings: &FileSettings,
    environment: &Environment,
) -> Result<Box<dyn StoreVectors>, Failure> {
    let store = match place {
        StorePlace::File(path) => ImportStore::File(path.clone()),
        StorePlace::Postgres(pool) => ImportStore::Postgres(pool.url().clone()),
    };
    Ok(open_vectors(&store, shown_streams(settings, &store), environment)?)
}
