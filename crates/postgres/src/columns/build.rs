//! Builds the columns of streams, in one transaction for each step.
//!
//! A step sees one state of the store and writes segments up to its newest version. Until it commits, readers see the segments
//! before; a process that is killed changes nothing. A record that changes gets a higher version, so a segment stays valid: its
//! outdated records are those whose keys have higher versions.

use std::collections::HashSet;

use deadpool_postgres::{Object, Transaction};
use fetchwell_core::record::RecordData;
use fetchwell_ranking::relational::columns::{ColumnPlan, MIN_RECORDS};
use fetchwell_source::contract::PostgresError;
use tokio_postgres::{Error, Row};

use super::block::{FORMAT, sealed, unsealed};
use super::outdated::mark_outdated;
use super::rows::{
    NewSegment, SegmentRow, VersionRange, are_contiguous, delete_segments, gaps, put_segment, read_segments,
};
use super::segment_writer::{KEYS, MAX_RECORDS, SegmentWriter, key_hash};
use crate::administration::{Job, Lease, LeaseAttempt};
use crate::pool::PostgresPool;
use crate::transaction::{begin_read, begin_stable_write};
use crate::url::PostgresUrl;

/// Number of changes up to which columns stay as they are. Readers read so many records as JSON.
const MAX_UNBUILT: usize = 1_000;

/// Number of changes of a small stream after which all of its columns are built again.
const MIN_CHANGED: usize = 1_000;

/// Maximum number of segments of a step.
const MAX_SEGMENTS: usize = 16;

/// Number of records that are read at a time, and bytes of a text that is read together with others.
const BATCH: i32 = 500;
const MAX_INLINE_BYTES: i32 = 64 * 1024;

/// A segment is built again if one of so many records is outdated.
const OUTDATED_SHARE: usize = 4;

/// A smaller segment before the new records is built again with them if it has at most so many times as many records.
const MERGE_FACTOR: usize = 2;

/// Settings of a step. Records are read in the order of an index.
const SETTINGS: &str = "SET LOCAL statement_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = 0;
    SET LOCAL enable_sort = off; SET LOCAL enable_seqscan = off";

/// Limits of a build.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BuildLimits {
    /// Minimum number of records of a stream that gets columns.
    pub(crate) min_records: i64,
    /// Number of changes up to which columns stay as they are.
    pub(crate) max_unbuilt: usize,
    /// Maximum number of records of a segment, and of segments of a step.
    pub(crate) records: usize,
    pub(crate) segments: usize,
}

impl Default for BuildLimits {
    fn default() -> Self {
        Self {
            min_records: MIN_RECORDS,
            max_unbuilt: MAX_UNBUILT,
            records: MAX_RECORDS,
            segments: MAX_SEGMENTS,
        }
    }
}

/// Builds the columns of all streams with enough records, unless another process does or the role may not.
///
/// # Errors
///
/// The database cannot be written. All columns that there are stay valid.
pub(crate) async fn build_columns(
    database: &mut Object,
    pool: &PostgresPool,
    limits: BuildLimits,
) -> Result<(), PostgresError> {
    if !may_build(database, pool.url()).await.map_err(|error| pool.failure(&error))? {
        return Ok(());
    }
    let LeaseAttempt::Taken(lease) = Lease::try_take(pool, Job::BuildColumns).await? else { return Ok(()) };
    let built = build_all(database, pool.url(), limits).await;
    lease.release().await;
    built.map_err(|error| pool.failure(&error))
}

/// Returns true if the role may write columns.
async fn may_build(database: &mut Object, url: &PostgresUrl) -> Result<bool, Error> {
    let sql = "SELECT NOT pg_is_in_recovery() AND NOT current_setting('default_transaction_read_only')::boolean
         AND bool_and(has_table_privilege(name, 'INSERT')) AND has_table_privilege('fetchwell.column_segments', 'UPDATE')
         AND has_table_privilege('fetchwell.column_segments', 'DELETE')
         FROM unnest(ARRAY['fetchwell.column_segments', 'fetchwell.column_blocks']) AS name";
    begin_read(database, url).await?.query_one(sql, &[]).await?.try_get(0)
}

