//! `fetchwell embeddings status`: the state of the vectors of a store.

use clap::Args;
use serde_json::json;

use super::database::print_status;
use super::described::{OTHER_MODEL, described};
use crate::app::embedding::embedded_streams;
use crate::app::failure::Failure;
use crate::app::open::runtime;
use crate::cli::backup::{StoreArgs, StorePlace};
use crate::cli::print::{Printer, grouped};
use crate::config::Environment;
use crate::source::sqlite::{check_vectors, vector_status};

/// Show the vectors of a store: their model, their number, and the records that they lack.
#[derive(Debug, Args)]
pub(super) struct Status {
    #[command(flatten)]
    store: StoreArgs,
}

impl Status {
    pub(super) fn run(self, printer: Printer, environment: &Environment) -> Result<(), Failure> {
        let settings = self.store.settings(environment)?;
        let store = match self.store.place(environment)? {
            StorePlace::File(store) => store,
            StorePlace::Postgres(pool) => {
                return runtime()?.block_on(print_status(&pool, &settings, printer));
            }
        };
        check_vectors(&store)?;
        let status = vector_status(&store, &embedded_streams(&settings, &store))?;
        let disclosure = settings.embedding.as_ref().map(|configured| configured.settings.disclosure());
        let is_configured = match (&status.current, &settings.embedding) {
            (Some(current), Some(configured)) => configured.settings.is_identity(&current.model).ok(),
            _ => None,
        };
        if printer.json {
            printer.value(&json!({
                "store": store,
                "vectors": status,
                "is_configured_model": is_configured,
                "disclosure": disclosure,
            }));
            return Ok(());
        }
        match &status.current {
            None => printer.line(format_args!("{} has no vectors to search", store.display())),
            Some(current) => printer.line(format_args!(
                "{}: {}, {} bytes",
                store.display(),
                described(current),
                grouped(status.bytes)
            )),
        }
        if is_configured == Some(false) {
            printer.line(OTHER_MODEL);
        }
        if let Some(building) = &status.building {
            printer.line(format_args!("being built: {}", described(building)));
        }
        if status.is_locked {
            printer.line("a process is embedding records now");
        }
        match disclosure {
            Some(disclosure) => printer.line(disclosure),
            None => printer.line("no embedding model is configured: [embedding] is missing"),
        }
        Ok(())
    }
}
