//! The next records to embed: reads them from the store and splits them into chunks.

use fetchwell_core::record::RecordData;
use fetchwell_embedding::{EmbeddingError, EmbeddingModel};
use fetchwell_ranking::embedded_documents::plan_document;
use fetchwell_ranking::meaning::{PlannedChunk, PlannedTexts, TextDigest, plan_chunks};
use fetchwell_source::contract::{BuildProgress, EmbeddedStreams, StoreError};
use rusqlite::{Connection, OptionalExtension};

use super::codes::StoredVector;
use super::streams::{SkippedStreams, is_embedded_sql, streams_parameter};
use crate::database::Database;
use crate::read;
use crate::tables::has_projects;

/// Maximum number of records that are read at once.
const MAX_RECORDS: i64 = 500;

/// Maximum bytes of record text that are read at once.
const MAX_TEXT_BYTES: usize = 4 * 1024 * 1024;

/// A changed record with its chunks. A deleted record has none, and neither has one of a stream that is not embedded.
#[derive(Debug, Default)]
pub(super) struct PlannedRecord {
    pub(super) row: i64,
    pub(super) stream: i64,
    pub(super) connection: i64,
    pub(super) version: i64,
    pub(super) is_embedded: bool,
    /// True if the record is a document of a project.
    pub(super) is_document: bool,
    pub(super) chunks: Vec<PlannedChunk>,
}

/// The changes of a store that a generation has.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Coverage {
    /// Version of the last change.
    pub(super) version: i64,
    /// Streams that lack changes up to this version.
    pub(super) skipped: SkippedStreams,
}

/// The next changes of a store, in the order of their versions.
#[derive(Debug, Default)]
pub(super) struct Plan {
    pub(super) records: Vec<PlannedRecord>,
    /// Coverage of a generation that has these changes.
    pub(super) coverage: Coverage,
    /// Texts of the chunks.
    pub(super) texts: PlannedTexts<StoredVector>,
}

impl Plan {
    /// Returns the work that the plan makes.
    pub(super) fn progress(&self) -> BuildProgress {
        BuildProgress {
            records: self.records.iter().filter(|record| record.is_embedded).count(),
            chunks: self.records.iter().map(|record| record.chunks.len()).sum(),
            embedded: self.texts.new.len(),
            pieces: self.texts.pieces,
        }
    }

    /// Embeds the texts. A record with a text that the model refuses stays without vectors.
    ///
    /// # Errors
    ///
    /// The model cannot be used.
    pub(super) async fn embed(&mut self, model: &dyn EmbeddingModel) -> Result<(), EmbeddingError> {
        let records: Vec<&[PlannedChunk]> =
            self.records.iter().map(|record| record.chunks.as_slice()).collect();
        self.texts.embed(model, &records).await
    }

    /// Returns true if a document has vectors.
    pub(super) fn has_new_documents(&self) -> bool {
        let has_chunks = |record: &&PlannedRecord| record.is_document && !record.chunks.is_empty();
        self.records.iter().filter(has_chunks).any(|record| self.has_vectors(record))
    }

    /// Returns true if each chunk of a record has a vector.
    pub(super) fn has_vectors(&self, record: &PlannedRecord) -> bool {
        self.texts.has_vectors(&record.chunks)
    }
}

/// Reader of the changes that a generation lacks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Planner<'a> {
    pub(super) database: &'a Database,
    /// File of vectors, with the generations that have vectors of the model.
    pub(super) vectors: Option<(&'a Connection, &'a [i64])>,
    pub(super) model: &'a dyn EmbeddingModel,
    pub(super) streams: &'a EmbeddedStreams,
}

