//! `fetchwell completions`: prints the completion script of a shell.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use super::Cli;
use super::print::Printer;
use crate::app::failure::Failure;

/// Print completions for a shell.
#[derive(Debug, Args)]
pub(super) struct Completions {
    /// The shell.
    shell: Shell,
}

impl Completions {
    pub(super) fn run(self, printer: Printer) -> Result<(), Failure> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "fetchwell", &mut script);
        printer.lines(String::from_utf8_lossy(&script).trim_end_matches('\n'));
        Ok(())
    }
}
