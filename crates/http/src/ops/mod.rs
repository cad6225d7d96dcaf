//! Endpoints of operators.
//!
//! * `health`: `/health` and the probes
//! * `metrics`: `/metrics`
//! * `listener`: an address of their own (`ops_listen`)
//! * `source_health`: checks of the sources, with a timeout
//! * `shared_state`: the state that servers share, as this process sees it

pub(crate) mod health;
pub(crate) mod listener;
pub(crate) mod metrics;
pub(crate) mod shared_state;
pub(crate) mod source_health;
