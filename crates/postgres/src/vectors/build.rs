//! Builds the vectors of the documents of a database: embeds the chunks that lack a vector of the model, one batch at a time.
//!
//! The first model writes into the rows of the chunks. Vectors of another model, and of a rebuild, are kept beside them until
//! all are made, and then replace them in one transaction, so two models never mix and searches go on meanwhile. A stopped
//! build continues later. If many chunks get new vectors, the index is dropped and built again at the end, which is faster than
//! changing it for each vector.

use std::sync::Arc;

use deadpool_postgres::Object;
use fetchwell_core::saturate::saturated;
use fetchwell_embedding::{EmbeddingModel, Purpose};
use fetchwell_ranking::embedded_documents::EmbeddedTexts;
use fetchwell_ranking::meaning::mean_vector;
use fetchwell_source::contract::{
    BuildMode, BuildProgress, EMBEDDING_DIMENSIONS, PostgresError, StoreError, VectorError, WrongDimensions,
};
use tokio_postgres::{Client, Error, Row};

use super::index::{create_index, drop_index_for};
use super::models::StoredModel;
use crate::extension::use_extension;
use crate::extension::vector::SqlVector;
use crate::pool::PostgresPool;
use crate::tables::{optional_text, text};
use crate::transaction::{begin_read, begin_write, lock_version};

/// Id that sorts before the ids of all chunks.
const FIRST: &str = "00000000-0000-0000-0000-000000000000";

/// Builder of the vectors of the documents of a database. The caller holds the lease of builds.
pub(crate) struct DocumentVectorBuilder {
    pool: PostgresPool,
    model: Arc<dyn EmbeddingModel>,
    stored: StoredModel,
    /// True if the vectors replace those of another model, which are searched until all are made.
    is_staged: bool,
    /// Last chunk that was planned, by its id.
    after: String,
    has_new_vectors: bool,
    refused: usize,
}

/// Chunk to be embedded.
struct PlannedChunk {
    id: String,
    /// Texts within the limit of the model.
    texts: Vec<String>,
    pieces: usize,
}

fn failed(pool: &PostgresPool, error: &Error) -> VectorError {
    StoreError::from(pool.failure(error)).into()
}

/// Returns the labels of the vectors that a model made. A build of all chunks replaces them as well.
async fn made_by(client: &Client, model: &dyn EmbeddingModel) -> Result<Vec<StoredModel>, Error> {
    let mut stored = StoredModel::all(client).await?;
    stored.retain(|known| known.name == model.id());
    Ok(stored)
}

/// Returns an error for a database with projects if vectors have other dimensions than documents need.
pub(crate) async fn check_dimensions(pool: &PostgresPool, dimensions: usize) -> Result<(), VectorError> {
    if dimensions == EMBEDDING_DIMENSIONS {
        return Ok(());
    }
    let mut connection = pool.connection().await.map_err(StoreError::from)?;
    let has_projects = async {
        let transaction = begin_read(&mut connection, pool.url()).await?;
        let sql = "SELECT EXISTS (SELECT 1 FROM fetchwell.projects)";
        Ok(transaction.query_one(sql, &[]).await?.get(0))
    };
    let has_projects: bool = has_projects.await.map_err(|error| failed(pool, &error))?;
    if has_projects { Err(WrongDimensions(dimensions).into()) } else { Ok(()) }
}

/// Work that a build of the vectors of documents has to do.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DocumentWork {
    /// Chunks to embed. Each counts as one.
    pub(crate) progress: BuildProgress,
    /// True if there is something to do.
    pub(crate) is_needed: bool,
}

