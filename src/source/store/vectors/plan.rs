//! The next records to embed: reads them from the store and splits them into chunks.

use std::collections::{HashMap, HashSet};

use rusqlite::Connection;
use sha2::{Digest, Sha256};

use super::codes::StoredVector;
use crate::embedding::{EmbeddingModel, chunks};
use crate::record::{RecordData, document_text, own_title};
use crate::source::store::database::Database;
use crate::source::store::{StoreError, read};

/// Maximum number of records that are read at once.
const MAX_RECORDS: i64 = 500;

/// Maximum bytes of record text that are read at once.
const MAX_TEXT_BYTES: usize = 4 * 1024 * 1024;

/// First bytes of the SHA-256 of an embedded text.
pub(super) type TextDigest = [u8; 16];

/// A chunk to be stored.
#[derive(Debug)]
pub(super) struct PlannedChunk {
    pub(super) first_byte: usize,
    pub(super) end_byte: usize,
    pub(super) digest: TextDigest,
}

/// A changed record with its chunks. A deleted record has none.
#[derive(Debug)]
pub(super) struct PlannedRecord {
    pub(super) row: i64,
    pub(super) stream: i64,
    pub(super) connection: i64,
    pub(super) chunks: Vec<PlannedChunk>,
}

/// The next changes of a store, in the order of their versions.
#[derive(Debug, Default)]
pub(super) struct Plan {
    pub(super) records: Vec<PlannedRecord>,
    /// Version of the last change.
    pub(super) version: i64,
    /// Texts that have no vector yet, with their digests.
    pub(super) texts: Vec<(TextDigest, String)>,
    /// Vectors of texts that were embedded before.
    pub(super) known: HashMap<TextDigest, StoredVector>,
    /// Number of pieces of the texts.
    pub(super) pieces: usize,
    /// Bytes of texts beyond the limit of chunks.
    pub(super) omitted: usize,
}

impl Plan {
    /// Reads the changes after a version, until there are enough texts for one batch. Returns `None` if there are none.
    pub(super) fn read(
        database: &Database,
        vectors: Option<(&Connection, &[i64])>,
        model: &dyn EmbeddingModel,
        after: i64,
    ) -> Result<Option<Self>, StoreError> {
        let changes = database.read(|sqlite| changes_after(sqlite, after))?;
        let mut plan = Self::default();
        let mut planned: HashSet<TextDigest> = HashSet::new();
        for change in changes {
            plan.version = change.version;
            let mut record = change.record;
            for (chunk, text, pieces) in
                change.data.iter().flat_map(|data| plan_chunks(data, model, &mut plan.omitted))
            {
                if planned.insert(chunk.digest) {
                    match vectors
                        .and_then(|(sqlite, generations)| known_vector(sqlite, generations, chunk.digest))
                    {
                        Some(vector) => drop(plan.known.insert(chunk.digest, vector)),
                        None => {
                            plan.pieces += pieces;
                            plan.texts.push((chunk.digest, text));
                        }
                    }
                }
                record.chunks.push(chunk);
            }
            plan.records.push(record);
            if plan.texts.len() >= model.batch() {
                break;
            }
        }
        Ok((!plan.records.is_empty()).then_some(plan))
    }
}

type TextChunk = (PlannedChunk, String, usize);

fn plan_chunks(data: &RecordData, model: &dyn EmbeddingModel, omitted: &mut usize) -> Vec<TextChunk> {
    let found = chunks(own_title(data), &document_text(data), model.pieces());
    *omitted += found.omitted_bytes;
    let planned = found.chunks.into_iter().map(|chunk| {
        let digest = digest_of(&chunk.embedded);
        let planned = PlannedChunk { first_byte: chunk.range.start, end_byte: chunk.range.end, digest };
        (planned, chunk.embedded, chunk.pieces)
    });
    planned.collect()
}

fn digest_of(text: &str) -> TextDigest {
    let digest: [u8; 32] = Sha256::digest(text).into();
    digest.first_chunk().copied().unwrap_or_default()
}

/// Returns the vector of a text in one of these generations.
fn known_vector(sqlite: &Connection, generations: &[i64], digest: TextDigest) -> Option<StoredVector> {
    let find = || {
        let mut statement =
            sqlite.prepare_cached("SELECT generation, scale, codes FROM chunks WHERE digest = ?1")?;
        let mut rows = statement.query([digest])?;
        while let Some(row) = rows.next()? {
            if generations.contains(&row.get(0)?) {
                #[expect(clippy::cast_possible_truncation, reason = "it was stored as a 32-bit number")]
                let scale = row.get::<_, f64>(1)? as f32;
                return Ok(Some(StoredVector { scale, codes: row.get(2)? }));
            }
        }
        Ok(None)
    };
    let found: Result<_, rusqlite::Error> = find();
    found.ok().flatten()
}

struct Change {
    record: PlannedRecord,
    version: i64,
    data: Option<RecordData>,
}

fn changes_after(sqlite: &Connection, after: i64) -> Result<Vec<Change>, rusqlite::Error> {
    let mut statement = sqlite.prepare_cached(
        "SELECT r.id, s.id, s.connection, r.version, r.data, octet_length(r.data)
         FROM records r JOIN streams s ON s.id = r.stream
         WHERE r.version > ?1 ORDER BY r.version LIMIT ?2",
    )?;
    let mut rows = statement.query((after, MAX_RECORDS))?;
    let (mut changes, mut bytes) = (Vec::new(), 0);
    while let Some(row) = rows.next()? {
        bytes += read::rows::length_at(row, 5)?;
        let data = row.get_ref(4)?.as_str_or_null()?.and_then(|data| serde_json::from_str(data).ok());
        let record = PlannedRecord {
            row: row.get(0)?,
            stream: row.get(1)?,
            connection: row.get(2)?,
            chunks: Vec::new(),
        };
        changes.push(Change { record, version: row.get(3)?, data });
        if bytes >= MAX_TEXT_BYTES {
            break;
        }
    }
    Ok(changes)
}
