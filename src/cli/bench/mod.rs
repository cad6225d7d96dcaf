//! `fetchwell bench`: benchmarks of the parts of a call and of a configuration reload.
//!
//! * `all`, `context`, `cursor`, `reload`, `tokens`: the benchmarks, one per file; `chunks`: the last part of `context`
//! * `texts`, `server`: generated texts, and the server that several benchmarks call
//! * `times`, `machine`: measurement of times, description of the machine

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
    /// Measure writing and reading the text of a cursor.
    Cursor,
    /// Measure the time until a change of the configuration file takes effect, while calls are answered.
    Reload,
    /// Compare estimates of tokens with the exact count, for fifteen kinds of text.
    Tokens,
    /// Measure calls with and without fitting their answers into a model's context, and chunks of a long text.
    Context,
    /// Run all of these.
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
