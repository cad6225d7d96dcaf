//! Telemetry of calls: a log line and a record for each, with sizes and times, never the text of a query or a result.
//!
//! Records are kept in memory, and by HTTP servers also in a SQLite file of the state directory. Recording never
//! fails a call and never blocks it.
//!
//! * `audit`: the log of which record was read by which call
//! * `call`, `origin`, `outcome`, `request_id`: one call, its caller and trace, its result, its id
//! * `record`, `recorder`, `ring`: the record of a call and the bounded list of the latest ones
//! * `db`: the SQLite file of call records
//! * `totals`, `endpoints`, `activity`: aggregates of all calls, per endpoint, and over time
//! * `embedding`, `imports`: builds of vectors in the background, and imports that are kept current
//! * `prometheus`: metrics in the text format of Prometheus
//! * `spans`: export to an OpenTelemetry collector
//! * `logging`: the log
//!
//! Uses `callers`, `core`, `outbound` and `state`.

mod activity;
mod audit;
mod call;
mod db;
mod embedding;
mod endpoints;
mod imports;
mod logging;
mod origin;
mod outcome;
mod prometheus;
mod record;
mod recorder;
mod request_id;
mod ring;
mod spans;
#[cfg(test)]
mod tests;
mod totals;

pub use activity::{Activity, IntervalCalls};
pub use audit::{AuditLog, AuditLogError, CallAudit, ReadKind, ReadRecord};
pub use call::{Call, Endpoint, ErrorDetails};
pub use db::stored::{CallFilter, StoredActivity, StoredCall, StoredCalls};
pub use embedding::{EmbeddingBuild, EmbeddingState};
pub use endpoints::EndpointAggregates;
pub use imports::{ImportProgress, ImportState};
pub use logging::{InvalidFilter, InvalidLogFormat, LogFormat, start_logging};
pub use origin::{Origin, TraceParent};
pub use outcome::Outcome;
pub use prometheus::exposition::{Gauge, expose_gauges};
pub use prometheus::shared_state::shared_state_metrics;
pub use record::{Optimization, TelemetryRecord, estimate_tokens};
pub use recorder::{Aggregates, RECORDS_IN_MEMORY, StorageState, StorageStatus, Telemetry};
pub use request_id::RequestId;
pub use spans::{InvalidOtlpEndpoint, OtlpEndpoint, SpanError, Spans};
pub use totals::ContextProtection;
