//! The recorder of calls: in memory, and in a file if they have to outlive the process.

use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::Serialize;

use super::audit::AuditLog;
use super::db::database::Database;
use super::db::stored::{StoredActivity, StoredCalls};
use super::db::writer::Writer;
use super::embedding::{EmbeddingBuild, EmbeddingBuilds};
use super::imports::{ImportProgress, ImportsProgress};
use super::prometheus::meters::{Gauges, Meters};
use super::record::whole;
use super::ring::Ring;
use super::totals::{ContextProtection, Totals};
use super::{Call, Endpoint, Origin, Spans, TelemetryRecord, TraceParent};

/// Default number of calls that are kept in memory, a few megabytes.
pub const RECORDS_IN_MEMORY: usize = 10_000;

/// Maximum time that a reader of the file waits for queued calls.
const MAX_WRITE_WAIT: Duration = Duration::from_secs(1);

/// The recorder of calls. Cheap to clone; clones share the records.
#[derive(Debug, Clone)]
pub struct Telemetry(Arc<Recorder>);

#[derive(Debug)]
struct Recorder {
    started: Instant,
    recent: Mutex<LatestCalls>,
    /// Metrics of this process.
    meters: Mutex<Meters>,
    /// Builds of vectors in the background.
    embeddings: Mutex<EmbeddingBuilds>,
    /// Imports that are kept current.
    imports: Mutex<ImportsProgress>,
    /// Writer of the file, or `None` if calls are kept in memory only.
    writer: Option<Writer>,
    /// Exporter of spans, if one is configured.
    spans: OnceLock<Spans>,
    /// Log of the records that calls read, if one is configured.
    audit: OnceLock<AuditLog>,
}

/// The latest calls.
#[derive(Debug)]
struct LatestCalls {
    records: Ring<Arc<TelemetryRecord>>,
    /// Latencies in microseconds, including those of an earlier process.
    latencies: Ring<u64>,
    /// Totals of this process.
    totals: Totals,
}

/// The aggregates of all calls, and the state of the recorder.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Aggregates {
    /// Aggregates of all calls.
    pub context_protection: ContextProtection,
    /// State of the recorder.
    pub telemetry: StorageStatus,
}

/// State of the storage of call records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct StorageStatus {
    /// Calls with a record that can be listed.
    pub stored: u64,
    /// Calls with a lost record; the aggregates include them.
    pub dropped: u64,
    /// Place of the records.
    pub state: StorageState,
}

/// Place in which call records are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StorageState {
    /// In memory, until the process ends.
    Memory,
    /// In a file.
    Ok,
    /// In memory, until the file can be written again.
    Degraded,
}

impl Default for Telemetry {
    fn default() -> Self {
        Self::in_memory(RECORDS_IN_MEMORY)
    }
}

impl Telemetry {
    /// Creates a recorder that keeps the latest `max_calls` calls until the process ends.
    #[must_use]
    pub fn in_memory(max_calls: usize) -> Self {
        Self::new(None, Vec::new(), max_calls)
    }

    /// Creates a recorder that stores calls in a state directory and keeps the latest `max_calls` in memory. It also works
    /// if the directory is unusable; its state is then degraded.
    #[must_use]
    pub fn in_directory(directory: &Path, max_calls: usize) -> Self {
        Self::in_database(Database::in_directory(directory), max_calls)
    }

    pub(crate) fn in_database(database: Database, max_calls: usize) -> Self {
        let (writer, latencies) = Writer::start(database, max_calls);
        Self::new(Some(writer), latencies, max_calls)
    }

    fn new(writer: Option<Writer>, earlier: Vec<u64>, max_calls: usize) -> Self {
        let mut latencies = Ring::new(max_calls);
        for latency in earlier {
            latencies.push(latency);
        }
        let recent = LatestCalls { records: Ring::new(max_calls), latencies, totals: Totals::default() };
        Self(Arc::new(Recorder {
            started: Instant::now(),
            recent: Mutex::new(recent),
            meters: Mutex::default(),
            embeddings: Mutex::default(),
            imports: Mutex::default(),
            writer,
            spans: OnceLock::new(),
            audit: OnceLock::new(),
        }))
    }

    /// Starts to measure a call.
    #[must_use]
    pub fn call(&self, endpoint: Endpoint, origin: Origin) -> Call {
        Call::start(self.clone(), endpoint, origin)
    }

    /// Records a call that has ended.
    pub(crate) fn ended(
        &self,
        record: TelemetryRecord,
        reason: Option<&'static str>,
        parent: Option<TraceParent>,
    ) {
        self.meters(|meters| meters.count(&record, reason));
        if let Some(spans) = self.0.spans.get() {
            spans.export(&record, parent);
        }
        let record = Arc::new(record);
        self.recent(|recent| {
            recent.totals = recent.totals.plus(Totals::from_record(&record));
            recent.latencies.push(record.latency_us);
            recent.records.push(Arc::clone(&record));
        });
        if let Some(writer) = &self.0.writer {
            writer.keep(record);
        }
    }

    /// Exports calls that end from now on as spans. The first exporter that is set stays.
    pub fn export_to(&self, spans: Spans) {
        let _ = self.0.spans.set(spans);
    }

    /// Writes the records that calls read from now on to an audit log. The first log that is set stays.
    pub fn audit_to(&self, log: AuditLog) {
        let _ = self.0.audit.set(log);
    }

    /// Returns the audit log, if there is one.
    pub(crate) fn audit(&self) -> Option<&AuditLog> {
        self.0.audit.get()
    }

