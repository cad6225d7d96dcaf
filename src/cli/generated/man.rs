//! `fetchwell man`: writes manual pages, which packages contain.

use std::fs;
use std::path::PathBuf;

use clap::{Args, Command};

use crate::app::failure::Failure;
use crate::cli::print::Printer;

/// Write the manual pages of all commands to a folder.
#[derive(Debug, Args)]
#[command(hide = true)]
pub(crate) struct Man {
    /// The folder, which is created if it does not exist.
    folder: PathBuf,
}

impl Man {
    /// Writes a page for `program`, the command line of this program, and one for each command of it.
    pub(crate) fn run(self, program: Command, printer: Printer) -> Result<(), Failure> {
        let written =
            fs::create_dir_all(&self.folder).and_then(|()| clap_mangen::generate_to(program, &self.folder));
        written.map_err(|error| {
            Failure::new(format!(
                "{} cannot be written ({error}); name another folder",
                self.folder.display()
            ))
        })?;
        printer.line(self.folder.display());
        Ok(())
    }
}
