//! Search over the vectors of a store.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fetchwell_core::saturate::saturated;
use fetchwell_embedding::QueryVector;
use fetchwell_ranking::meaning::{ScoreSpread, VectorHit};
use fetchwell_source::contract::VectorError;
use fetchwell_state::FileIdentity;
use parking_lot::Mutex;
use rusqlite::Connection;

use super::codes::{QueryCodes, add_small_codes, exact_score};
use super::error::sqlite_error;
use super::file::{Generation, open, vectors_path};
use super::probe::StoredModel;
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

/// Maximum number of idle connections to the file.
const MAX_IDLE: usize = 4;

/// Maximum number of blocks that are not full. A build adds one between two searches.
const MAX_BLOCKS: usize = 64;

/// Bytes of a row in memory, without its codes.
const ROW_BYTES: usize = size_of::<ChunkRow>();

/// Divisor of the number of chunks: vectors of which more than this share was deleted are loaded anew.
const DELETED_SHARE: usize = 8;

/// The vectors of a store, for searches. They are loaded by the first one.
#[derive(Debug)]
pub struct VectorIndex {
    path: PathBuf,
    /// Maximum number of bytes in memory. Larger vectors are read from the file by each search.
    max_bytes: usize,
    loaded: Mutex<Option<Arc<RevisionVectors>>>,
    idle: Mutex<Vec<Reader>>,
}

/// An open connection to the file, with the identity of the file that it reads.
#[derive(Debug)]
struct Reader {
    sqlite: Connection,
    file: FileIdentity,
}

/// The vectors of one revision in memory.
#[derive(Debug)]
struct RevisionVectors {
    file: FileIdentity,
    generation: i64,
    revision: i64,
    blocks: Vec<Arc<Block>>,
}

/// Answer of a vector search.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct VectorHits {
    /// Records, the nearest first.
    pub hits: Vec<VectorHit>,
    /// Cosines of all chunks in scope.
    pub spread: ScoreSpread,
}

impl VectorIndex {
    /// Creates the index of a store without opening its file.
    #[must_use]
    pub fn new(store: &Path, max_bytes: usize) -> Self {
        Self { path: vectors_path(store), max_bytes, loaded: Mutex::default(), idle: Mutex::default() }
    }

