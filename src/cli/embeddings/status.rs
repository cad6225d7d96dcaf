//! `fetchwell embeddings status`: the state of the vectors of a store.

use clap::Args;
use fetchwell_source::contract::{DocumentVectorStatus, ModelStatus, VectorScan, VectorStatus};
use serde_json::json;

use super::described::{OTHER_MODEL, described};
use crate::app::embedding::vectors_of;
use crate::app::failure::Failure;
use crate::app::imports::ImportStore;
use crate::app::open::runtime;
use crate::cli::backup::StoreArgs;
use crate::cli::print::{Printer, grouped};
use crate::config::Environment;

/// Show the vectors of a store: their model, their number, and the records that they lack.
#[derive(Debug, Args)]
pub(super) struct Status {
    #[command(flatten)]
    store: StoreArgs,
}

impl Status {
    pub(super) fn run(self, printer: Printer, environment: &Environment) -> Result<(), Failure> {
        let settings = self.store.settings(environment)?;
        let store = self.store.place(environment)?;
        let vectors = vectors_of(&store, &settings, environment)?;
        let status = runtime()?.block_on(async {
            vectors.check().await?;
            vectors.status().await
        })?;
        let disclosure = settings.embedding.as_ref().map(|configured| configured.settings.disclosure());
        let is_configured = match (&status.current, &settings.embedding) {
            (Some(current), Some(configured)) => configured.settings.is_identity(&current.model).ok(),
            _ => None,
        };
        if printer.json {
            printer.value(&json!({
                "store": store.to_string(),
                "vectors": status.to_json(),
                "is_configured_model": is_configured,
                "disclosure": disclosure,
            }));
            return Ok(());
        }
        print_records(&store, &status, printer);
        if is_configured == Some(false) {
            printer.line(OTHER_MODEL);
        }
        match &status.documents {
            Some(documents) => print_documents(&store, documents, printer),
            None => print_building(&status, printer),
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

/// Prints the state of the vectors of records.
fn print_records(store: &ImportStore, status: &VectorStatus, printer: Printer) {
    match (&status.current, &status.documents) {
        (Some(current), _) => {
            let bytes = grouped(status.bytes);
            printer.line(format_args!("{store}: {}, {bytes} bytes", described(current)));
        }
        (None, None) => printer.line(format_args!("{store} has no vectors to search")),
        (None, Some(documents)) if documents.models.is_empty() => {
            printer.line(format_args!("{store}: no vectors are searched"));
        }
        (None, Some(_)) => {}
    }
    if let Some(scan) = status.scan.and_then(VectorScan::describe) {
        printer.line(format_args!("the vectors of records are {scan}"));
    }
    if status.documents.is_some() {
        print_building(status, printer);
    }
}

fn print_building(status: &VectorStatus, printer: Printer) {
    if let Some(building) = &status.building {
        printer.line(format_args!("being built: {}", described(building)));
    }
}

/// Prints the state of the vectors of documents in a database.
fn print_documents(store: &ImportStore, documents: &DocumentVectorStatus, printer: Printer) {
    let DocumentVectorStatus { models, building, missing, is_indexed, is_embedded: _ } = documents;
    let of_documents = |ModelStatus { model, dimensions, chunks }: &ModelStatus| {
        format!("{} chunks of documents of {dimensions} dimensions by {model}", grouped(*chunks))
    };
    for model in models {
        printer.line(format_args!("{store}: {}", of_documents(model)));
    }
    if let Some(building) = building {
        printer.line(format_args!("being built: {}", of_documents(building)));
    }
    if *missing > 0 {
        printer.line(format_args!("{} chunks have no vectors", grouped(*missing)));
    }
    if !is_indexed {
        printer.line("the index of vectors is missing: run `fetchwell embeddings build`");
    }
}
