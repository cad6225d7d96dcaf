//! Builds the vectors of the documents of a database: embeds the chunks that lack a vector of the model, one batch at a time.
//!
//! A vector replaces the one that stood in its row, so an interrupted build continues where it stopped, and no second table
//! is needed. While most chunks get new vectors, the index is dropped and built again at the end, which takes a fraction of
//! the time of as many changes of it.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use deadpool_postgres::{ClientWrapper, Object};
use tokio_postgres::{Client, Error, Row};

use super::index::{create_index, drop_index_for};
use super::models::StoredModel;
use crate::embedding::{EmbeddingModel, Purpose, chunks, probe_vector};
use crate::source::documents::{EMBEDDING_DIMENSIONS, WrongDimensions};
use crate::source::postgres::extension::vector::SqlVector;
use crate::source::postgres::extension::{problem, use_extension};
use crate::source::postgres::pool::PostgresPool;
use crate::source::postgres::tables::{optional_text, text};
use crate::source::postgres::transaction::begin_write;
use crate::source::postgres_error::PostgresError;
use crate::source::store::{BuildMode, BuildProgress, StoreError, VectorError};

/// Key of the advisory lock of a build: `fwel` and `embe`.
const LOCK: i64 = 0x6677_656C_656D_6265;

/// State of the vectors of a database.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct PostgresVectorStatus {
    /// Models with their numbers of chunks, in the order in which they were first used.
    pub models: Vec<ModelStatus>,
    /// Number of chunks without a vector of a model.
    pub missing: u64,
    /// True if a process is embedding chunks now.
    pub is_locked: bool,
    /// True if the index of vectors exists. Without it, searches read all vectors.
    pub is_indexed: bool,
}

/// Vectors of one model.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct ModelStatus {
    /// Identity of the model.
    pub model: String,
    /// Number of dimensions.
    pub dimensions: usize,
    /// Number of chunks with its vectors.
    pub chunks: u64,
}

/// Builder of the vectors of a database. Holds their lock.
pub struct PostgresVectorBuilder {
    pool: PostgresPool,
    model: Arc<dyn EmbeddingModel>,
    stored: StoredModel,
    _lock: ClientWrapper,
}

impl std::fmt::Debug for PostgresVectorBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PostgresVectorBuilder").field("pool", &self.pool).finish_non_exhaustive()
    }
}

/// Chunk to be embedded.
struct PlannedChunk {
    id: String,
    /// Texts within the limit of the model.
    texts: Vec<String>,
    pieces: usize,
}

/// Returns a connection to a database with documents.
async fn connect(pool: &PostgresPool) -> Result<Object, VectorError> {
    let connection = pool.connection().await.map_err(StoreError::from)?;
    match problem(&connection).await.map_err(|error| failed(pool, &error))? {
        None => Ok(connection),
        Some(problem) => {
            let database = pool.url().to_string();
            Err(StoreError::from(PostgresError::NoPgvector { database, problem }).into())
        }
    }
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

/// Returns the work that a build has to do, without a call of the model. Each chunk counts as one to embed.
///
/// # Errors
///
/// The database cannot be used, or has no pgvector.
pub async fn estimate_postgres_build(
    pool: &PostgresPool,
    model: &dyn EmbeddingModel,
    mode: BuildMode,
) -> Result<BuildProgress, VectorError> {
    let connection = connect(pool).await?;
    let estimate = async {
        let labels: Vec<String> = match mode {
            BuildMode::All => Vec::new(),
            BuildMode::Missing => made_by(&connection, model).await?.iter().map(StoredModel::label).collect(),
        };
        let sql = "SELECT count(DISTINCT document_id), count(*), coalesce(sum(token_count), 0)::bigint FROM fetchwell.chunks
             WHERE metadata ->> 'embedding' <> ALL ($1) OR metadata ->> 'embedding' IS NULL";
        connection.query_one(sql, &[&labels]).await
    };
    let row = estimate.await.map_err(|error| failed(pool, &error))?;
    let number = |column: usize| usize::try_from(row.get::<_, i64>(column)).unwrap_or_default();
    let (records, chunks, pieces) = (number(0), number(1), number(2));
    Ok(BuildProgress { records, chunks, embedded: chunks, pieces })
}

/// Returns the state of the vectors of a database.
///
/// # Errors
///
/// The database cannot be used, or has no pgvector.
pub async fn postgres_vector_status(pool: &PostgresPool) -> Result<PostgresVectorStatus, VectorError> {
    let connection = connect(pool).await?;
    let status = async {
        let sql = "SELECT metadata ->> 'embedding', count(*) FROM fetchwell.chunks GROUP BY 1";
        let counts = connection.query(sql, &[]).await?;
        let count = |label: &str| {
            let row = counts.iter().find(|row| optional_text(row, 0) == Some(label));
            row.map_or(0, |row| row.get::<_, i64>(1).unsigned_abs())
        };
        let stored = StoredModel::all(&connection).await?;
        let models: Vec<ModelStatus> = stored
            .iter()
            .map(|known| {
                let chunks = count(&known.label());
                ModelStatus { model: known.name.clone(), dimensions: known.dimensions, chunks }
            })
            .collect();
        let all: u64 = counts.iter().map(|row| row.get::<_, i64>(1).unsigned_abs()).sum();
        let missing = all.saturating_sub(models.iter().map(|model| model.chunks).sum());
        let sql = "SELECT EXISTS (SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND granted
                 AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
                 AND (classid::bigint << 32) | objid::bigint = $1),
             to_regclass('fetchwell.idx_chunks_embedding') IS NOT NULL";
        let row = connection.query_one(sql, &[&LOCK]).await?;
        Ok(PostgresVectorStatus { models, missing, is_locked: row.get(0), is_indexed: row.get(1) })
    };
    status.await.map_err(|error| failed(pool, &error))
}

