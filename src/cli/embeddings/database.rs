//! The vectors of a store in PostgreSQL: those of the documents of its projects.

use serde_json::json;

use crate::app::failure::Failure;
use crate::cli::print::{Printer, grouped};
use crate::config::{FileSettings, SourcePlace};
use crate::embedding::EmbeddingModel;
use crate::source::PostgresError;
use crate::source::documents::DOCUMENTS_STREAM;
use crate::source::postgres::{
    ModelStatus, PostgresPool, PostgresUrl, PostgresVectorStatus, estimate_postgres_build,
    postgres_vector_status, remove_postgres_vectors,
};
use crate::source::store::{BuildMode, BuildProgress, StoreError, VectorError};

/// Returns true if a configuration shows the documents of a database under any of its names. Text of hidden streams is sent
/// to no model.
pub(super) fn shows_documents(settings: &FileSettings, url: &PostgresUrl) -> bool {
    let is_this =
        |place: &SourcePlace| matches!(place, SourcePlace::Postgres { url: other, .. } if other == url);
    let mut named = settings.sources.iter().filter(|source| is_this(&source.place)).peekable();
    let shows = |streams: &[crate::handle::StreamName]| {
        streams.iter().any(|stream| stream.as_str() == DOCUMENTS_STREAM)
    };
    named.peek().is_none() || named.any(|source| source.streams.as_deref().is_none_or(shows))
}

/// Returns the work that a build has to do: none if documents are hidden.
pub(super) async fn estimate(
    pool: &PostgresPool,
    model: &dyn EmbeddingModel,
    mode: BuildMode,
    settings: &FileSettings,
) -> Result<BuildProgress, Failure> {
    if shows_documents(settings, pool.url()) {
        Ok(estimate_postgres_build(pool, model, mode).await?)
    } else {
        Ok(BuildProgress::default())
    }
}

/// Returns the work that is left after an import; `None` for a database without pgvector, which has no vectors.
pub(super) async fn estimate_imported(
    pool: &PostgresPool,
    model: &dyn EmbeddingModel,
    settings: &FileSettings,
) -> Result<Option<BuildProgress>, Failure> {
    if !shows_documents(settings, pool.url()) {
        return Ok(None);
    }
    match estimate_postgres_build(pool, model, BuildMode::Missing).await {
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
    let status = postgres_vector_status(pool).await?;
    let disclosure = settings.embedding.as_ref().map(|configured| configured.settings.disclosure());
    if printer.json {
        let store = pool.url().to_string();
        printer.value(&json!({ "store": store, "vectors": status, "disclosure": disclosure }));
        return Ok(());
    }
    let PostgresVectorStatus { models, missing, is_locked, is_indexed } = status;
    if models.is_empty() {
        printer.line(format_args!("{}: no vectors are searched", pool.url()));
    }
    for ModelStatus { model, dimensions, chunks } in models {
        printer.line(format_args!(
            "{}: {} chunks of documents of {dimensions} dimensions by {model}",
            pool.url(),
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
        printer.line("a process is embedding documents now");
    }
    match disclosure {
        Some(disclosure) => printer.line(disclosure),
        None => printer.line("no embedding model is configured: [embedding] is missing"),
    }
    Ok(())
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