/// Returns the work that a build has to do, without a call of the model.
pub(crate) async fn estimate_documents(
    pool: &PostgresPool,
    model: &dyn EmbeddingModel,
    mode: BuildMode,
) -> Result<DocumentWork, PostgresError> {
    let mut connection = pool.connection().await?;
    let estimate = async {
        let transaction = begin_read(&mut connection, pool.url()).await?;
        let client = transaction.client();
        let replacing = match mode {
            BuildMode::All => None,
            BuildMode::Missing => StoredModel::replacing(client, model.id()).await?,
        };
        let labels: Vec<String> = match (mode, &replacing) {
            (BuildMode::All, _) => Vec::new(),
            (BuildMode::Missing, Some(replacing)) => vec![replacing.label()],
            (BuildMode::Missing, None) => {
                made_by(client, model).await?.iter().map(StoredModel::label).collect()
            }
        };
        let staged = replacing.as_ref().map(|model| model.id);
        let sql = "SELECT count(DISTINCT document_id), count(*), coalesce(sum(token_count), 0)::bigint FROM fetchwell.chunks c
             WHERE (metadata ->> 'embedding' <> ALL ($1) OR metadata ->> 'embedding' IS NULL)
               AND NOT EXISTS (SELECT 1 FROM fetchwell.chunk_vectors v WHERE v.chunk = c.id AND v.model = $2)";
        Ok((client.query_one(sql, &[&labels, &staged]).await?, replacing.is_some()))
    };
    let (row, is_begun) = estimate.await.map_err(|error| pool.failure(&error))?;
    let number = |column: usize| usize::try_from(row.get::<_, i64>(column)).unwrap_or_default();
    let (records, chunks, pieces) = (number(0), number(1), number(2));
    let progress = BuildProgress { records, chunks, embedded: chunks, pieces };
    Ok(DocumentWork { progress, is_needed: is_begun || chunks > 0 })
}

/// Raises the versions of all projects, since their searches find other chunks, and notes the model in their settings.
pub(super) async fn raise_versions(client: &Client, model: Option<&str>) -> Result<(), Error> {
    let sql = "UPDATE fetchwell.projects SET corpus_version = corpus_version + 1, settings = CASE
             WHEN $1::text IS NULL THEN settings - 'embedding_model'
             ELSE settings || jsonb_build_object('embedding_model', $1::text) END";
    client.execute(sql, &[&model]).await.map(drop)
}

impl DocumentVectorBuilder {
    /// Recognizes the model by its vector of the fixed text.
    ///
    /// # Errors
    ///
    /// The database cannot be used, the stored model of this name returned other vectors, or the model has other dimensions than
    /// the contract of document search.
    pub(crate) async fn open(
        pool: &PostgresPool,
        model: Arc<dyn EmbeddingModel>,
        probe: &[f32],
        mode: BuildMode,
    ) -> Result<Self, VectorError> {
        if model.dimensions() != EMBEDDING_DIMENSIONS {
            return Err(WrongDimensions(model.dimensions()).into());
        }
        let mut connection = pool.connection().await.map_err(StoreError::from)?;
        let stored = async {
            let transaction = begin_write(&mut connection, pool.url()).await?;
            let known = made_by(transaction.client(), &*model).await?;
            let same = known.iter().rev().find(|known| known.made(model.id(), probe));
            let stored = match same.filter(|_| mode == BuildMode::Missing) {
                Some(same) => same.clone(),
                // The name is that of another model now, which only a rebuild may use.
                None if mode == BuildMode::Missing && !known.is_empty() => return Ok(None),
                None => StoredModel::insert(transaction.client(), model.id(), probe).await?,
            };
            // An interrupted build with another model may have left vectors that are not needed any more.
            let others = "DELETE FROM fetchwell.embedding_models WHERE NOT is_searched AND id <> $1";
            transaction.execute(others, &[&stored.id]).await?;
            let is_searched = "SELECT is_searched FROM fetchwell.embedding_models WHERE id = $1";
            let is_searched: bool = transaction.query_one(is_searched, &[&stored.id]).await?.get(0);
            transaction.commit().await?;
            Ok(Some((stored, !is_searched)))
        };
        let stored = stored.await.map_err(|error| failed(pool, &error))?;
        let (stored, is_staged) = stored.ok_or_else(|| VectorError::ModelChanged(model.id().to_owned()))?;
        let (pool, after) = (pool.clone(), FIRST.to_owned());
        Ok(Self { pool, model, stored, is_staged, after, has_new_vectors: false, refused: 0 })
    }

