//! The command `fetchwell backup`

use std::path::PathBuf;

use clap::Args;
use fetchwell_source::contract::BACKUP;
use fetchwell_sqlite::back_up_store;
use serde_json::json;

use super::chosen_store::StoreArgs;
use super::{described, until_stopped};
use crate::app::failure::Failure;
use crate::cli::print::Printer;
use crate::config::Environment;

/// Write a verified backup of a store, while servers and imports keep running.
#[derive(Debug, Args)]
pub(crate) struct Backup {
    /// The file to write.
    file: PathBuf,

    #[command(flatten)]
    store: StoreArgs,

    /// Replace an earlier backup of that name.
    #[arg(long)]
    force: bool,
}

impl Backup {
    pub(crate) fn run(self, printer: Printer, environment: &Environment) -> Result<(), Failure> {
        let Self { file, store, force } = self;
        let store = store.file_for(environment, BACKUP)?;
        let (from, to) = (store.clone(), file.clone());
        let contents = until_stopped(move |stop| back_up_store(&from, &to, force, stop))?;
        if printer.json {
            printer.value(&json!({ "backup": file, "store": store, "contents": contents }));
        } else {
            printer.line(format_args!("{}: {}", file.display(), described(contents)));
        }
        Ok(())
    }
}
