//! Metrics in the text format of Prometheus.
//!
//! * `shared_state`: metrics of the state that servers share
//! * `meters`: counters and histograms of the process
//! * `histogram`: a histogram with fixed buckets
//! * `exposition`: the text format

pub(in crate::telemetry) mod exposition;
pub(in crate::telemetry) mod histogram;
pub(in crate::telemetry) mod meters;
pub(in crate::telemetry) mod shared_state;
