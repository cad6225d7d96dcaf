//! The vectors of a store in PostgreSQL, of records and of documents.

use serde_json::json;

use super::described::{OTHER_MODEL, described};
use crate::app::embedding::embedded_streams_of_database;
use crate::app::failure::Failure;
use crate::cli::print::{Printer, grouped};
use crate::config::FileSettings;
use crate::embedding::EmbeddingModel;
use crate::source::contract::{
    BuildMode, BuildProgress, EmbeddedStreams, PostgresError, StoreError, VectorError,
};
use crate::source::postgres::{
    ModelStatus, PostgresPool, PostgresVectorStatus, RecordVectorStatus, VectorScan, estimate_postgres_build,
    postgres_vector_status, remove_postgres_vectors,
};

/// Returns the work that is left after an import; `None` for a database without pgvector, which has no vectors.
pub(super) async fn estimate_imported(
    pool: &PostgresPool,
    model: &dyn EmbeddingModel,
    streams: &EmbeddedStreams,
) -> Result<Option<BuildProgress>, Failure> {
    match estimate_postgres_build(pool, model, BuildMode::Missing, streams).await {
        Err(VectorError::Store(StoreError::Postgres(PostgresError::NoPgvector { .. }))) => Ok(None),
        estimate => Ok(Some(estimate?)),
    }
}

/// Prints the state of the vectors of a database.
pub(super) async fn print_status(
    pool: &PostgresPool,
    settings: &FileSettings,
    printer: Printer,
) -> Result<(), Failure> {
    let streams = embedded_streams_of_database(settings, pool.url());
    let status = postgres_vector_status(pool, &streams).await?;
    let disclosure = settings.embedding.as_ref().map(|configured| configured.settings.disclosure());
    let is_configured = match (&status.records.current, &settings.embedding) {
        (Some(current), Some(configured)) => configured.settings.is_identity(&current.model).ok(),
        _ => None,
    };
    if printer.json {
        let store = pool.url().to_string();
        printer.value(&json!({
            "store": store,
            "vectors": status,
            "is_configured_model": is_configured,
            "disclosure": disclosure,
        }));
        return Ok(());
    }
    let PostgresVectorStatus { records, models, building, missing, is_locked, is_indexed } = status;
    if models.is_empty() && records.current.is_none() {
        printer.line(format_args!("{}: no vectors are searched", pool.url()));
    }
    print_records(pool, &records, printer);
    if is_configured == Some(false) {
        printer.line(OTHER_MODEL);
    }
    for ModelStatus { model, dimensions, chunks } in models {
        printer.line(format_args!(
            "{}: {} chunks of documents of {dimensions} dimensions by {model}",
            pool.url(),
            grouped(chunks)
        ));
    }
    if let Some(ModelStatus { model, dimensions, chunks }) = building {
        printer.line(format_args!(
            "being built: {} chunks of documents of {dimensions} dimensions by {model}",
            grouped(chunks)
        ));
    }
    if missing > 0 {
        printer.line(format_args!("{} chunks have no vectors", grouped(missing)));
    }
    if !is_indexed {
        printer.line("the index of vectors is missing: run `fetchwell embeddings build`");
    }
    if is_locked {
        printer.line("a process is embedding records now");
    }
    match disclosure {
        Some(disclosure) => printer.line(disclosure),
        None => printer.line("no embedding model is configured: [embedding] is missing"),
    }
    Ok(())
}

/// Prints the state of the vectors of records.
fn print_records(pool: &PostgresPool, records: &RecordVectorStatus, printer: Printer) {
    if let Some(current) = &records.current {
        printer.line(format_args!(
            "{}: {}, {} bytes",
            pool.url(),
            described(current),
            grouped(records.bytes)
        ));
    }
    if let Some(scan) = records.scan.and_then(VectorScan::describe) {
        printer.line(format_args!("the vectors of records are {scan}"));
    }
    if let Some(building) = &records.building {
        printer.line(format_args!("being built: {}", described(building)));
    }
}

/// Removes the vectors of a database.
pub(super) async fn remove(pool: &PostgresPool, printer: Printer) -> Result<(), Failure> {
    let removed = remove_postgres_vectors(pool).await?;
    let store = pool.url().to_string();
    if printer.json {
        printer.value(&json!({ "store": store, "removed": removed }));
    } else if removed {
        printer.line(format_args!("{store}: the vectors are removed"));
    } else {
        printer.line(format_args!("{store}: it has no vectors"));
    }
    Ok(())
}
