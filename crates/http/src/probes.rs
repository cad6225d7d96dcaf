//! Paths of the probes of orchestrators. Middleware lets them pass, because they reveal nothing.

/// Liveness and readiness.
pub(crate) const PROBES: [&str; 2] = ["/health/live", "/health/ready"];
