//! Search over the vectors of a store.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::Connection;

use super::codes::{QueryCodes, add_small_codes, exact_score};
use super::error::VectorError;
use super::file::{Generation, open, vectors_path};
use super::scan::{Block, Candidate, Candidates, ChunkRow, by_score};
use super::scope::VectorScope;

/// Maximum number of rows of a block.
const BLOCK_ROWS: usize = 8_192;

/// Number of candidates that the scan keeps. Many of them can be of one long record.
const SCANNED: usize = 1_000;

/// Minimum number of candidates that are scored again with 16-bit codes.
const MIN_RESCORED: usize = 100;

/// Maximum number of candidates of one record.
const PER_RECORD: usize = 2;

/// Bytes of a row in memory, without its codes.
const ROW_BYTES: usize = size_of::<ChunkRow>();

/// The vectors of a store, for searches. They are loaded by the first one.
#[derive(Debug)]
pub struct VectorIndex {
    path: PathBuf,
    /// Maximum number of bytes in memory. Larger vectors are read from the file by each search.
    max_bytes: usize,
    loaded: Mutex<Option<Arc<Loaded>>>,
}

/// The vectors of one revision in memory.
#[derive(Debug)]
struct Loaded {
    generation: i64,
    revision: i64,
    blocks: Vec<Block>,
}

/// A record that a vector search found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct VectorHit {
    /// Row of the record in the store. The record may have been deleted since.
    pub record: i64,
    /// Cosine of the query and the best chunk.
    pub score: f32,
    /// First and last byte of the best chunk in the record's text.
    pub first_byte: i64,
    /// End of the best chunk in the record's text.
    pub end_byte: i64,
}

impl VectorIndex {
    /// Creates the index of a store without opening its file.
    #[must_use]
    pub fn new(store: &Path, max_bytes: usize) -> Self {
        Self { path: vectors_path(store), max_bytes, loaded: Mutex::default() }
    }

    /// Returns the id of the model whose vectors are searched, or `None` if there are none.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    pub fn model(&self) -> Result<Option<String>, VectorError> {
        let Some(sqlite) = open(&self.path)? else { return Ok(None) };
        Ok(self.read(Generation::current(&sqlite))?.map(|generation| generation.model))
    }

    /// Returns the records nearest to a query, the nearest first. The query is a vector of the model in [`Self::model`].
    ///
    /// # Errors
    ///
    /// The file cannot be read, or the query has other dimensions.
    pub fn search(
        &self,
        query: &[f32],
        limit: usize,
        scope: &VectorScope,
    ) -> Result<Vec<VectorHit>, VectorError> {
        let Some(sqlite) = open(&self.path)? else { return Ok(Vec::new()) };
        // One transaction, so that the generation and its chunks fit together.
        let transaction = self.read(sqlite.unchecked_transaction())?;
        let Some(generation) = self.read(Generation::current(&transaction))? else { return Ok(Vec::new()) };
        if generation.dimensions != query.len() {
            return Err(VectorError::WrongDimensions { stored: generation.dimensions, query: query.len() });
        }
        let codes = QueryCodes::new(query);
        let mut candidates = Candidates::new(SCANNED.max(limit * 4));
        match self.in_memory(&transaction, &generation)? {
            Some(loaded) => loaded.blocks.iter().for_each(|block| block.scan(&codes, scope, &mut candidates)),
            None => self.read(each_block(&transaction, &generation, |block| {
                block.scan(&codes, scope, &mut candidates);
            }))?,
        }
        let candidates = diverse(candidates.into_sorted(), MIN_RESCORED.max(limit * 2));
        let hits = self.read(rescored(&transaction, query, candidates))?;
        Ok(hits.into_iter().take(limit).collect())
    }

    /// Releases the vectors in memory. The next search loads them again.
    pub fn evict(&self) {
        *self.loaded.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Returns the vectors in memory, loaded if they fit.
    fn in_memory(
        &self,
        sqlite: &Connection,
        generation: &Generation,
    ) -> Result<Option<Arc<Loaded>>, VectorError> {
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        let is_same =
            |known: &&Arc<Loaded>| known.generation == generation.id && known.revision == generation.revision;
        if let Some(known) = loaded.as_ref().filter(is_same) {
            return Ok(Some(Arc::clone(known)));
        }
        *loaded = None;
        let count: i64 = self.read(
            sqlite
                .prepare_cached("SELECT count(*) FROM chunks WHERE generation = ?1")
                .and_then(|mut count| count.query_row([generation.id], |row| row.get(0))),
        )?;
        let bytes = usize::try_from(count).unwrap_or(usize::MAX);
        if bytes.saturating_mul(generation.dimensions + ROW_BYTES) > self.max_bytes {
            return Ok(None);
        }
        let mut blocks = Vec::new();
        self.read(each_block(sqlite, generation, |block| blocks.push(block)))?;
        let fresh = Arc::new(Loaded { generation: generation.id, revision: generation.revision, blocks });
        *loaded = Some(Arc::clone(&fresh));
        Ok(Some(fresh))
    }

    fn read<Answer>(&self, answer: Result<Answer, rusqlite::Error>) -> Result<Answer, VectorError> {
        answer.map_err(|error| VectorError::from_sqlite(&self.path, &error))
    }
}

