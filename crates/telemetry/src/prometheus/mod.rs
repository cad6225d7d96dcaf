//! Metrics in the text format of Prometheus. Those of imports, builds of vectors and the audit log are beside their state,
//! in `imports`, `embedding` and `audit::log`.
//!
//! * `shared_state`: metrics of the state that servers share
//! * `meters`: counters and histograms of the process
//! * `histogram`: a histogram with fixed buckets
//! * `exposition`: the text format

pub(crate) mod exposition;
pub(crate) mod histogram;
pub(crate) mod meters;
pub(crate) mod shared_state;