    /// Returns the model that made the searched vectors, or `None` if there are none.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    pub fn model(&self) -> Result<Option<StoredModel>, VectorError> {
        Ok(self.generation()?.as_ref().map(StoredModel::new))
    }

    /// Returns the identity of the searched vectors, which changes with the model and with each build, or `None` if there
    /// are none.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    pub fn identity(&self) -> Result<Option<String>, VectorError> {
        Ok(self
            .generation()?
            .map(|Generation { id, revision, model, .. }| format!("{id} {revision} {model}")))
    }

    fn generation(&self) -> Result<Option<Generation>, VectorError> {
        let Some(reader) = self.reader()? else { return Ok(None) };
        let generation = self.read(Generation::current(&reader.sqlite))?;
        self.give_back(reader);
        Ok(generation)
    }

    /// Returns the records nearest to a query, the nearest first; none if there are no vectors.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or its vectors are of another model than the query's.
    pub fn search(
        &self,
        query: &QueryVector,
        limit: usize,
        scope: &VectorScope,
    ) -> Result<VectorHits, VectorError> {
        let Some(reader) = self.reader()? else { return Ok(VectorHits::default()) };
        let found = self.search_by(&reader, query, limit, scope)?;
        self.give_back(reader);
        Ok(found)
    }

    fn search_by(
        &self,
        reader: &Reader,
        query: &QueryVector,
        limit: usize,
        scope: &VectorScope,
    ) -> Result<VectorHits, VectorError> {
        // One transaction, so that the generation and its chunks fit together.
        let transaction = self.read(reader.sqlite.unchecked_transaction())?;
        let Some(generation) = self.read(Generation::current(&transaction))? else {
            return Ok(VectorHits::default());
        };
        StoredModel::new(&generation).check(&query.model)?;
        let numbers = &*query.numbers;
        if generation.dimensions != numbers.len() {
            return Err(VectorError::WrongDimensions { stored: generation.dimensions, query: numbers.len() });
        }
        let codes = QueryCodes::new(numbers);
        let mut candidates = Candidates::new(SCANNED.max(limit * 4));
        match self.in_memory(reader.file, &transaction, &generation)? {
            Some(loaded) => loaded.blocks.iter().for_each(|block| block.scan(&codes, scope, &mut candidates)),
            None => self.read(each_block(&transaction, &generation, 0, |block| {
                block.scan(&codes, scope, &mut candidates);
            }))?,
        }
        let spread = candidates.spread();
        let candidates = diverse(candidates.into_sorted(), MIN_RESCORED.max(limit * 2));
        let mut hits = self.read(rescored(&transaction, numbers, candidates))?;
        hits.truncate(limit);
        Ok(VectorHits { hits, spread })
    }

    /// Releases the vectors in memory. The next search loads them again.
    pub fn evict(&self) {
        *self.loaded.lock() = None;
    }

    /// Returns a connection to the file that is at the path now, or `None` if there are no vectors.
    fn reader(&self) -> Result<Option<Reader>, VectorError> {
        let Ok(metadata) = std::fs::metadata(&self.path) else {
            self.evict();
            return Ok(None);
        };
        let file = FileIdentity::from_metadata(&metadata);
        let known = {
            let mut idle = self.idle.lock();
            idle.retain(|reader| reader.file == file);
            idle.pop()
        };
        match known {
            Some(reader) => Ok(Some(reader)),
            None => Ok(open(&self.path)?.map(|sqlite| Reader { sqlite, file })),
        }
    }

    fn give_back(&self, reader: Reader) {
        let mut idle = self.idle.lock();
        if idle.len() < MAX_IDLE {
            idle.push(reader);
        }
    }

    /// Returns the vectors in memory, loaded if they fit.
    fn in_memory(
        &self,
        file: FileIdentity,
        sqlite: &Connection,
        generation: &Generation,
    ) -> Result<Option<Arc<RevisionVectors>>, VectorError> {
        let mut loaded = self.loaded.lock();
        let known = loaded.take().filter(|known| known.file == file && known.generation == generation.id);
        if let Some(known) = &known
            && known.revision == generation.revision
        {
            *loaded = Some(Arc::clone(known));
            return Ok(Some(Arc::clone(known)));
        }
        let count: i64 = self.read(
            sqlite
                .prepare_cached("SELECT count(*) FROM chunks WHERE generation = ?1")
                .and_then(|mut count| count.query_row([generation.id], |row| row.get(0))),
        )?;
        let count = saturated::<usize>(count);
        if count.saturating_mul(generation.dimensions + ROW_BYTES) > self.max_bytes {
            return Ok(None);
        }
        // Ids only grow. Chunks that were deleted since stay in memory until they are many; they are recognized when
        // their exact score is read.
        let mut blocks = known.map_or_else(Vec::new, |known| known.blocks.clone());
        let load = |blocks: &mut Vec<Arc<Block>>| {
            let last = blocks.iter().filter_map(|block| block.rows.last()).map(|row| row.id).max();
            self.read(each_block(sqlite, generation, last.unwrap_or(0), |block| blocks.push(Arc::new(block))))
        };
        load(&mut blocks)?;
        let in_memory: usize = blocks.iter().map(|block| block.rows.len()).sum();
        if in_memory.saturating_sub(count) > count / DELETED_SHARE
            || blocks.len() > MAX_BLOCKS + count / BLOCK_ROWS
        {
            blocks.clear();
            load(&mut blocks)?;
        }
        let (generation, revision) = (generation.id, generation.revision);
        let fresh = Arc::new(RevisionVectors { file, generation, revision, blocks });
        *loaded = Some(Arc::clone(&fresh));
        Ok(Some(fresh))
    }

    fn read<Answer>(&self, answer: Result<Answer, rusqlite::Error>) -> Result<Answer, VectorError> {
        answer.map_err(|error| sqlite_error(&self.path, &error))
    }
}

/// Reads the chunks of a generation after an id, in blocks.
fn each_block(
    sqlite: &Connection,
    generation: &Generation,
    after: i64,
    mut read: impl FnMut(Block),
) -> Result<(), rusqlite::Error> {
    let mut statement = sqlite.prepare_cached(
        "SELECT id, record, stream, connection, scale, codes FROM chunks NOT INDEXED
         WHERE generation = ?1 AND id > ?2 ORDER BY id",
    )?;
    let mut rows = statement.query([generation.id, after])?;
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
    if !block.rows.is_empty() {
        read(block.compact());
    }
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
