//! Jobs of which one process at a time runs each, and steps of threads without a runtime.
//!
//! * `job`: these jobs, `lease`: the right to run one, `import_lease`: that of an import
//! * `blocking`: runs steps from threads without a runtime

mod blocking;
mod import_lease;
mod job;
mod lease;

pub use blocking::Blocking;
pub(crate) use import_lease::{import_in_progress, import_lease};
pub use job::Job;
pub use lease::{Lease, LeaseAttempt, LeaseHolder};