/// Warns that columns were not built. All answers stay right.
pub(crate) fn warn_not_built<E: std::fmt::Display>(built: Result<(), E>) {
    if let Err(error) = built {
        tracing::warn!(%error, "filters, aggregates and orders read all records until the columns are built");
    }
}

async fn build_all(database: &mut Object, url: &PostgresUrl, limits: BuildLimits) -> Result<(), Error> {
    let sql = "SELECT id FROM fetchwell.streams s WHERE record_count >= $1
         OR EXISTS (SELECT 1 FROM fetchwell.column_segments g WHERE g.stream = s.id) ORDER BY id";
    let transaction = begin_stable_write(database, url).await?;
    let streams: Vec<i64> =
        transaction.query(sql, &[&limits.min_records]).await?.iter().map(|row| row.get(0)).collect();
    drop(transaction);
    for stream in streams {
        while step(database, url, stream, limits).await? {}
    }
    Ok(())
}

/// Builds the next segments of a stream. Returns true if more are to be built.
async fn step(
    database: &mut Object,
    url: &PostgresUrl,
    stream: i64,
    limits: BuildLimits,
) -> Result<bool, Error> {
    let transaction = begin_stable_write(database, url).await?;
    transaction.batch_execute(SETTINGS).await?;
    let Some(mut state) = StreamState::read(&transaction, stream).await? else { return Ok(false) };
    let before = state.segments.clone();
    state.choose(&transaction, limits).await?;
    if state.is_done {
        return Ok(false);
    }
    let kept = |id: i64| state.segments.iter().any(|segment| segment.id == id);
    let deleted: Vec<i64> = before.iter().map(|segment| segment.id).filter(|id| !kept(*id)).collect();
    let plan = ColumnPlan::new(state.column_names(&transaction, &before).await?);
    delete_segments(&transaction, &deleted).await?;
    for segment in &state.segments {
        let sql = "UPDATE fetchwell.column_segments SET outdated = $2, as_of = $3 WHERE id = $1";
        let outdated = sealed(segment.outdated.bytes.clone());
        transaction.execute(sql, &[&segment.id, &outdated, &state.newest]).await?;
    }
    let as_of = state.newest;
    let mut build = Build { transaction: &transaction, stream, as_of, limits, plan, written: 0 };
    let mut is_complete = true;
    for gap in gaps(&state.segments, state.newest) {
        is_complete = is_complete && build.fill(gap).await?;
    }
    transaction.commit().await?;
    Ok(!is_complete || state.has_previous())
}

/// State of a stream, and the segments that are kept.
struct StreamState {
    stream: i64,
    count: i64,
    newest: i64,
    segments: Vec<SegmentRow>,
    /// True if the segments are to stay as they are.
    is_done: bool,
}

impl StreamState {
    /// Reads the state of a stream; `None` if its columns cannot be built.
    async fn read(transaction: &Transaction<'_>, stream: i64) -> Result<Option<Self>, Error> {
        let sql = "SELECT s.record_count, o.version, to_regclass('fetchwell.records_by_version') IS NOT NULL
             FROM fetchwell.streams s CROSS JOIN fetchwell.store o WHERE s.id = $1";
        let Some(row) = transaction.query_opt(sql, &[&stream]).await? else { return Ok(None) };
        let segments = read_segments(transaction, stream).await?;
        let is_newer = segments.iter().any(|segment| segment.format > FORMAT);
        let is_indexed: bool = row.try_get(2)?;
        let (count, newest) = (row.try_get(0)?, row.try_get(1)?);
        let is_ours = is_indexed && !is_newer;
        Ok(is_ours.then_some(Self { stream, count, newest, segments, is_done: false }))
    }

