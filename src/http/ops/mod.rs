//! Endpoints of operators.
//!
//! * `health`: `/health` and the probes
//! * `metrics`: `/metrics`
//! * `listener`: an address of their own (`ops_listen`)
//! * `source_health`: checks of the sources, with a timeout
//! * `shared_state`: the state that servers share, as this process sees it

pub(super) mod health;
pub(super) mod listener;
pub(super) mod metrics;
pub(super) mod shared_state;
pub(super) mod source_health;
