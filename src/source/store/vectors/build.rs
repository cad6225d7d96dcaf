//! Builds the vectors of a store: embeds what changed since the last build, one batch at a time.
//!
//! A batch is one transaction of the file of vectors, with the version of the store up to which it is complete, so an
//! interrupted build continues where it stopped. The store itself is only read and never locked. A new model gets a
//! generation of its own, which replaces the current one when it is complete.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rusqlite::{Connection, TransactionBehavior, params};

use super::codes::{StoredVector, exact_score};
use super::error::VectorError;
use super::file::{Generation, open, open_or_create, vectors_path};
use super::plan::Plan;
use crate::embedding::{EmbeddingModel, PROBE_TEXT, Purpose};
use crate::source::store::database::{Database, identity};
use crate::state::{LockFileError, beside, open_lock_file};

/// Minimum cosine of two vectors of one text by the same model. Services round in different ways.
const MIN_PROBE_COSINE: f32 = 0.995;

/// Number of chunks of a replaced generation that one transaction deletes.
const DELETED_AT_ONCE: i64 = 2_000;

/// Extent of a build.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BuildMode {
    /// Embed what has no vector yet.
    Missing,
    /// Embed everything again.
    All,
}

/// Work that a build has done, or has to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BuildProgress {
    /// Changed records that were read.
    pub records: usize,
    /// Chunks of these records.
    pub chunks: usize,
    /// Chunks that had to be embedded; the others have texts that were embedded before.
    pub embedded: usize,
    /// Pieces of the embedded chunks.
    pub pieces: usize,
}

impl BuildProgress {
    fn add(&mut self, plan: &Plan) {
        self.records += plan.records.len();
        self.chunks += plan.records.iter().map(|record| record.chunks.len()).sum::<usize>();
        self.embedded += plan.texts.len();
        self.pieces += plan.pieces;
    }
}

/// Builder of a store's vectors. Holds their lock.
#[derive(Debug)]
pub struct VectorBuilder {
    database: Database,
    path: PathBuf,
    sqlite: Connection,
    model: Arc<dyn EmbeddingModel>,
    mode: BuildMode,
    generation: Generation,
    _lock: File,
}

/// Returns the number of changes that the vectors lack, and the work that they make, without calling the model.
///
/// # Errors
///
/// The store or its vectors cannot be read.
pub fn estimate_build(
    store: &Path,
    model: &dyn EmbeddingModel,
    mode: BuildMode,
) -> Result<BuildProgress, VectorError> {
    let database = Database::open(store)?;
    let path = vectors_path(store);
    let sqlite = open(&path)?;
    let (uuid, _newest) = database.read(identity)?;
    let known = match &sqlite {
        Some(sqlite) if mode == BuildMode::Missing => {
            resumable(sqlite, model, &uuid).map_err(|error| VectorError::from_sqlite(&path, &error))?
        }
        _ => None,
    };
    let vectors = sqlite.as_ref().filter(|_| mode == BuildMode::Missing);
    let (mut progress, mut after) = (BuildProgress::default(), known.map_or(0, |known| known.version));
    while let Some(plan) = Plan::read(&database, vectors, model, after)? {
        progress.add(&plan);
        after = plan.version;
    }
    Ok(progress)
}

/// Returns the generation that a build continues: of the same model and the same store.
fn resumable(
    sqlite: &Connection,
    model: &dyn EmbeddingModel,
    store: &str,
) -> Result<Option<Generation>, rusqlite::Error> {
    let is_same = |known: &Generation| {
        known.model == model.id() && known.store == store && known.dimensions == model.dimensions()
    };
    let building = Generation::building(sqlite)?.filter(is_same);
    Ok(match building {
        None => Generation::current(sqlite)?.filter(is_same),
        building => building,
    })
}

impl VectorBuilder {
    /// Opens the vectors of a store for a build, and embeds one fixed text to check the model.
    ///
    /// # Errors
    ///
    /// The store, its vectors or the model cannot be used, the model has changed, or another process builds them.
    pub async fn open(
        store: &Path,
        model: Arc<dyn EmbeddingModel>,
        mode: BuildMode,
    ) -> Result<Self, VectorError> {
        let database = Database::open(store)?;
        let path = vectors_path(store);
        let lock = lock(&path)?;
        let (uuid, _newest) = database.read(identity)?;
        let probe = model.embed(&[PROBE_TEXT.to_owned()], Purpose::Document).await?;
        let probe = probe.into_iter().next().unwrap_or_default();
        let sqlite = open_or_create(&path)?;
        let failed = |error: rusqlite::Error| VectorError::from_sqlite(&path, &error);
        let known = match mode {
            BuildMode::Missing => resumable(&sqlite, &*model, &uuid).map_err(failed)?,
            BuildMode::All => None,
        };
        if mode == BuildMode::Missing {
            let is_known = check_probe(&sqlite, &*model, &probe).map_err(failed)?;
            if !is_known {
                return Err(VectorError::ModelChanged(model.id().to_owned()));
            }
        }
        let generation = match known {
            Some(known) => known,
            None => new_generation(&sqlite, &*model, uuid, &probe).map_err(failed)?,
        };
        Ok(Self { database, path, sqlite, model, mode, generation, _lock: lock })
    }

