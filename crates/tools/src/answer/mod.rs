//! Answers: what tools share to build them.
//!
//! * `payload`: compact JSON within a budget.
//! * `no_results`: explanations of empty answers.
//! * `chunked`: texts of records divided into chunks.
//! * `long_text`: parts of a long record.
//! * `blocking`: the blocking pool for long records.

mod blocking;
mod chunked;
mod long_text;
mod no_results;
mod payload;

pub use blocking::run_blocking;
pub(crate) use blocking::{StopOnDrop, run_by_size};
pub(crate) use chunked::ContinuedText;
pub use chunked::{continue_chunked, read_chunked};
pub(crate) use long_text::LongText;
pub(crate) use no_results::{NoRecords, NoResults, ONLY_OMITTED, explain_search, explanation_timeout};
pub use payload::Payload;
pub(crate) use payload::{json_of, room_beside, within};