    /// Chooses the segments that are kept, and finds their outdated records.
    async fn choose(&mut self, transaction: &Transaction<'_>, limits: BuildLimits) -> Result<(), Error> {
        self.drop_previous(limits);
        let Some(covered) = self.segments.iter().map(|segment| segment.range.last).max() else {
            return Ok(());
        };
        let as_of = self.segments.iter().map(|segment| segment.as_of).min().unwrap_or_default();
        let Some(changes) = Changes::read(transaction, self.stream, as_of, self.count).await? else {
            self.segments.clear();
            return Ok(());
        };
        // An earlier step may have had enough before the end.
        let is_complete = are_contiguous(&self.segments) && covered == as_of;
        let mut readable = Vec::new();
        for mut segment in std::mem::take(&mut self.segments) {
            let sql =
                "SELECT data FROM fetchwell.column_blocks WHERE segment = $1 AND name = $2 AND part = 0";
            let block = transaction.query_opt(sql, &[&segment.id, &KEYS]).await?;
            let block = block.map(|row| row.try_get::<_, Vec<u8>>(0)).transpose()?;
            let block = block.as_deref().and_then(unsealed);
            if block.and_then(|block| mark_outdated(&mut segment, block, &changes.keys)).is_some() {
                readable.push(segment);
            }
        }
        let current: usize = readable.iter().map(SegmentRow::current).sum();
        let is_whole = is_complete && i64::try_from(current + changes.records) == Ok(self.count);
        self.segments = readable;
        if is_whole && changes.keys.len() <= limits.max_unbuilt {
            self.is_done = true;
            return Ok(());
        }
        // Records were removed, or another program changed the tables.
        if is_complete && !is_whole {
            let sql = "SELECT count(*) FROM fetchwell.records WHERE stream = $1 AND data IS NOT NULL";
            let records: i64 = transaction.query_one(sql, &[&self.stream]).await?.try_get(0)?;
            if records != self.count {
                // Readers would refuse new segments, too.
                let (stream, count) = (self.stream, self.count);
                tracing::warn!(stream, count, records, "columns are not used: `record_count` is wrong");
                self.is_done = true;
                return Ok(());
            }
            self.segments.clear();
        }
        self.segments
            .retain(|segment| (segment.records - segment.current()) * OUTDATED_SHARE <= segment.records);
        let mut merged = changes.records;
        while let Some(last) = self.segments.last()
            && last.current() <= merged * MERGE_FACTOR
            && last.current() + merged <= limits.records
        {
            merged += last.current();
            self.segments.pop();
        }
        Ok(())
    }

    /// Drops the first segments of a previous format, whose records fit into new segments of this step. The others are read
    /// until then.
    fn drop_previous(&mut self, limits: BuildLimits) {
        let (max_dropped, mut dropped) = ((limits.segments / 2).max(1), 0);
        self.segments.retain(|segment| {
            let is_kept = segment.format == FORMAT || dropped >= max_dropped;
            dropped += usize::from(!is_kept);
            is_kept
        });
    }

    /// Returns true if a segment has a previous format.
    fn has_previous(&self) -> bool {
        self.segments.iter().any(|segment| segment.format != FORMAT)
    }

    /// Returns the names of the columns of the newest segment, so that the next ones have the same.
    async fn column_names(
        &self,
        transaction: &Transaction<'_>,
        before: &[SegmentRow],
    ) -> Result<Vec<String>, Error> {
        let Some(newest) = before.last() else { return Ok(Vec::new()) };
        let sql = "SELECT columns FROM fetchwell.column_segments WHERE id = $1";
        let row = transaction.query_opt(sql, &[&newest.id]).await?;
        row.map_or(Ok(Vec::new()), |row| row.try_get(0))
    }
}

/// Records that changed after a version.
struct Changes {
    /// Hashes of their keys, also of deleted ones.
    keys: HashSet<i64>,
    /// Number of those that are not deleted.
    records: usize,
}

