//! The lease of builds of vectors: one process of all replicas embeds at a time.

use std::path::PathBuf;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::source::contract::{PostgresError, StoreError, VectorError};
use crate::source::postgres::administration::{Job, Lease, LeaseAttempt};
use crate::source::postgres::pool::PostgresPool;

/// Maximum time that a command waits for the batch of another process. A server releases the lease after each batch.
const MAX_WAIT: Duration = Duration::from_secs(15);

/// Interval at which a command tries to get the lease. Shorter than the pause of a server between two batches.
const RETRY_INTERVAL: Duration = Duration::from_millis(10);

/// Takes the lease, unless another process has it.
pub(in crate::source::postgres) async fn take(pool: &PostgresPool) -> Result<Lease, VectorError> {
    match Lease::try_take(pool, Job::Embed).await.map_err(StoreError::from)? {
        LeaseAttempt::Taken(lease) => Ok(lease),
        LeaseAttempt::Held(_) => Err(VectorError::Busy(PathBuf::from(pool.url().to_string()))),
    }
}

/// Takes the lease, and waits for the batch of another process if that has it.
pub(in crate::source::postgres) async fn take_or_wait(pool: &PostgresPool) -> Result<Lease, VectorError> {
    let deadline = Instant::now() + MAX_WAIT;
    loop {
        match take(pool).await {
            Err(VectorError::Busy(_)) if Instant::now() < deadline => sleep(RETRY_INTERVAL).await,
            taken => return taken,
        }
    }
}

/// Returns true if a process has the lease.
pub(in crate::source::postgres) async fn is_taken(pool: &PostgresPool) -> Result<bool, PostgresError> {
    Ok(Lease::holder(pool, Job::Embed).await?.is_some())
}
