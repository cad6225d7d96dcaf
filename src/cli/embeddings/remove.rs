//! `fetchwell embeddings remove`: deletes the vectors of a store.

use clap::Args;
use serde_json::json;

use crate::app::embedding::vectors_of;
use crate::app::failure::Failure;
use crate::app::open::runtime;
use crate::cli::backup::StoreArgs;
use crate::cli::print::Printer;
use crate::config::Environment;

/// Delete the vectors of a store. Its records stay.
#[derive(Debug, Args)]
pub(super) struct Remove {
    #[command(flatten)]
    store: StoreArgs,
}

impl Remove {
    pub(super) fn run(self, printer: Printer, environment: &Environment) -> Result<(), Failure> {
        let store = self.store.place_to_write(environment)?;
        let vectors = vectors_of(&store, &self.store.settings(environment)?, environment)?;
        let removed = runtime()?.block_on(vectors.remove())?;
        if printer.json {
            printer.value(&json!({ "store": store.to_string(), "removed": removed }));
        } else if removed {
            printer.line(format_args!("{store}: the vectors are removed"));
        } else {
            printer.line(format_args!("{store}: it has no vectors"));
        }
        Ok(())
    }
}
