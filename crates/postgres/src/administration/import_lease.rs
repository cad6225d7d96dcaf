//! Leases of imports: one process at a time imports into a connection.

use std::thread;
use std::time::Duration;

use fetchwell_core::handle::ConnectionId;
use fetchwell_source::contract::{PostgresError, StoreError};
use tokio::runtime::Handle;

use super::job::Job;
use super::lease::{Lease, LeaseAttempt, LeaseHolder};
use crate::pool::PostgresPool;

/// Number of attempts to get the lease of an import, and the pause between two.
const LEASE_ATTEMPTS: u32 = 30;
const LEASE_PAUSE: Duration = Duration::from_millis(200);

/// Returns the session that imports into a connection now, or `None` if there is none. Blocks the thread.
pub(crate) fn import_in_progress(
    pool: &PostgresPool,
    runtime: &Handle,
    connection: &ConnectionId,
) -> Result<Option<LeaseHolder>, StoreError> {
    Ok(runtime.block_on(Lease::holder(pool, Job::Import(connection)))?)
}

/// Waits for the lease of an import. The server may have noticed the end of the last session that had it only now.
pub(crate) fn import_lease(
    pool: &PostgresPool,
    runtime: &Handle,
    connection: &ConnectionId,
) -> Result<Lease, StoreError> {
    let job = Job::Import(connection);
    let mut attempts = LEASE_ATTEMPTS;
    loop {
        attempts -= 1;
        match runtime.block_on(Lease::try_take(pool, job))? {
            LeaseAttempt::Taken(lease) => return Ok(lease),
            LeaseAttempt::Held(_) if attempts > 0 => thread::park_timeout(LEASE_PAUSE),
            LeaseAttempt::Held(holder) => {
                let database = pool.url().to_string();
                let holder = holder.map_or_else(|| "another session".to_owned(), |holder| holder.to_string());
                return Err(PostgresError::Leased { database, job: job.to_string(), holder }.into());
            }
        }
    }
}
