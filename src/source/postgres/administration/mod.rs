//! Commands about a store in PostgreSQL as a whole, and jobs of which one process at a time runs each.
//!
//! * `job`: these jobs, `lease`: the right to run one, `import_lease`: that of an import
//! * `versions`: the versions of the tables, `info`: sizes and numbers
//! * `scope`: the names of a command as rows, `export`: reads all records of a scope, `removal`: removes them
//! * `record_store`: passes all of these to commands
//! * `blocking`: runs steps from threads without a runtime

mod blocking;
mod export;
mod import_lease;
mod info;
mod job;
mod lease;
mod record_store;
mod removal;
mod scope;
mod versions;

pub use blocking::Blocking;
pub(in crate::source::postgres) use import_lease::{import_in_progress, import_lease};
pub use job::Job;
pub use lease::{Lease, LeaseAttempt, LeaseHolder};
