//! Metrics in the text format of Prometheus.
//!
//! * `meters`: counters and histograms of the process
//! * `histogram`: a histogram with fixed buckets
//! * `exposition`: the text format

pub(in crate::telemetry) mod exposition;
pub(in crate::telemetry) mod histogram;
pub(in crate::telemetry) mod meters;
