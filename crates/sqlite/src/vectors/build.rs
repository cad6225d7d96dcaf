//! Builds the vectors of a store: embeds what changed since the last build, one batch at a time.
//!
//! A batch is one transaction of the file of vectors, with the version of the store up to which it is complete, so an
//! interrupted build continues where it stopped. The store itself is only read and never locked. A new model gets a
//! generation of its own, which replaces the current one when it is complete.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use fetchwell_core::saturate::saturated;
use fetchwell_embedding::EmbeddingModel;
use fetchwell_source::contract::{BuildMode, BuildProgress, EmbeddedStreams, StoreError, VectorError};
use fetchwell_source::vectors::VectorBuild;
use fetchwell_state::{LockedFile, beside};
use rusqlite::{Connection, TransactionBehavior, params};

use super::error::{io_error, sqlite_error};
use super::file::{Generation, open, open_or_create, vectors_path};
use super::lock::lock_or_wait;
use super::plan::{Coverage, Plan, Planner};
use super::probe::{ComparableGenerations, ModelProbe};
use super::refused::RefusedRecords;
use super::streams::{SkippedStreams, check_dimensions};
use crate::database::{Database, identity};
use crate::tables::{has_projects, raise_versions, remove_model};

/// Number of chunks of a replaced generation that one transaction deletes.
const DELETED_AT_ONCE: i64 = 2_000;

/// Builder of a store's vectors. Holds their lock.
#[derive(Debug)]
pub struct VectorBuilder {
    database: Arc<Database>,
    path: PathBuf,
    sqlite: Connection,
    model: Arc<dyn EmbeddingModel>,
    streams: EmbeddedStreams,
    generation: Generation,
    /// Skipped streams of the generation.
    skipped: SkippedStreams,
    /// Refused records of the generation.
    refused: RefusedRecords,
    /// Generations with vectors that can be copied for equal texts.
    comparable: Vec<i64>,
    /// True if documents got vectors since the versions of projects were raised.
    has_new_vectors: bool,
    _lock: LockedFile,
}

/// A store with its locked vectors, and the streams to embed.
#[derive(Debug)]
pub(super) struct LockedVectors<'a> {
    pub(super) database: Arc<Database>,
    pub(super) store: &'a Path,
    pub(super) lock: LockedFile,
    pub(super) streams: EmbeddedStreams,
}

/// Returns the number of changes that the vectors lack, and the work that they make, without calling the model.
///
/// # Errors
///
/// The store or its vectors cannot be read.
pub(super) fn estimate_build(
    store: &Path,
    model: &dyn EmbeddingModel,
    mode: BuildMode,
    streams: &EmbeddedStreams,
) -> Result<BuildProgress, VectorError> {
    let database = Database::open(store)?;
    check_dimensions(&database, model.dimensions(), streams)?;
    let path = vectors_path(store);
    let sqlite = open(&path)?;
    let (uuid, _newest) = database.read(identity)?;
    // Without a call of the model, vectors of its name count as its own.
    let comparable = match &sqlite {
        Some(sqlite) if mode == BuildMode::Missing => {
            ComparableGenerations::named(sqlite, model).map_err(|error| sqlite_error(&path, &error))?
        }
        _ => ComparableGenerations::default(),
    };
    let failed = |error: rusqlite::Error| sqlite_error(&path, &error);
    let (mut covered, refused) = match (&sqlite, comparable.resumable(&uuid)) {
        (Some(sqlite), Some(known)) => {
            let skipped = SkippedStreams::read(sqlite, known.id).map_err(failed)?;
            let refused = RefusedRecords::read(sqlite, known.id).map_err(failed)?;
            (Coverage { version: known.version, skipped }, refused)
        }
        _ => Default::default(),
    };
    let mut progress = BuildProgress::default();
    let ids = comparable.ids(0);
    let vectors = sqlite.as_ref().map(|sqlite| (sqlite, ids.as_slice()));
    let planner = Planner { database: &database, vectors, model, streams };
    for row in refused.iter() {
        progress.extend(planner.record(row, Coverage::default())?.progress());
    }
    while let Some(plan) = planner.next(&covered)? {
        progress.extend(plan.progress());
        covered = plan.coverage;
    }
    Ok(progress)
}

impl VectorBuilder {
    /// Opens the vectors of a store for a build, and embeds one fixed text to check the model. Waits for the batch of
    /// another process to end.
    ///
    /// # Errors
    ///
    /// The store, its vectors or the model cannot be used, the model has changed, or another process builds them.
    pub async fn open(
        store: &Path,
        model: Arc<dyn EmbeddingModel>,
        mode: BuildMode,
        streams: EmbeddedStreams,
    ) -> Result<Self, VectorError> {
        let database = Arc::new(Database::open(store)?);
        let lock = lock_or_wait(&vectors_path(store)).await?;
        let probe = ModelProbe::new(&*model).await?;
        Self::locked(LockedVectors { database, store, lock, streams }, model, &probe, mode)
    }

