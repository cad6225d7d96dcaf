//! The command `fetchwell restore`

use std::path::PathBuf;

use clap::Args;
use fetchwell_sqlite::{RestoreReport, restore_store};
use serde_json::json;

use super::chosen_store::StoreArgs;
use super::{described, until_stopped};
use crate::app::failure::Failure;
use crate::cli::print::Printer;
use crate::config::Environment;

/// Replace the records of a store with those of a backup, while servers keep running.
///
/// The records that the store has now are kept in a backup beside it.
#[derive(Debug, Args)]
pub(crate) struct Restore {
    /// The backup, made by `fetchwell backup`.
    file: PathBuf,

    #[command(flatten)]
    store: StoreArgs,

    /// Keep no copy of the records that the store has now.
    #[arg(long)]
    force: bool,
}

impl Restore {
    pub(crate) fn run(self, printer: Printer, environment: &Environment) -> Result<(), Failure> {
        let Self { file, store, force } = self;
        let store = store.file_to_restore(environment)?;
        let (from, to) = (file.clone(), store.clone());
        let RestoreReport { contents, earlier } =
            until_stopped(move |stop| restore_store(&from, &to, force, stop))?;
        if printer.json {
            printer
                .value(&json!({ "store": store, "backup": file, "contents": contents, "earlier": earlier }));
            return Ok(());
        }
        printer.line(format_args!("{}: {}", store.display(), described(contents)));
        if let Some(earlier) = earlier {
            printer.line(format_args!("The records it had before are kept in {}", earlier.display()));
        }
        Ok(())
    }
}