/// Reads the chunks of a generation in blocks.
fn each_block(
    sqlite: &Connection,
    generation: &Generation,
    mut read: impl FnMut(Block),
) -> Result<(), rusqlite::Error> {
    let mut statement = sqlite.prepare_cached(
        "SELECT id, record, stream, connection, scale, codes FROM chunks NOT INDEXED
         WHERE generation = ?1 ORDER BY id",
    )?;
    let mut rows = statement.query([generation.id])?;
    let mut block = Block::default();
    while let Some(row) = rows.next()? {
        let codes = row.get_ref(5)?.as_blob()?;
        if codes.len() != generation.dimensions * 2 {
            continue;
        }
        #[expect(clippy::cast_possible_truncation, reason = "it was stored as a 32-bit number")]
        let scale = row.get::<_, f64>(4)? as f32;
        let (stream, connection) = (row.get(2)?, row.get(3)?);
        block.rows.push(ChunkRow { id: row.get(0)?, record: row.get(1)?, stream, connection, scale });
        add_small_codes(codes, &mut block.codes);
        if block.rows.len() == BLOCK_ROWS {
            read(std::mem::take(&mut block).compact());
        }
    }
    read(block.compact());
    Ok(())
}

/// Returns the best candidates, with a few of each record.
fn diverse(sorted: Vec<Candidate>, limit: usize) -> Vec<Candidate> {
    let mut counts: HashMap<i64, usize> = HashMap::new();
    let few = sorted.into_iter().filter(|candidate| {
        let count = counts.entry(candidate.record).or_default();
        *count += 1;
        *count <= PER_RECORD
    });
    few.take(limit).collect()
}

/// Scores candidates with their 16-bit codes, and returns the best of each record.
fn rescored(
    sqlite: &Connection,
    query: &[f32],
    candidates: Vec<Candidate>,
) -> Result<Vec<VectorHit>, rusqlite::Error> {
    let mut statement =
        sqlite.prepare_cached("SELECT scale, codes, first_byte, end_byte FROM chunks WHERE id = ?1")?;
    let mut exact = Vec::with_capacity(candidates.len());
    let mut places = HashMap::new();
    for candidate in candidates {
        let mut rows = statement.query([candidate.chunk])?;
        let Some(row) = rows.next()? else { continue };
        #[expect(clippy::cast_possible_truncation, reason = "it was stored as a 32-bit number")]
        let scale = row.get::<_, f64>(0)? as f32;
        let score = exact_score(query, scale, row.get_ref(1)?.as_blob()?);
        places.insert(candidate.chunk, (row.get(2)?, row.get(3)?));
        exact.push(Candidate { score, ..candidate });
    }
    exact.sort_unstable_by(by_score);
    let mut seen = std::collections::HashSet::new();
    exact.retain(|candidate| seen.insert(candidate.record));
    let hits = exact.into_iter().map(|Candidate { chunk, record, score }| {
        let (first_byte, end_byte) = places.get(&chunk).copied().unwrap_or_default();
        VectorHit { record, score, first_byte, end_byte }
    });
    Ok(hits.collect())
}
