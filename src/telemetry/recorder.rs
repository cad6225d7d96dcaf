//! Where calls are recorded: in memory, and in a file where there is one to outlive the process.

use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::Serialize;

use super::database::Database;
use super::meters::{Gauges, Meters};
use super::record::whole;
use super::ring::Ring;
use super::totals::{ContextProtection, Totals};
use super::writer::Writer;
use super::{Call, Endpoint, Origin, Spans, TelemetryRecord, TraceParent};

/// Calls that are kept in memory when nothing else is said: a few megabytes.
pub const RECORDS_IN_MEMORY: usize = 10_000;

/// Where calls are recorded. Clones record in one place.
#[derive(Debug, Clone)]
pub struct Telemetry(Arc<Recorder>);

#[derive(Debug)]
struct Recorder {
    started: Instant,
    recent: Mutex<Recent>,
    /// Counters of this process.
    meters: Mutex<Meters>,
    /// Nothing when calls are kept in memory alone.
    writer: Option<Writer>,
    /// Where spans of calls go, when they go anywhere.
    spans: OnceLock<Spans>,
}

/// The latest calls.
#[derive(Debug)]
struct Recent {
    records: Ring<Arc<TelemetryRecord>>,
    /// In microseconds, those of an earlier process included.
    latencies: Ring<u64>,
    /// All calls of this process.
    totals: Totals,
}

/// What there is to know of telemetry as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Figures {
    /// What calls come to.
    pub context_protection: ContextProtection,
    /// How they are kept.
    pub telemetry: Keeping,
}

/// How calls are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Keeping {
    /// Calls that can be looked at.
    pub stored: u64,
    /// Calls whose record was lost; the figures have them.
    pub dropped: u64,
    /// Where they are kept.
    pub state: KeepingState,
}

/// Where calls are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum KeepingState {
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
    /// Keeps the latest `most` calls, until the process ends.
    #[must_use]
    pub fn in_memory(most: usize) -> Self {
        Self::of(None, Vec::new(), most)
    }

    /// Keeps calls in a state directory, and the latest `most` in memory. It works whatever is wrong with the
    /// directory, and says so in its figures.
    #[must_use]
    pub fn in_directory(directory: &Path, most: usize) -> Self {
        Self::in_database(Database::in_directory(directory), most)
    }

    pub(super) fn in_database(database: Database, most: usize) -> Self {
        let (writer, latencies) = Writer::start(database, most);
        Self::of(Some(writer), latencies, most)
    }

    fn of(writer: Option<Writer>, earlier: Vec<u64>, most: usize) -> Self {
        let mut latencies = Ring::of(most);
        for latency in earlier {
            latencies.push(latency);
        }
        let recent = Recent { records: Ring::of(most), latencies, totals: Totals::default() };
        Self(Arc::new(Recorder {
            started: Instant::now(),
            recent: Mutex::new(recent),
            meters: Mutex::default(),
            writer,
            spans: OnceLock::new(),
        }))
    }

    /// A call has come.
    #[must_use]
    pub fn call(&self, endpoint: Endpoint, origin: Origin) -> Call {
        Call::start(self.clone(), endpoint, origin)
    }

    /// A call has ended.
    pub(super) fn ended(
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
            recent.totals = recent.totals.plus(Totals::of(&record));
            recent.latencies.push(record.latency_us);
            recent.records.push(Arc::clone(&record));
        });
        if let Some(writer) = &self.0.writer {
            writer.keep(record);
        }
    }

    /// Calls that end from now on are exported as spans, too. The first place they are sent to stays.
    pub fn export_to(&self, spans: Spans) {
        let _ = self.0.spans.set(spans);
    }

    /// Sends the spans that wait, for `most` at the longest, and no more after them.
    pub fn stop_exporting(&self, most: Duration) {
        if let Some(spans) = self.0.spans.get() {
            spans.stop(most);
        }
    }

    /// Counts a cursor that was encoded, with the time that took.
    pub fn cursor_encoded(&self, took: Duration) {
        self.meters(|meters| meters.cursor_encoded(took));
    }

    /// A configuration was read again and is used; how long that took.
    pub fn reloaded(&self, took: Duration) {
        self.meters(|meters| meters.reloaded(took));
    }

    /// A configuration was read again and is not used.
    pub fn reload_refused(&self) {
        self.meters(Meters::reload_refused);
    }

    /// What calls come to, and how they are kept.
    #[must_use]
    pub fn figures(&self) -> Figures {
        let (latencies, in_memory, own) = self.recent(|recent| {
            (recent.latencies.iter().copied().collect(), recent.records.len(), recent.totals)
        });
        let totals = self.0.writer.as_ref().map_or(own, Writer::totals);
        let telemetry = match &self.0.writer {
            None => Keeping { stored: whole(in_memory), dropped: 0, state: KeepingState::Memory },
            Some(writer) => Keeping {
                stored: writer.rows(),
                dropped: writer.dropped(),
                state: if writer.is_degraded() { KeepingState::Degraded } else { KeepingState::Ok },
            },
        };
        Figures { context_protection: totals.shown(latencies, self.0.started.elapsed().as_secs()), telemetry }
    }

    /// The counters of this process, as Prometheus reads them.
    #[must_use]
    pub fn exposition(&self) -> String {
        let Figures { context_protection: figures, telemetry } = self.figures();
        let gauges = Gauges {
            pagination_adoption: figures.pagination_adoption,
            summarization_adoption: figures.summarization_adoption,
            chunking_adoption: figures.chunking_adoption,
            uptime_seconds: figures.uptime_seconds,
            dropped: telemetry.dropped,
        };
        self.meters(|meters| meters.exposition(&gauges))
    }

    /// The latest calls of this process, the newest first.
    #[must_use]
    pub fn latest(&self, most: usize) -> Vec<Arc<TelemetryRecord>> {
        self.recent(|recent| recent.records.iter().rev().take(most).cloned().collect())
    }

    /// Waits until all calls so far are in the file, for `most` at the longest.
    pub fn flush(&self, most: Duration) {
        if let Some(writer) = &self.0.writer {
            writer.flush(most);
        }
    }

    fn recent<Answer>(&self, look: impl FnOnce(&mut Recent) -> Answer) -> Answer {
        look(&mut self.0.recent.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn meters<Answer>(&self, look: impl FnOnce(&mut Meters) -> Answer) -> Answer {
        look(&mut self.0.meters.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
