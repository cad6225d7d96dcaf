//! State that several servers share in one Redis: short-lived values, each with an expiry.
//!
//! The connection is opened by the first command and again after it broke, so a server starts, and resumes, without
//! Redis. Every command has a timeout; after a failure, commands fail at once for a moment. Callers encrypt what they
//! store: Redis gets no query, record text or token that it could read.
//!
//! * `url`: the URL of a Redis, `tls`: encryption, `error`: errors with their remedy
//! * `connection`: the connection and its timeouts, `status`: its condition and counts
//! * `values`: values with an expiry and a quota for each owner, `removal`: deletes some of them, `permits`: rate limits
//!
//! **Invariant:** no password and no stored value is in an error or a log line.

mod connection;
mod error;
mod permits;
mod removal;
mod status;
mod tls;
mod url;
mod values;

pub use connection::RedisState;
pub use error::RedisError;
pub use permits::SharedPermit;
pub use removal::MarkedValues;
pub use status::{RedisStatus, StateCounts};
pub use url::{PasswordSource, RedisUrl};
pub use values::{IfExists, NewValue, OwnerLimits, StoredValue};
