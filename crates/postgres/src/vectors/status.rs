//! The state of the vectors of documents, and their removal.

use fetchwell_source::contract::{DocumentVectorStatus, ModelStatus};
use tokio_postgres::{Client, Error};

use super::build::raise_versions;
use super::models::StoredModel;
use crate::extension::use_extension;
use crate::tables::optional_text;

/// Reads the state of the vectors of documents. `is_embedded` tells whether documents are embedded.
pub(crate) async fn document_vector_status(
    client: &Client,
    is_embedded: bool,
) -> Result<DocumentVectorStatus, Error> {
    let sql = "SELECT metadata ->> 'embedding', count(*) FROM fetchwell.chunks GROUP BY 1";
    let counts = client.query(sql, &[]).await?;
    let count = |label: &str| {
        let row = counts.iter().find(|row| optional_text(row, 0) == Some(label));
        row.map_or(0, |row| row.get::<_, i64>(1).unsigned_abs())
    };
    let status = |known: StoredModel| {
        let chunks = count(&known.label());
        ModelStatus { model: known.name, dimensions: known.dimensions, chunks }
    };
    let models: Vec<ModelStatus> = StoredModel::searched(client).await?.into_iter().map(status).collect();
    let sql = "SELECT m.model, m.dimensions, count(v.chunk) FROM fetchwell.embedding_models m
         LEFT JOIN fetchwell.chunk_vectors v ON v.model = m.id WHERE NOT m.is_searched GROUP BY m.id ORDER BY m.id DESC LIMIT 1";
    let building = client.query_opt(sql, &[]).await?.map(|row| ModelStatus {
        model: row.get(0),
        dimensions: usize::try_from(row.get::<_, i32>(1)).unwrap_or_default(),
        chunks: row.get::<_, i64>(2).unsigned_abs(),
    });
    let all: u64 = counts.iter().map(|row| row.get::<_, i64>(1).unsigned_abs()).sum();
    let missing = all.saturating_sub(models.iter().map(|model| model.chunks).sum());
    let sql = "SELECT to_regclass('fetchwell.idx_chunks_embedding') IS NOT NULL";
    let is_indexed = models.is_empty() || client.query_one(sql, &[]).await?.get(0);
    Ok(DocumentVectorStatus { models, building, missing, is_indexed, is_embedded })
}

/// Replaces the vectors of all chunks by zeros, and removes those of searches. The column of the contract has no empty value.
/// Hashes of words are replaced, too: they are made of the text, and no search compares them. Returns true if there were
/// vectors of a model.
pub(crate) async fn remove_document_vectors(client: &Client) -> Result<bool, Error> {
    let models = "DELETE FROM fetchwell.embedding_models";
    let had_models = client.execute(models, &[]).await? > 0;
    use_extension(client).await?;
    // A zero vector is not in the index; the next change of the document writes the hash of its words.
    let sql = "UPDATE fetchwell.chunks SET metadata = metadata || '{\"embedding\": \"hash\"}',
             embedding = array_fill(0::real, ARRAY[1024])::vector
         WHERE metadata ->> 'embedding' IS DISTINCT FROM 'hash' OR vector_norm(embedding) > 0";
    let removed = client.execute(sql, &[]).await?;
    let searches =
        "UPDATE fetchwell.search_history SET query_embedding = NULL WHERE query_embedding IS NOT NULL";
    client.execute(searches, &[]).await?;
    if had_models || removed > 0 {
        raise_versions(client, None).await?;
    }
    Ok(had_models)
}