/// Replaces the vectors of all chunks by those that stand for none. Returns false if there were none.
///
/// # Errors
///
/// The database cannot be used, or another process builds its vectors.
pub async fn remove_postgres_vectors(pool: &PostgresPool) -> Result<bool, VectorError> {
    let _lock = lock(pool).await?;
    let mut connection = connect(pool).await?;
    let remove = async {
        let transaction = begin_write(&mut connection, pool.url()).await?;
        use_extension(transaction.client()).await?;
        // A zero vector is not in the index; the next change of the document writes the hash of its words.
        let sql = "UPDATE fetchwell.chunks SET metadata = metadata || '{\"embedding\": \"hash\"}',
                 embedding = array_fill(0::real, ARRAY[1024])::vector
             WHERE metadata ->> 'embedding' <> 'hash'";
        let removed = transaction.execute(sql, &[]).await?;
        transaction.execute("DELETE FROM fetchwell.embedding_models", &[]).await?;
        if removed > 0 {
            raise_versions(transaction.client(), None).await?;
        }
        transaction.commit().await?;
        Ok(removed > 0)
    };
    remove.await.map_err(|error| failed(pool, &error))
}

/// Takes the lock of the vectors of a database. The server releases it with the session.
async fn lock(pool: &PostgresPool) -> Result<ClientWrapper, VectorError> {
    let session = connect(pool).await?;
    let row = session.query_one("SELECT pg_try_advisory_lock($1)", &[&LOCK]).await;
    if row.map_err(|error| failed(pool, &error))?.get(0) {
        Ok(Object::take(session))
    } else {
        Err(VectorError::Busy(PathBuf::from(pool.url().to_string())))
    }
}

/// Raises the versions of all projects, since their searches find other chunks, and notes the model in their settings.
async fn raise_versions(client: &Client, model: Option<&str>) -> Result<(), Error> {
    let sql = "UPDATE fetchwell.projects SET corpus_version = corpus_version + 1, settings = CASE
             WHEN $1::text IS NULL THEN settings - 'embedding_model'
             ELSE settings || jsonb_build_object('embedding_model', $1::text) END";
    client.execute(sql, &[&model]).await.map(drop)
}

impl PostgresVectorBuilder {
    /// Recognizes the model and takes the lock of the vectors.
    ///
    /// # Errors
    ///
    /// The database or the model cannot be used, the model has other dimensions than the contract of document search, or
    /// another process builds the vectors.
    pub async fn open(
        pool: &PostgresPool,
        model: Arc<dyn EmbeddingModel>,
        mode: BuildMode,
    ) -> Result<Self, VectorError> {
        if model.dimensions() != EMBEDDING_DIMENSIONS {
            return Err(WrongDimensions(model.dimensions()).into());
        }
        let lock = lock(pool).await?;
        let probe = probe_vector(&*model).await?;
        let connection = connect(pool).await?;
        let stored = async {
            let known = made_by(&connection, &*model).await?;
            let same = known.iter().rev().find(|known| known.made(model.id(), &probe));
            match same.filter(|_| mode == BuildMode::Missing) {
                Some(same) => Ok(Some(same.clone())),
                // The name is that of another model now, which only a rebuild may use.
                None if mode == BuildMode::Missing && !known.is_empty() => Ok(None),
                None => StoredModel::insert(&connection, model.id(), &probe).await.map(Some),
            }
        };
        let stored = stored.await.map_err(|error| failed(pool, &error))?;
        let stored = stored.ok_or_else(|| VectorError::ModelChanged(model.id().to_owned()))?;
        Ok(Self { pool: pool.clone(), model, stored, _lock: lock })
    }

