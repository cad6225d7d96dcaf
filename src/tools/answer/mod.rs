//! Answers: what tools share to build them.
//!
//! * `payload`: compact JSON within a budget.
//! * `no_results`: explanations of empty answers.
//! * `chunked`: texts of records divided into chunks.
//! * `blocking`: the blocking pool for long records.

mod blocking;
mod chunked;
mod no_results;
mod payload;

pub(crate) use blocking::{cancelled, run_blocking};
pub(crate) use chunked::{ContinuedText, continue_chunked, read_chunked};
pub(crate) use no_results::{NoRecords, NoResults, explain_search, explanation_timeout};
pub use payload::Payload;
pub(crate) use payload::{json_of, room_beside, within};
