//! `fetchwell completions`: prints the completion script of a shell.

use clap::{Args, Command};
use clap_complete::Shell;

use crate::app::failure::Failure;
use crate::cli::print::Printer;

/// Print completions for a shell.
#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// The shell.
    shell: Shell,
}

impl Completions {
    /// Prints the script for `program`, the command line of this program.
    pub(crate) fn run(self, mut program: Command, printer: Printer) -> Result<(), Failure> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut program, "fetchwell", &mut script);
        printer.lines(String::from_utf8_lossy(&script).trim_end_matches('\n'));
        Ok(())
    }
}
