//! What is known of calls: a line in the log and a record for each, and never what was asked or found.

mod call;
mod logging;

pub use call::{Call, Endpoint, Telemetry};
pub use logging::{InvalidFilter, start_logging};
