//! `fetchwell source remove`: removes a source from the configuration file.

use clap::Args;
use serde_json::json;

use super::file_args::{FileArgs, unknown};
use crate::app::failure::Failure;
use crate::cli::print::Printer;
use crate::config::{ConfigError, check_text, delete, is_blank, without_source};

/// Remove a source from the configuration file; the store or server is not changed
///
/// A file in which nothing else is left is deleted.
#[derive(Debug, Args)]
pub(super) struct Remove {
    /// The name of the source.
    name: String,

    #[command(flatten)]
    file: FileArgs,
}

impl Remove {
    pub(super) fn run(self, printer: Printer) -> Result<(), Failure> {
        self.file.path_to_edit()?;
        let (path, text, settings) = self.file.read()?;
        let edited = without_source(&text, &self.name);
        let edited = edited.map_err(|problem| ConfigError::invalid(path.clone(), problem))?;
        let edited = edited.ok_or_else(|| unknown(&self.name, &settings))?;
        // The edited text is validated before it is written.
        check_text(&edited, &path)?;
        // An empty file is refused by other commands, because a failed save leaves one.
        let is_deleted = is_blank(&edited);
        if is_deleted {
            delete(&path)?;
        } else {
            self.file.save(&path, &text, &edited)?;
        }
        if printer.json {
            printer.value(&json!({ "removed": self.name, "config": path, "config_deleted": is_deleted }));
        } else {
            let rest = if is_deleted { ", and deleted the file, in which nothing was left" } else { "" };
            printer.line(format_args!("Removed `{}` from {}{rest}.", self.name, path.display()));
        }
        Ok(())
    }
}