    /// Drops the index if the build changes many of the searched vectors.
    pub(crate) async fn prepare(&self) -> Result<(), PostgresError> {
        if self.is_staged {
            return Ok(());
        }
        let mut connection = self.pool.connection().await?;
        let dropped = drop_index_for(&mut connection, self.pool.url(), &self.stored.label()).await;
        dropped.map_err(|error| self.pool.failure(&error))
    }

    /// Embeds and stores the next batch. Returns `None` if none is left.
    ///
    /// # Errors
    ///
    /// The database or the model cannot be used. Earlier batches are kept.
    pub(crate) async fn batch(&mut self) -> Result<Option<BuildProgress>, VectorError> {
        let mut connection = self.pool.connection().await.map_err(StoreError::from)?;
        let batch = self.next(&mut connection).await.map_err(|error| failed(&self.pool, &error))?;
        let Some(last) = batch.last() else { return Ok(None) };
        self.after = last.id.clone();
        let (chunks, pieces) = (batch.len(), batch.iter().map(|chunk| chunk.pieces).sum());
        let refused = self.embed(&mut connection, batch).await?;
        self.refused += refused;
        let embedded = chunks.saturating_sub(refused);
        self.has_new_vectors |= embedded > 0;
        Ok(Some(BuildProgress { records: 0, chunks, embedded, pieces }))
    }

    /// Returns the number of chunks that the model refused.
    pub(crate) fn refused(&self) -> usize {
        self.refused
    }