impl Changes {
    /// Reads the changes of a stream; `None` if they are about as many as its `count` records.
    async fn read(
        transaction: &Transaction<'_>,
        stream: i64,
        after: i64,
        count: i64,
    ) -> Result<Option<Self>, Error> {
        let sql = "SELECT key, data IS NOT NULL FROM fetchwell.records WHERE stream = $1 AND version > $2";
        let statement = transaction.prepare_cached(sql).await?;
        let portal = transaction.bind(&statement, &[&stream, &after]).await?;
        let mut changes = Self { keys: HashSet::new(), records: 0 };
        let max_changes = MIN_CHANGED.max(usize::try_from(count / 2).unwrap_or_default());
        loop {
            let rows = transaction.query_portal(&portal, BATCH).await?;
            for row in &rows {
                changes.keys.insert(key_hash(row.try_get(0)?));
                changes.records += usize::from(row.try_get::<_, bool>(1)?);
            }
            if changes.keys.len() > max_changes {
                return Ok(None);
            }
            if rows.is_empty() {
                return Ok(Some(changes));
            }
        }
    }
}

/// Segments of a stream that are being built.
struct Build<'a> {
    transaction: &'a Transaction<'a>,
    stream: i64,
    as_of: i64,
    limits: BuildLimits,
    plan: ColumnPlan,
    /// Number of segments so far.
    written: usize,
}

impl Build<'_> {
    /// Builds the segments of a range. Returns false if some are missing because the step has enough.
    async fn fill(&mut self, gap: VersionRange) -> Result<bool, Error> {
        let sql =
            "SELECT version, key, CASE WHEN octet_length(data) <= $4 THEN data END FROM fetchwell.records
             WHERE stream = $1 AND version > $2 AND version <= $3 AND data IS NOT NULL ORDER BY version";
        let statement = self.transaction.prepare_cached(sql).await?;
        let portal = self
            .transaction
            .bind(&statement, &[&self.stream, &gap.after, &gap.last, &MAX_INLINE_BYTES])
            .await?;
        let (mut after, mut writer) = (gap.after, SegmentWriter::default());
        loop {
            let rows = self.transaction.query_portal(&portal, BATCH).await?;
            if rows.is_empty() {
                break;
            }
            for row in &rows {
                let version = self.add(row, &mut writer).await?;
                if writer.is_full(self.limits.records) {
                    self.write(VersionRange { after, last: version }, std::mem::take(&mut writer)).await?;
                    after = version;
                    if self.written >= self.limits.segments {
                        return Ok(version == gap.last);
                    }
                }
            }
        }
        // A range without records is covered, too.
        if !writer.is_empty() || after < gap.last {
            self.write(VersionRange { after, last: gap.last }, writer).await?;
        }
        Ok(true)
    }

    /// Adds a record. Returns its version.
    async fn add(&mut self, row: &Row, writer: &mut SegmentWriter) -> Result<i64, Error> {
        let (version, key): (i64, &str) = (row.try_get(0)?, row.try_get(1)?);
        let data = if let Some(data) = row.try_get::<_, Option<&str>>(2)? {
            serde_json::from_str::<RecordData>(data).ok()
        } else {
            let sql = "SELECT data FROM fetchwell.records WHERE stream = $1 AND key = $2";
            let row = self.transaction.query_one(sql, &[&self.stream, &key]).await?;
            serde_json::from_str::<RecordData>(row.try_get(0)?).ok()
        };
        writer.add(version, key, data.map(|data| self.plan.divide(self.stream, &data)));
        Ok(version)
    }

    async fn write(&mut self, range: VersionRange, writer: SegmentWriter) -> Result<(), Error> {
        self.written += 1;
        let (stream, as_of, blocks) = (self.stream, self.as_of, writer.finish());
        put_segment(self.transaction, &NewSegment { stream, range, as_of, blocks }).await
    }
}
