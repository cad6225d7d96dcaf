//! What is known of calls: a line in the log and a record for each, and never what was asked or found.
//!
//! Records are kept in memory, and by HTTP servers in a file of the state directory. Recording never fails a call and
//! never makes it wait.

mod call;
mod database;
mod endpoints;
mod exposition;
mod histogram;
mod keep;
mod logging;
mod meters;
mod origin;
mod outcome;
mod record;
mod recorder;
mod request_id;
mod ring;
mod spans;
mod stored;
#[cfg(test)]
mod tests;
mod totals;
mod writer;

pub use call::{Call, Endpoint, Refused};
pub use endpoints::EndpointFigures;
pub use logging::{InvalidFilter, InvalidLogFormat, LogFormat, start_logging};
pub use origin::{Origin, TraceParent};
pub use outcome::Outcome;
pub use record::{Optimization, TelemetryRecord, estimate_tokens};
pub use recorder::{Figures, Keeping, KeepingState, RECORDS_IN_MEMORY, Telemetry};
pub use request_id::RequestId;
pub use spans::{InvalidOtlpEndpoint, OtlpEndpoint, SpanError, Spans};
pub use stored::{StoredCall, StoredCalls, Wanted};
pub use totals::ContextProtection;
