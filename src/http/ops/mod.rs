//! Endpoints of operators.
//!
//! * `health`: `/health` and the probes
//! * `metrics`: `/metrics`
//! * `listener`: an address of their own (`ops_listen`)
//! * `source_health`: checks of the sources, with a timeout
//! * `shared_state`: the state that servers share, as this process sees it

pub(in crate::http) mod health;
pub(in crate::http) mod listener;
pub(in crate::http) mod metrics;
pub(in crate::http) mod shared_state;
pub(in crate::http) mod source_health;