    /// Opens the vectors of a store for some batches, with a probe that was made before.
    pub(super) fn locked(
        vectors: LockedVectors<'_>,
        model: Arc<dyn EmbeddingModel>,
        probe: &ModelProbe,
        mode: BuildMode,
    ) -> Result<Self, VectorError> {
        let LockedVectors { database, store, lock, streams } = vectors;
        check_dimensions(&database, model.dimensions(), &streams)?;
        let path = vectors_path(store);
        let (uuid, _newest) = database.read(identity)?;
        let sqlite = open_or_create(&path)?;
        let failed = |error: rusqlite::Error| sqlite_error(&path, &error);
        let (known, comparable) = match mode {
            BuildMode::All => (None, ComparableGenerations::default()),
            BuildMode::Missing => {
                let comparable = ComparableGenerations::checked(&sqlite, &*model, probe).map_err(failed)?;
                if comparable.is_changed() {
                    return Err(VectorError::ModelChanged(model.id().to_owned()));
                }
                (comparable.resumable(&uuid).cloned(), comparable)
            }
        };
        let generation = match known {
            Some(known) => known,
            None => new_generation(&sqlite, &*model, uuid, probe).map_err(failed)?,
        };
        let comparable = comparable.ids(generation.id);
        let skipped = SkippedStreams::read(&sqlite, generation.id).map_err(failed)?;
        let refused = RefusedRecords::read(&sqlite, generation.id).map_err(failed)?;
        Ok(Self {
            database,
            path,
            sqlite,
            model,
            streams,
            generation,
            skipped,
            refused,
            comparable,
            has_new_vectors: false,
            _lock: lock,
        })
    }

    fn coverage(&self) -> Coverage {
        Coverage { version: self.generation.version, skipped: self.skipped.clone() }
    }

    fn planner(&self) -> Planner<'_> {
        Planner {
            database: &self.database,
            vectors: Some((&self.sqlite, self.comparable.as_slice())),
            model: &*self.model,
            streams: &self.streams,
        }
    }

    /// Embeds and stores one plan. A record with a text that the model refuses gets no vectors.
    async fn embed(&mut self, mut plan: Plan) -> Result<BuildProgress, VectorError> {
        let progress = plan.progress();
        plan.embed(&*self.model).await?;
        self.store(&plan)?;
        Ok(progress)
    }

    /// Stores one plan. A record that lacks a vector is stored as refused.
    fn store(&mut self, plan: &Plan) -> Result<(), VectorError> {
        let generation = self.generation.id;
        let Coverage { version, skipped } = plan.coverage.clone();
        let mut refused = self.refused.clone();
        refused.update(plan);
        let omitted = saturated::<i64>(plan.texts.omitted);
        let mut store = || {
            let transaction = self.sqlite.transaction_with_behavior(TransactionBehavior::Immediate)?;
            {
                let mut delete =
                    transaction.prepare_cached("DELETE FROM chunks WHERE generation = ?1 AND record = ?2")?;
                let mut insert = transaction.prepare_cached(
                    "INSERT INTO chunks
                     (generation, record, stream, connection, first_byte, end_byte, digest, scale, codes)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
                )?;
                for record in &plan.records {
                    delete.execute((generation, record.row))?;
                    let chunks = if plan.has_vectors(record) { record.chunks.as_slice() } else { &[] };
                    for chunk in chunks {
                        let Some(vector) = plan.texts.known.get(&chunk.digest) else { continue };
                        insert.execute(params![
                            generation,
                            record.row,
                            record.stream,
                            record.connection,
                            saturated::<i64>(chunk.first_byte),
                            saturated::<i64>(chunk.end_byte),
                            chunk.digest,
                            f64::from(vector.scale),
                            vector.codes
                        ])?;
                    }
                }
                transaction.execute(
                    "UPDATE generations SET version = ?2, revision = revision + 1, omitted = omitted + ?3 WHERE id = ?1",
                    (generation, version, omitted),
                )?;
                if skipped != self.skipped {
                    skipped.write(&transaction, generation)?;
                }
                if refused != self.refused {
                    refused.write(&transaction, generation)?;
                }
            }
            transaction.commit()
        };
        store().map_err(|error| sqlite_error(&self.path, &error))?;
        self.generation.version = version;
        self.skipped = skipped;
        self.refused = refused;
        self.has_new_vectors |= plan.has_new_documents();
        Ok(())
    }

    /// Makes the generation the current one and deletes the one that it replaces.
    fn complete(&mut self) -> Result<(), VectorError> {
        if self.generation.is_current {
            if std::mem::take(&mut self.has_new_vectors) {
                raise(&self.database, &self.generation.model);
            }
            return self.delete_replaced();
        }
        let generation = self.generation.id;
        let mut swap = || {
            let transaction = self.sqlite.transaction_with_behavior(TransactionBehavior::Immediate)?;
            transaction.execute("UPDATE generations SET is_current = (id = ?1)", [generation])?;
            transaction.commit()
        };
        swap().map_err(|error| sqlite_error(&self.path, &error))?;
        self.generation.is_current = true;
        self.has_new_vectors = false;
        raise(&self.database, &self.generation.model);
        self.delete_replaced()
    }

    /// Deletes the generations that are neither current nor being built.
    fn delete_replaced(&mut self) -> Result<(), VectorError> {
        let building = self.generation.id;
        let delete = || {
            loop {
                let deleted = self.sqlite.execute(
                    "DELETE FROM chunks WHERE id IN (SELECT id FROM chunks WHERE generation IN
                     (SELECT id FROM generations WHERE id <> ?1 AND is_current = 0) LIMIT ?2)",
                    (building, DELETED_AT_ONCE),
                )?;
                if deleted == 0 {
                    break;
                }
            }
            self.sqlite.execute("DELETE FROM generations WHERE id <> ?1 AND is_current = 0", [building])
        };
        let deleted: Result<usize, rusqlite::Error> = delete();
        deleted.map(drop).map_err(|error| sqlite_error(&self.path, &error))
    }
}

