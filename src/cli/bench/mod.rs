//! `fetchwell bench`: benchmarks of the parts of a call and of a configuration reload.
//!
//! One file per benchmark; `texts` generates the texts, `times` measures, `machine` describes the
//! machine, `server` is the server that several of them call.

mod all;
mod chunks;
mod context;
mod cursor;
mod machine;
mod reload;
mod server;
mod texts;
mod times;
mod tokens;

use clap::{Args, Subcommand};

use super::print::Printer;
use crate::app::failure::Failure;

/// Measure the speed of parts of fetchwell on this machine.
#[derive(Debug, Args)]
pub(super) struct Bench {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Writing and reading the text of a cursor.
    Cursor,
    /// A change of the configuration file, from the write until it takes effect, while calls are answered.
    Reload,
    /// Estimates of tokens against the exact count, for fifteen kinds of text.
    Tokens,
    /// Calls with and without fitting their answers into a model's context, and chunks of a long text.
    Context,
    /// All of these.
    All,
}

impl Bench {
    pub(super) fn run(self, printer: Printer) -> Result<(), Failure> {
        match self.command {
            Command::Cursor => cursor::run(printer),
            Command::Reload => reload::run(printer),
            Command::Tokens => tokens::run(printer),
            Command::Context => context::run(printer),
            Command::All => all::run(printer),
        }
    }
}
