//! Writes the chunks of documents by `COPY`. The next chunks are computed while the server stores the ones before.

use std::panic::resume_unwind;
use std::sync::Arc;

use deadpool_postgres::Transaction;
use fetchwell_core::saturate::saturated;
use fetchwell_source::documents::{ChunkIds, Uuid, tiles};
use tokio::sync::mpsc::{Sender, channel};
use tokio::task::spawn_blocking;
use tokio_postgres::Error;
use tokio_postgres::types::{Kind, ToSql, Type};

use super::hash_vector::{HASH_LABEL, hash_vector};
use super::storable::{storable, without_nul};
use crate::bulk::copy::{CopyRow, copy_rows};
use crate::bulk::values::{SqlJson, SqlUuid};
use crate::extension::vector::SqlVector;

/// Number of chunks that are written by one statement. Their vectors take 4 KB each.
const CHUNKS_AT_ONCE: usize = 500;

/// Document that gets new chunks.
#[derive(Debug)]
pub(super) struct ChunkedDocument {
    pub(super) id: Uuid,
    pub(super) text: String,
}

/// Chunk that is not yet in the table.
#[derive(Debug)]
struct NewChunk {
    /// Id of a chunk that is copied. The server chooses the others.
    id: Option<SqlUuid>,
    document: SqlUuid,
    content: String,
    vector: Vec<f32>,
    number: i32,
    tokens: i32,
    metadata: SqlJson,
}

/// Writes the chunks of documents that have none.
pub(super) async fn write_chunks(
    transaction: &Transaction<'_>,
    project: Uuid,
    documents: Vec<ChunkedDocument>,
    ids: Arc<ChunkIds>,
) -> Result<(), Error> {
    let (sender, mut receiver) = channel(1);
    let computing = spawn_blocking(move || compute_chunks(&documents, &ids, &sender));
    let project = SqlUuid::from(project);
    while let Some(chunks) = receiver.recv().await {
        let (copied, new): (Vec<&NewChunk>, Vec<&NewChunk>) =
            chunks.iter().partition(|chunk: &&NewChunk| chunk.id.is_some());
        copy_chunks(transaction, &project, &new).await?;
        copy_chunks_with_ids(transaction, &project, &copied).await?;
    }
    // A task is cancelled when the runtime ends, and with it the connection: then nothing is committed.
    computing.await.unwrap_or_else(|failed| match failed.try_into_panic() {
        Ok(panicked) => resume_unwind(panicked),
        Err(_cancelled) => (),
    });
    Ok(())
}

/// Computes the chunks of documents, and sends them in their order until the receiver is dropped.
fn compute_chunks(documents: &[ChunkedDocument], ids: &ChunkIds, sender: &Sender<Vec<NewChunk>>) {
    let mut chunks = Vec::with_capacity(CHUNKS_AT_ONCE);
    for document in documents {
        for (number, tile) in tiles(&document.text).into_iter().enumerate() {
            let content = document.text.get(tile.range.clone()).unwrap_or_default();
            let mut metadata = serde_json::to_value(&tile.metadata).unwrap_or_default();
            if let Some(fields) = metadata.as_object_mut() {
                fields.insert("embedding".to_owned(), HASH_LABEL.into());
            }
            chunks.push(NewChunk {
                id: ids.get(document.id, number).map(SqlUuid::from),
                document: SqlUuid::from(document.id),
                content: storable(content),
                vector: hash_vector(content),
                number: saturated::<i32>(number),
                tokens: saturated::<i32>(tile.token_count),
                metadata: SqlJson(without_nul(metadata).to_string()),
            });
            if chunks.len() >= CHUNKS_AT_ONCE && sender.blocking_send(std::mem::take(&mut chunks)).is_err() {
                return;
            }
        }
    }
    // The receiver is dropped after an error.
    let _dropped = sender.blocking_send(chunks);
}

/// Columns of all chunks with their types.
const COLUMNS: &str = "document_id, project_id, content, embedding, chunk_index, token_count, metadata";

fn types() -> [Type; 7] {
    let vector = Type::new("vector".to_owned(), 0, Kind::Simple, String::new());
    [Type::UUID, Type::UUID, Type::TEXT, vector, Type::INT4, Type::INT4, Type::JSONB]
}

async fn copy_chunks(
    transaction: &Transaction<'_>,
    project: &SqlUuid,
    chunks: &[&NewChunk],
) -> Result<(), Error> {
    let vectors: Vec<SqlVector<'_>> = chunks.iter().map(|chunk| SqlVector(&chunk.vector)).collect();
    let row = |(chunk, vector)| values(project, chunk, vector);
    let rows: Vec<CopyRow<'_, 7>> = chunks.iter().copied().zip(&vectors).map(row).collect();
    copy_rows(transaction, &format!("fetchwell.chunks ({COLUMNS})"), &types(), &rows).await
}

async fn copy_chunks_with_ids(
    transaction: &Transaction<'_>,
    project: &SqlUuid,
    chunks: &[&NewChunk],
) -> Result<(), Error> {
    let vectors: Vec<SqlVector<'_>> = chunks.iter().map(|chunk| SqlVector(&chunk.vector)).collect();
    let row = |(chunk, vector)| {
        let [document, project, content, vector, number, tokens, metadata] = values(project, chunk, vector);
        [document, project, content, vector, number, tokens, metadata, &chunk.id as &(dyn ToSql + Sync)]
    };
    let rows: Vec<CopyRow<'_, 8>> = chunks.iter().copied().zip(&vectors).map(row).collect();
    let [document, project, content, vector, number, tokens, metadata] = types();
    let types = [document, project, content, vector, number, tokens, metadata, Type::UUID];
    copy_rows(transaction, &format!("fetchwell.chunks ({COLUMNS}, id)"), &types, &rows).await
}

/// Returns the values of the columns of a chunk.
fn values<'r>(project: &'r SqlUuid, chunk: &'r NewChunk, vector: &'r SqlVector<'_>) -> CopyRow<'r, 7> {
    let NewChunk { document, content, number, tokens, metadata, .. } = chunk;
    [document, project, content, vector, number, tokens, metadata]
}