    /// Embeds what is missing. Calls `report` with the progress after each batch.
    ///
    /// # Errors
    ///
    /// The database or the model cannot be used, the build was stopped, or the model refused texts. Other chunks are
    /// embedded then, and earlier batches are kept.
    pub async fn build(
        &mut self,
        stop: &AtomicBool,
        mut report: impl FnMut(BuildProgress),
    ) -> Result<BuildProgress, VectorError> {
        let mut connection = connect(&self.pool).await?;
        let pool = self.pool.clone();
        let dropped = drop_index_for(&mut connection, pool.url(), &self.stored.label()).await;
        dropped.map_err(|error| failed(&pool, &error))?;
        let (mut progress, mut refused) = (BuildProgress::default(), 0);
        let mut after = String::from("00000000-0000-0000-0000-000000000000");
        let built = loop {
            if stop.load(Ordering::Relaxed) {
                break Err(VectorError::Stopped);
            }
            let batch = self.next(&connection, &after).await.map_err(|error| failed(&pool, &error))?;
            let Some(last) = batch.last() else { break Ok(()) };
            after = last.id.clone();
            progress.chunks += batch.len();
            progress.pieces += batch.iter().map(|chunk| chunk.pieces).sum::<usize>();
            match self.embed(&mut connection, batch).await {
                Ok(batch_refused) => refused += batch_refused,
                Err(error) => break Err(error),
            }
            progress.embedded = progress.chunks.saturating_sub(refused);
            report(progress);
        };
        let complete = async {
            create_index(&mut connection, pool.url()).await?;
            if progress.embedded > 0 {
                raise_versions(&connection, Some(&self.stored.name)).await?;
            }
            // Models without vectors are forgotten, such as one that was replaced.
            let unused = "DELETE FROM fetchwell.embedding_models m WHERE m.id <> $1 AND NOT EXISTS (
                 SELECT 1 FROM fetchwell.chunks c WHERE c.metadata ->> 'embedding' = m.id::text)";
            connection.execute(unused, &[&self.stored.id]).await.map(drop)
        };
        complete.await.map_err(|error| failed(&pool, &error))?;
        built?;
        match refused {
            0 => Ok(progress),
            records => Err(VectorError::RefusedRecords { records }),
        }
    }

    /// Returns the next chunks without a vector of the model, behind one by its id.
    async fn next(&self, client: &Client, after: &str) -> Result<Vec<PlannedChunk>, Error> {
        let sql = "SELECT c.id::text, d.title, c.metadata ->> 'heading_path', c.content FROM fetchwell.chunks c
             JOIN fetchwell.documents d ON d.id = c.document_id
             WHERE c.id > $1::text::uuid AND c.metadata ->> 'embedding' IS DISTINCT FROM $2 ORDER BY c.id LIMIT $3";
        let limit = i64::try_from(self.model.batch().max(1)).unwrap_or(i64::MAX);
        let rows = client.query(sql, &[&after, &self.stored.label(), &limit]).await?;
        Ok(rows.iter().map(|row| self.plan(row)).collect())
    }

    /// Splits a chunk into texts within the limit of the model. Title and headings are embedded with each.
    fn plan(&self, row: &Row) -> PlannedChunk {
        let above = [optional_text(row, 1), optional_text(row, 2)];
        let above: Vec<&str> = above.into_iter().flatten().filter(|text| !text.is_empty()).collect();
        let above = above.join(" > ");
        let title = Some(above.as_str()).filter(|above| !above.is_empty());
        let content = text(row, 3);
        let found = chunks(title, content, self.model.pieces());
        let pieces = found.chunks.iter().map(|chunk| chunk.pieces).sum();
        let mut texts: Vec<String> = found.chunks.into_iter().map(|chunk| chunk.embedded).collect();
        if texts.is_empty() {
            texts.push(content.to_owned());
        }
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
        let means = chunks.iter().map(|chunk| mean(vectors.by_ref().take(chunk.texts.len())));
        let means: Vec<Vec<f32>> = means.collect();
        let (ids, values): (Vec<&str>, Vec<SqlVector<'_>>) = chunks
            .iter()
            .zip(&means)
            .filter(|(_, mean)| mean.len() == EMBEDDING_DIMENSIONS)
            .map(|(chunk, mean)| (chunk.id.as_str(), SqlVector(mean)))
            .unzip();
        let transaction = begin_write(connection, self.pool.url()).await?;
        use_extension(transaction.client()).await?;
        let sql = "UPDATE fetchwell.chunks c SET embedding = n.embedding,
                 metadata = c.metadata || jsonb_build_object('embedding', $1::text)
             FROM unnest($2::text[], $3::vector[]) AS n (id, embedding) WHERE c.id = n.id::uuid";
        let statement = transaction.prepare_cached(sql).await?;
        transaction.execute(&statement, &[&self.stored.label(), &ids, &values]).await?;
        transaction.commit().await
    }
}

/// Returns the mean of vectors, scaled to length 1.
fn mean(vectors: impl Iterator<Item = Vec<f32>>) -> Vec<f32> {
    let sum = vectors.reduce(|mut sum, vector| {
        sum.iter_mut().zip(&vector).for_each(|(sum, number)| *sum += number);
        sum
    });
    let mut sum = sum.unwrap_or_default();
    let length = sum.iter().map(|number| number * number).sum::<f32>().sqrt();
    if length > 0.0 {
        sum.iter_mut().for_each(|number| *number /= length);
    }
    sum
}