    /// Embeds everything that is missing. Calls `report` after each batch.
    ///
    /// # Errors
    ///
    /// The store, its vectors or the model cannot be used, or the build was stopped. Earlier batches are kept.
    pub async fn build(
        &mut self,
        stop: &AtomicBool,
        mut report: impl FnMut(BuildProgress),
    ) -> Result<BuildProgress, VectorError> {
        let mut progress = BuildProgress::default();
        self.delete_replaced()?;
        loop {
            if stop.load(Ordering::Relaxed) {
                return Err(VectorError::Stopped);
            }
            let vectors = (self.mode == BuildMode::Missing).then_some(&self.sqlite);
            let Some(plan) = Plan::read(&self.database, vectors, &*self.model, self.generation.version)?
            else {
                break;
            };
            progress.add(&plan);
            let texts: Vec<String> = plan.texts.iter().map(|(_, text)| text.clone()).collect();
            let embedded = if texts.is_empty() {
                Vec::new()
            } else {
                self.model.embed(&texts, Purpose::Document).await?
            };
            self.store(plan, &embedded)?;
            report(progress);
        }
        self.complete()?;
        Ok(progress)
    }

    /// Stores one batch.
    fn store(&mut self, plan: Plan, embedded: &[Vec<f32>]) -> Result<(), VectorError> {
        let mut vectors = plan.known;
        for ((digest, _), vector) in plan.texts.into_iter().zip(embedded) {
            vectors.insert(digest, StoredVector::new(vector));
        }
        let generation = self.generation.id;
        let omitted = i64::try_from(plan.omitted).unwrap_or(i64::MAX);
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
                    for chunk in &record.chunks {
                        let Some(vector) = vectors.get(&chunk.digest) else { continue };
                        insert.execute(params![
                            generation,
                            record.row,
                            record.stream,
                            record.connection,
                            i64::try_from(chunk.first_byte).unwrap_or(i64::MAX),
                            i64::try_from(chunk.end_byte).unwrap_or(i64::MAX),
                            chunk.digest,
                            f64::from(vector.scale),
                            vector.codes
                        ])?;
                    }
                }
                transaction.execute(
                    "UPDATE generations SET version = ?2, revision = revision + 1, omitted = omitted + ?3 WHERE id = ?1",
                    (generation, plan.version, omitted),
                )?;
            }
            transaction.commit()
        };
        store().map_err(|error| VectorError::from_sqlite(&self.path, &error))?;
        self.generation.version = plan.version;
        Ok(())
    }

    /// Makes the generation the current one and deletes the one that it replaces.
    fn complete(&mut self) -> Result<(), VectorError> {
        let generation = self.generation.id;
        let mut swap = || {
            let transaction = self.sqlite.transaction_with_behavior(TransactionBehavior::Immediate)?;
            transaction.execute("UPDATE generations SET is_current = (id = ?1)", [generation])?;
            transaction.commit()
        };
        swap().map_err(|error| VectorError::from_sqlite(&self.path, &error))?;
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
        deleted.map(drop).map_err(|error| VectorError::from_sqlite(&self.path, &error))
    }
}

fn lock(path: &Path) -> Result<File, VectorError> {
    let file = open_lock_file(&beside(path, "-lock")).map_err(|error| match error {
        LockFileError::Foreign(foreign) => {
            VectorError::Foreign { path: foreign.path, problem: foreign.problem }
        }
        LockFileError::Io(error) => VectorError::from_io(path, &error),
    })?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(VectorError::Busy(path.to_owned())),
        Err(TryLockError::Error(error)) => Err(VectorError::from_io(path, &error)),
    }
}

/// Deletes the vectors of a store. Returns false if there were none.
///
/// # Errors
///
/// Another process builds them, or the file cannot be deleted.
pub fn remove_vectors(store: &Path) -> Result<bool, VectorError> {
    // The store is opened first, so that nothing is created beside a path that has none.
    drop(Database::open(store)?);
    let path = vectors_path(store);
    let _lock = lock(&path)?;
    if open(&path)?.is_none() {
        return Ok(false);
    }
    for file in [path.clone(), beside(&path, "-wal"), beside(&path, "-shm")] {
        match std::fs::remove_file(&file) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(VectorError::from_io(&file, &error));
            }
            _ => {}
        }
    }
    Ok(true)
}

/// Returns true if the model still returns the vector that it returned before for the fixed text.
fn check_probe(
    sqlite: &Connection,
    model: &dyn EmbeddingModel,
    probe: &[f32],
) -> Result<bool, rusqlite::Error> {
    let known = [Generation::current(sqlite)?, Generation::building(sqlite)?];
    let same = known.into_iter().flatten().filter(|known| known.model == model.id());
    Ok(same.into_iter().all(|known| {
        let scale = known.probe.first_chunk().map_or(0.0, |bytes| f32::from_le_bytes(*bytes));
        let codes = known.probe.get(4..).unwrap_or_default();
        codes.len() == probe.len() * 2 && exact_score(probe, scale, codes) >= MIN_PROBE_COSINE
    }))
}

fn new_generation(
    sqlite: &Connection,
    model: &dyn EmbeddingModel,
    store: String,
    probe: &[f32],
) -> Result<Generation, rusqlite::Error> {
    let StoredVector { scale, codes } = StoredVector::new(probe);
    let probe: Vec<u8> = scale.to_le_bytes().into_iter().chain(codes).collect();
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