    /// Builds the index and raises the versions of projects, after a complete or a stopped build. A complete build that replaces
    /// another model also makes its vectors the searched ones.
    pub(crate) async fn complete(&self, is_whole: bool) -> Result<(), PostgresError> {
        let mut connection = self.pool.connection().await?;
        let complete = async {
            if self.is_staged && is_whole {
                drop_index_for(&mut connection, self.pool.url(), &self.stored.label()).await?;
                self.replace(&mut connection).await?;
            }
            create_index(&mut connection, self.pool.url()).await?;
            let transaction = begin_write(&mut connection, self.pool.url()).await?;
            if self.has_new_vectors && !self.is_staged {
                raise_versions(transaction.client(), Some(&self.stored.name)).await?;
            }
            // Models without vectors are forgotten, such as one that was replaced.
            let unused =
                "DELETE FROM fetchwell.embedding_models m WHERE m.id <> $1 AND m.is_searched AND NOT EXISTS (
                 SELECT 1 FROM fetchwell.chunks c WHERE c.metadata ->> 'embedding' = m.id::text)";
            transaction.execute(unused, &[&self.stored.id]).await?;
            transaction.commit().await
        };
        complete.await.map_err(|error| self.pool.failure(&error))
    }

    /// Replaces the searched vectors by those of the build, in one transaction.
    async fn replace(&self, connection: &mut Object) -> Result<(), Error> {
        let transaction = begin_write(connection, self.pool.url()).await?;
        use_extension(transaction.client()).await?;
        lock_version(&transaction).await?;
        let sql = "UPDATE fetchwell.chunks c SET embedding = v.embedding,
                 metadata = c.metadata || jsonb_build_object('embedding', $1::text)
             FROM fetchwell.chunk_vectors v WHERE v.chunk = c.id AND v.model = $2";
        transaction.execute(sql, &[&self.stored.label(), &self.stored.id]).await?;
        let sql = "DELETE FROM fetchwell.chunk_vectors WHERE model = $1";
        transaction.execute(sql, &[&self.stored.id]).await?;
        let sql = "UPDATE fetchwell.embedding_models SET is_searched = true WHERE id = $1";
        transaction.execute(sql, &[&self.stored.id]).await?;
        raise_versions(transaction.client(), Some(&self.stored.name)).await?;
        transaction.commit().await
    }

    /// Returns the next chunks without a vector of the model.
    async fn next(&self, connection: &mut Object) -> Result<Vec<PlannedChunk>, Error> {
        let transaction = begin_read(connection, self.pool.url()).await?;
        let sql =
            "SELECT c.id::text, d.title, c.metadata ->> 'heading_path', c.content FROM fetchwell.chunks c
             JOIN fetchwell.documents d ON d.id = c.document_id
             WHERE c.id > $1::text::uuid AND c.metadata ->> 'embedding' IS DISTINCT FROM $2
               AND NOT EXISTS (SELECT 1 FROM fetchwell.chunk_vectors v WHERE v.chunk = c.id AND v.model = $4)
             ORDER BY c.id LIMIT $3";
        let limit = saturated::<i64>(self.model.batch().max(1));
        let rows =
            transaction.query(sql, &[&self.after, &self.stored.label(), &limit, &self.stored.id]).await?;
        Ok(rows.iter().map(|row| self.plan(row)).collect())
    }

    /// Splits a chunk into texts within the limit of the model. Title and headings are embedded with each.
    fn plan(&self, row: &Row) -> PlannedChunk {
        let EmbeddedTexts { texts, pieces } = EmbeddedTexts::new(
            optional_text(row, 1),
            optional_text(row, 2),
            text(row, 3),
            self.model.pieces(),
        );
        PlannedChunk { id: text(row, 0).to_owned(), texts, pieces }
    }

    /// Embeds and stores a batch. If the model refuses a text of it, each chunk is embedded alone. Returns the number of
    /// refused chunks.
    async fn embed(&self, connection: &mut Object, batch: Vec<PlannedChunk>) -> Result<usize, VectorError> {
        let (mut pending, mut refused) = (vec![batch], 0);
        while let Some(chunks) = pending.pop() {
            let texts: Vec<String> = chunks.iter().flat_map(|chunk| chunk.texts.iter().cloned()).collect();
            match self.model.embed(&texts, Purpose::Document).await {
                Ok(vectors) => self
                    .store(connection, &chunks, vectors)
                    .await
                    .map_err(|error| failed(&self.pool, &error))?,
                Err(error) if error.concerns_texts() && chunks.len() > 1 => {
                    pending.extend(chunks.into_iter().map(|chunk| vec![chunk]));
                }
                Err(error) if error.concerns_texts() => refused += 1,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(refused)
    }

    /// Stores the vectors of chunks. That of a chunk of several texts is their mean.
    async fn store(
        &self,
        connection: &mut Object,
        chunks: &[PlannedChunk],
        vectors: Vec<Vec<f32>>,
    ) -> Result<(), Error> {
        let mut vectors = vectors.into_iter();
        let means = chunks.iter().map(|chunk| mean_vector(vectors.by_ref().take(chunk.texts.len())));
        let means: Vec<Vec<f32>> = means.collect();
        let (ids, values): (Vec<&str>, Vec<SqlVector<'_>>) = chunks
            .iter()
            .zip(&means)
            .filter(|(_, mean)| mean.len() == EMBEDDING_DIMENSIONS)
            .map(|(chunk, mean)| (chunk.id.as_str(), SqlVector(mean)))
            .unzip();
        let transaction = begin_write(connection, self.pool.url()).await?;
        use_extension(transaction.client()).await?;
        // The lock keeps documents from being deleted meanwhile.
        lock_version(&transaction).await?;
        if self.is_staged {
            let sql = "INSERT INTO fetchwell.chunk_vectors (chunk, model, embedding)
                 SELECT c.id, $1, n.embedding FROM unnest($2::text[], $3::vector[]) AS n (id, embedding)
                 JOIN fetchwell.chunks c ON c.id = n.id::uuid
                 ON CONFLICT (chunk) DO UPDATE SET model = excluded.model, embedding = excluded.embedding";
            transaction.execute(sql, &[&self.stored.id, &ids, &values]).await?;
        } else {
            let sql = "UPDATE fetchwell.chunks c SET embedding = n.embedding,
                     metadata = c.metadata || jsonb_build_object('embedding', $1::text)
                 FROM unnest($2::text[], $3::vector[]) AS n (id, embedding) WHERE c.id = n.id::uuid";
            transaction.execute(sql, &[&self.stored.label(), &ids, &values]).await?;
        }
        transaction.commit().await
    }
}