    /// Sends the queued spans, for at most `timeout`, and stops the export.
    pub fn stop_exporting(&self, timeout: Duration) {
        if let Some(spans) = self.0.spans.get() {
            spans.stop(timeout);
        }
    }

    /// Counts a cursor that was encoded, with the time that took.
    pub fn cursor_encoded(&self, took: Duration) {
        self.meters(|meters| meters.cursor_encoded(took));
    }

    /// Counts an applied reload of the configuration, with the time that it took.
    pub fn reloaded(&self, took: Duration) {
        self.meters(|meters| meters.reloaded(took));
    }

    /// Counts a rejected reload of the configuration.
    pub fn reload_refused(&self) {
        self.meters(Meters::reload_refused);
    }

    /// Changes the state of the build of a source's vectors.
    pub fn update_embedding(&self, source: &str, change: impl FnOnce(&mut EmbeddingBuild)) {
        self.with_embeddings(|builds| builds.update(source, change));
    }

    /// Removes the builds of sources that are not in the list.
    pub fn retain_embeddings(&self, sources: &[&str]) {
        self.with_embeddings(|builds| builds.retain(sources));
    }

    /// Returns the builds of vectors in the background.
    #[must_use]
    pub fn embeddings(&self) -> Vec<EmbeddingBuild> {
        self.with_embeddings(|builds| builds.list())
    }

    /// Changes the state of the import of a connection.
    pub fn update_import(&self, connection: &str, change: impl FnOnce(&mut ImportProgress)) {
        self.with_imports(|imports| imports.update(connection, change));
    }

    /// Removes the imports of connections that are not in the list.
    pub fn retain_imports(&self, connections: &[&str]) {
        self.with_imports(|imports| imports.retain(connections));
    }

    /// Returns the imports that are kept current.
    #[must_use]
    pub fn imports(&self) -> Vec<ImportProgress> {
        self.with_imports(|imports| imports.list())
    }

    /// Returns the aggregates of all calls and the state of the recorder.
    #[must_use]
    pub fn aggregates(&self) -> Aggregates {
        let (latencies, in_memory, own) = self.recent(|recent| {
            (recent.latencies.iter().copied().collect(), recent.records.len(), recent.totals)
        });
        let totals = self.0.writer.as_ref().map_or(own, Writer::totals);
        let telemetry = match &self.0.writer {
            None => StorageStatus { stored: whole(in_memory), dropped: 0, state: StorageState::Memory },
            Some(writer) => StorageStatus {
                stored: writer.rows(),
                dropped: writer.dropped(),
                state: if writer.is_degraded() { StorageState::Degraded } else { StorageState::Ok },
            },
        };
        Aggregates {
            context_protection: totals.aggregate(latencies, self.0.started.elapsed().as_secs()),
            telemetry,
        }
    }

    /// Returns the metrics of this process in Prometheus' text format.
    #[must_use]
    pub fn exposition(&self) -> String {
        let Aggregates { context_protection: aggregates, telemetry } = self.aggregates();
        let gauges = Gauges {
            pagination_adoption: aggregates.pagination_adoption,
            summarization_adoption: aggregates.summarization_adoption,
            chunking_adoption: aggregates.chunking_adoption,
            uptime_seconds: aggregates.uptime_seconds,
            dropped: telemetry.dropped,
        };
        let text = self.meters(|meters| meters.exposition(&gauges));
        let builds = self.with_embeddings(|builds| builds.exposition());
        let audit = self.audit().map(AuditLog::exposition).unwrap_or_default();
        text + &builds + &self.with_imports(|imports| imports.exposition()) + &audit
    }

    /// Returns the latest calls of this process, the newest first.
    #[must_use]
    pub fn latest(&self, max_calls: usize) -> Vec<Arc<TelemetryRecord>> {
        self.recent(|recent| recent.records.iter().rev().take(max_calls).cloned().collect())
    }

    /// Counts the stored calls of the last `count` intervals before `now`. Includes those of earlier and other processes with
    /// the same state directory. Returns `None` if calls are in memory only, or if the file cannot be read. Blocks.
    #[must_use]
    pub fn stored_activity(
        &self,
        now: Timestamp,
        interval: SignedDuration,
        count: usize,
    ) -> Option<StoredActivity> {
        let writer = self.0.writer.as_ref()?;
        writer.flush(MAX_WRITE_WAIT);
        if writer.is_degraded() {
            return None;
        }
        let stored = StoredCalls::open(writer.directory());
        stored.and_then(|calls| calls.activity(now, interval, count)).ok().flatten()
    }

    /// Waits until all calls so far are in the file and the audit log. Waits at most `timeout` for each.
    pub fn flush(&self, timeout: Duration) {
        if let Some(audit) = self.audit() {
            audit.flush(timeout);
        }
        if let Some(writer) = &self.0.writer {
            writer.flush(timeout);
        }
    }

    fn recent<Answer>(&self, read: impl FnOnce(&mut LatestCalls) -> Answer) -> Answer {
        read(&mut self.0.recent.lock())
    }

    fn with_embeddings<Answer>(&self, read: impl FnOnce(&mut EmbeddingBuilds) -> Answer) -> Answer {
        read(&mut self.0.embeddings.lock())
    }

    fn with_imports<Answer>(&self, read: impl FnOnce(&mut ImportsProgress) -> Answer) -> Answer {
        read(&mut self.0.imports.lock())
    }

    fn meters<Answer>(&self, read: impl FnOnce(&mut Meters) -> Answer) -> Answer {
        read(&mut self.0.meters.lock())
    }
}
