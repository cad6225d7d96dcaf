//! `fetchwell embeddings remove`: deletes the vectors of a store.

use clap::Args;
use serde_json::json;

use super::database::remove;
use crate::app::failure::Failure;
use crate::app::open::runtime;
use crate::cli::backup::{StoreArgs, StorePlace};
use crate::cli::print::Printer;
use crate::config::Environment;
use crate::source::sqlite::remove_vectors;

/// Delete the vectors of a store. Its records stay.
#[derive(Debug, Args)]
pub(super) struct Remove {
    #[command(flatten)]
    store: StoreArgs,
}

impl Remove {
    pub(super) fn run(self, printer: Printer, environment: &Environment) -> Result<(), Failure> {
        let store = match self.store.place_to_write(environment)? {
            StorePlace::File(store) => store,
            StorePlace::Postgres(pool) => return runtime()?.block_on(remove(&pool, printer)),
        };
        let removed = runtime()?.block_on(remove_vectors(&store))?;
        if printer.json {
            printer.value(&json!({ "store": store, "removed": removed }));
        } else if removed {
            printer.line(format_args!("{}: the vectors are removed", store.display()));
        } else {
            printer.line(format_args!("{}: it has no vectors", store.display()));
        }
        Ok(())
    }
}
