//! The lease of builds of vectors: one process of all replicas embeds at a time.

use std::path::PathBuf;

use fetchwell_source::contract::{PostgresError, StoreError, VectorError};
use fetchwell_source::vectors::wait_while_busy;

use crate::administration::{Job, Lease, LeaseAttempt};
use crate::pool::PostgresPool;

/// Takes the lease, unless another process has it.
pub(crate) async fn take(pool: &PostgresPool) -> Result<Lease, VectorError> {
    match Lease::try_take(pool, Job::Embed).await.map_err(StoreError::from)? {
        LeaseAttempt::Taken(lease) => Ok(lease),
        LeaseAttempt::Held(_) => Err(VectorError::Busy(PathBuf::from(pool.url().to_string()))),
    }
}

/// Takes the lease, and waits for the batch of another process if that has it.
pub(crate) async fn take_or_wait(pool: &PostgresPool) -> Result<Lease, VectorError> {
    wait_while_busy(|| take(pool)).await
}

/// Returns true if a process has the lease.
pub(crate) async fn is_taken(pool: &PostgresPool) -> Result<bool, PostgresError> {
    Ok(Lease::holder(pool, Job::Embed).await?.is_some())
}
