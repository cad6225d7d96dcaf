//! Endpoints of operators.
//!
//! * `health`: `/health` and the probes
//! * `metrics`: `/metrics`
//! * `listener`: an address of their own (`ops_listen`)

pub(in crate::http) mod health;
pub(in crate::http) mod listener;
pub(in crate::http) mod metrics;