impl Planner<'_> {
    /// Reads the changes that a generation lacks, until there are enough texts for one batch. Returns `None` if there are
    /// none. Changes that were skipped come first.
    pub(super) fn next(&self, covered: &Coverage) -> Result<Option<Plan>, StoreError> {
        let mut coverage = covered.clone();
        for (stream, after) in self.shown_streams(&covered.skipped)? {
            let range = ChangeRange { stream: Some(stream), after, until: covered.version };
            let plan = self.plan(range)?;
            if let Some(last) = plan.records.last() {
                coverage.skipped.embedded_until(stream, last.version);
                return Ok(Some(Plan { coverage, ..plan }));
            }
            coverage.skipped.complete(stream);
        }
        let plan = self.plan(ChangeRange { stream: None, after: covered.version, until: i64::MAX })?;
        let Some(last) = plan.records.last() else { return Ok(None) };
        coverage.version = last.version;
        for record in plan.records.iter().filter(|record| !record.is_embedded) {
            coverage.skipped.skip(record.stream, record.version);
        }
        Ok(Some(Plan { coverage, ..plan }))
    }

    /// Plans one record again. The coverage of the generation stays the same.
    pub(super) fn record(&self, row: i64, coverage: Coverage) -> Result<Plan, StoreError> {
        let version: Option<i64> = self.database.read(|sqlite| {
            let mut version = sqlite.prepare_cached("SELECT version FROM records WHERE id = ?1")?;
            version.query_row([row], |found| found.get(0)).optional()
        })?;
        let mut plan = match version {
            Some(version) => self.plan(ChangeRange { stream: None, after: version - 1, until: version })?,
            None => Plan::default(),
        };
        if plan.records.is_empty() {
            plan.records.push(PlannedRecord { row, ..PlannedRecord::default() });
        }
        Ok(Plan { coverage, ..plan })
    }

    /// Returns the skipped streams that are embedded now, each with the version after which it lacks changes.
    fn shown_streams(&self, skipped: &SkippedStreams) -> Result<Vec<(i64, i64)>, StoreError> {
        let sql = format!("SELECT {}", is_embedded_sql("?1", "?2"));
        let names = streams_parameter(self.streams);
        self.database.read(|sqlite| {
            let mut is_embedded = sqlite.prepare_cached(&sql)?;
            let mut shown = Vec::new();
            for (stream, after) in skipped.iter() {
                if is_embedded.query_row((stream, &names), |row| row.get(0))? {
                    shown.push((stream, after));
                }
            }
            Ok(shown)
        })
    }

    /// Plans the first changes of a range.
    fn plan(&self, range: ChangeRange) -> Result<Plan, StoreError> {
        let names = streams_parameter(self.streams);
        let changes = self.database.read(|sqlite| read_changes(sqlite, range, names.as_deref()))?;
        let mut plan = Plan::default();
        let known = |digest: &TextDigest| {
            self.vectors.and_then(|(sqlite, generations)| known_vector(sqlite, generations, *digest))
        };
        for Change { mut record, data } in changes {
            let of_document = data
                .as_ref()
                .filter(|_| record.is_document)
                .and_then(|data| plan_document(data, self.model.pieces()));
            let (chunks, omitted) = match (of_document, &data) {
                (Some(chunks), _) => (chunks, 0),
                (None, Some(data)) => plan_chunks(data, self.model),
                (None, None) => Default::default(),
            };
            plan.texts.omitted += omitted;
            record.chunks = plan.texts.add(chunks, known);
            plan.records.push(record);
            if plan.texts.new.len() >= self.model.batch() {
                break;
            }
        }
        Ok(plan)
    }
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

/// A range of changes by their versions.
#[derive(Debug, Clone, Copy)]
struct ChangeRange {
    /// The only stream, or `None` for all.
    stream: Option<i64>,
    after: i64,
    /// Last version of the range.
    until: i64,
}

struct Change {
    record: PlannedRecord,
    /// Data of a record that is embedded and not deleted.
    data: Option<RecordData>,
}

/// Reads the first changes of a range. Data of streams that are not embedded stays in the store.
fn read_changes(
    sqlite: &Connection,
    range: ChangeRange,
    streams: Option<&str>,
) -> Result<Vec<Change>, rusqlite::Error> {
    let is_embedded = is_embedded_sql("r.stream", "?4");
    let is_document = if has_projects(sqlite)? { "id IN (SELECT record FROM documents)" } else { "0" };
    let mut statement = sqlite.prepare_cached(&format!(
        "SELECT id, stream, connection, version, is_embedded,
                CASE WHEN is_embedded THEN data END, CASE WHEN is_embedded THEN octet_length(data) END, {is_document}
         FROM (SELECT r.id, r.stream, s.connection, r.version, r.data, {is_embedded} AS is_embedded
               FROM records r JOIN streams s ON s.id = r.stream)
         WHERE version > ?1 AND version <= ?2 AND (?3 IS NULL OR stream = ?3)
         ORDER BY version LIMIT ?5"
    ))?;
    let mut rows = statement.query((range.after, range.until, range.stream, streams, MAX_RECORDS))?;
    let (mut changes, mut bytes) = (Vec::new(), 0);
    while let Some(row) = rows.next()? {
        bytes += read::rows::length_at(row, 6)?;
        let data = row.get_ref(5)?.as_str_or_null()?.and_then(|data| serde_json::from_str(data).ok());
        let record = PlannedRecord {
            row: row.get(0)?,
            stream: row.get(1)?,
            connection: row.get(2)?,
            version: row.get(3)?,
            is_embedded: row.get(4)?,
            is_document: row.get(7)?,
            chunks: Vec::new(),
        };
        changes.push(Change { record, data });
        if bytes >= MAX_TEXT_BYTES {
            break;
        }
    }
    Ok(changes)
}