#[async_trait]
impl VectorBuild for VectorBuilder {
    async fn begin(&mut self) -> Result<(), VectorError> {
        self.delete_replaced()?;
        let rows: Vec<i64> = self.refused.iter().collect();
        for row in rows {
            let plan = self.planner().record(row, self.coverage())?;
            self.embed(plan).await?;
        }
        Ok(())
    }

    /// Embeds and stores the next batch. Returns `None` if nothing is missing; the generation is then the current one.
    async fn batch(&mut self) -> Result<Option<BuildProgress>, VectorError> {
        let Some(plan) = self.planner().next(&self.coverage())? else {
            self.complete()?;
            return Ok(None);
        };
        self.embed(plan).await.map(Some)
    }

    fn refused(&self) -> usize {
        self.refused.count()
    }
}

/// Raises the versions of projects. The vectors are complete also if the store cannot be written: keys of cached answers have
/// their identity.
fn raise(database: &Database, model: &str) {
    let raised = database
        .writer()
        .and_then(|sqlite| raise_versions(&sqlite, model).map_err(|error| database.error(&error)));
    if let Err(error) = raised {
        tracing::debug!(%error, "the versions of projects stay as they are");
    }
}

/// Deletes the vectors of a store, damaged ones as well. Returns false if there were none.
///
/// # Errors
///
/// Another process builds them, or the file cannot be deleted.
pub(super) async fn remove_vectors(store: &Path) -> Result<bool, VectorError> {
    // The store is opened first, so that nothing is created beside a path that has none.
    let database = Database::open(store)?;
    let path = vectors_path(store);
    let _lock = lock_or_wait(&path).await?;
    // The file may have been deleted by other means.
    remove_from_projects(&database)?;
    match open(&path) {
        Ok(None) => return Ok(false),
        // A file with our mark that is damaged or newer is deleted as well.
        Ok(Some(_)) | Err(VectorError::Damaged { .. } | VectorError::Newer(_)) => {}
        Err(error) => return Err(error),
    }
    for file in [path.clone(), beside(&path, "-wal"), beside(&path, "-shm")] {
        match std::fs::remove_file(&file) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(io_error(&file, &error));
            }
            _ => {}
        }
    }
    Ok(true)
}

/// Removes what projects have of a model.
fn remove_from_projects(database: &Database) -> Result<(), StoreError> {
    if !database.read(has_projects)? {
        return Ok(());
    }
    let sqlite = database.writer()?;
    remove_model(&sqlite).map_err(|error| database.error(&error))
}

fn new_generation(
    sqlite: &Connection,
    model: &dyn EmbeddingModel,
    store: String,
    probe: &ModelProbe,
) -> Result<Generation, rusqlite::Error> {
    let probe = probe.to_bytes();
    let dimensions = model.dimensions();
    sqlite.execute(
        "INSERT INTO generations (model, dimensions, store, version, revision, is_current, omitted, probe)
         VALUES (?1, ?2, ?3, 0, 0, 0, 0, ?4)",
        params![model.id(), i64::try_from(dimensions).unwrap_or(0), store, probe],
    )?;
    Ok(Generation {
        id: sqlite.last_insert_rowid(),
        model: model.id().to_owned(),
        dimensions,
        store,
        version: 0,
        revision: 0,
        is_current: false,
        omitted: 0,
        probe,
    })
}
