//! The lease of builds of vectors: one process of all replicas embeds at a time.

use std::path::PathBuf;

use crate::source::contract::{PostgresError, StoreError, VectorError};
use crate::source::postgres::administration::{Job, Lease, LeaseAttempt};
use crate::source::postgres::pool::PostgresPool;
use crate::source::vectors::wait_while_busy;

/// Takes the lease, unless another process has it.
pub(in crate::source::postgres) async fn take(pool: &PostgresPool) -> Result<Lease, VectorError> {
    match Lease::try_take(pool, Job::Embed).await.map_err(StoreError::from)? {
        LeaseAttempt::Taken(lease) => Ok(lease),
        LeaseAttempt::Held(_) => Err(VectorError::Busy(PathBuf::from(pool.url().to_string()))),
    }
}

/// Takes the lease, and waits for the batch of another process if that has it.
pub(in crate::source::postgres) async fn take_or_wait(pool: &PostgresPool) -> Result<Lease, VectorError> {
    wait_while_busy(|| take(pool)).await
}

/// Returns true if a process has the lease.
pub(in crate::source::postgres) async fn is_taken(pool: &PostgresPool) -> Result<bool, PostgresError> {
    Ok(Lease::holder(pool, Job::Embed).await?.is_some())
}
