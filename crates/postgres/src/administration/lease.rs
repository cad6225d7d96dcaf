//! Leases: advisory locks, so that one process of all replicas runs a job.
//!
//! A lease is the lock of a transaction that stays open on a connection of its own. The server releases it when the connection
//! ends, also after a crash or a lost network. A lock of a transaction works behind poolers, too, unlike one of a session. The
//! transaction has no snapshot, so it does not keep the server from removing old rows.

use std::fmt;
use std::time::Duration;

use deadpool_postgres::{ClientWrapper, Object};
use fetchwell_source::contract::PostgresError;
use sha2::{Digest, Sha256};
use tokio::time::timeout;
use tokio_postgres::{Error, SimpleQueryMessage, SimpleQueryRow};

use super::job::Job;
use crate::pool::PostgresPool;

/// Begins the transaction of a lease. By TCP keepalives the server detects an unreachable client, and ends its lease, within a
/// minute: 30 s, and 3 times 10 s.
const BEGIN: &str =
    "BEGIN; SET LOCAL idle_in_transaction_session_timeout = 0; SET LOCAL tcp_keepalives_idle = 30;
    SET LOCAL tcp_keepalives_interval = 10; SET LOCAL tcp_keepalives_count = 3";

/// Maximum time in which the server confirms a lease.
const CONFIRM_TIMEOUT: Duration = Duration::from_secs(5);

/// Right to run a job, which ends when it is dropped.
pub struct Lease {
    client: ClientWrapper,
}

/// Result of asking for a lease.
#[derive(Debug)]
pub enum LeaseAttempt {
    /// This process has the lease.
    Taken(Lease),
    /// Another one has it. `None` if it ended meanwhile.
    Held(Option<LeaseHolder>),
}

/// Session that has a lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseHolder {
    /// Process id of the session on the server.
    pub session: String,
    /// Name of the program, such as `fetchwell import work-mail`.
    pub program: String,
    /// Address of the client, if the role may see it.
    pub address: Option<String>,
    /// Start of the job, if the role may see it.
    pub since: Option<String>,
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease").field("is_held", &self.is_held()).finish()
    }
}

impl fmt::Display for LeaseHolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "session {} ({}", self.session, self.program)?;
        if let Some(address) = &self.address {
            write!(f, " of {address}")?;
        }
        if let Some(since) = &self.since {
            write!(f, ", since {since}")?;
        }
        f.write_str(")")
    }
}

impl Lease {
    /// Takes the lease of a job, unless another process has it.
    ///
    /// # Errors
    ///
    /// The database cannot be used.
    pub async fn try_take(pool: &PostgresPool, job: Job<'_>) -> Result<LeaseAttempt, PostgresError> {
        // The connection is not one of the pool any more: it ends with the lease.
        let client = Object::take(pool.connection().await?);
        let job = job.to_string();
        let key = key_of(&job);
        let attempt = async {
            client.batch_execute(BEGIN).await?;
            let rows = client.simple_query(&format!("SELECT pg_try_advisory_xact_lock({key})")).await?;
            let is_taken = first_row(&rows).and_then(|row| row.get(0)) == Some("t");
            if is_taken {
                client.batch_execute(&format!("SET LOCAL application_name = {}", name_of(&job))).await?;
                return Ok::<Option<Option<LeaseHolder>>, Error>(None);
            }
            Ok(Some(holder(&client, key).await?))
        };
        match attempt.await {
            Ok(None) => Ok(LeaseAttempt::Taken(Self { client })),
            Ok(Some(holder)) => Ok(LeaseAttempt::Held(holder)),
            Err(error) => Err(pool.failure(&error)),
        }
    }

    /// Returns the session that has the lease of a job, or `None` if there is none.
    ///
    /// # Errors
    ///
    /// The database cannot be used.
    pub async fn holder(pool: &PostgresPool, job: Job<'_>) -> Result<Option<LeaseHolder>, PostgresError> {
        let connection = pool.connection().await?;
        holder(&connection, key_of(&job.to_string())).await.map_err(|error| pool.failure(&error))
    }

    /// Releases the lease at once. A dropped lease ends when the server detects the closed connection.
    pub(crate) async fn release(self) {
        // If the statement fails, the lease ends with its connection.
        let _ended = self.client.batch_execute("ROLLBACK").await;
    }

    /// Returns false if the connection broke, so that another process may have the lease now.
    #[must_use]
    pub fn is_held(&self) -> bool {
        !self.client.is_closed()
    }

    /// Asks the server whether this process still has the lease. Detects a connection that only the server has
    /// closed.
    pub async fn confirm(&self) -> bool {
        let asked = timeout(CONFIRM_TIMEOUT, self.client.simple_query("SELECT 1")).await;
        matches!(asked, Ok(Ok(_))) && self.is_held()
    }
}

/// Returns the session that has a lock.
async fn holder(client: &ClientWrapper, key: i64) -> Result<Option<LeaseHolder>, Error> {
    // The server shows a key of 64 bits as two halves.
    let sql = format!(
        "SELECT l.pid, a.application_name, host(a.client_addr), to_char(a.xact_start AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"')
         FROM pg_locks l LEFT JOIN pg_stat_activity a ON a.pid = l.pid
         WHERE l.locktype = 'advisory' AND l.objsubid = 1 AND l.granted
           AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
           AND l.classid::bigint = (({key}::bigint >> 32) & 4294967295) AND l.objid::bigint = ({key}::bigint & 4294967295)
         LIMIT 1"
    );
    let rows = client.simple_query(&sql).await?;
    Ok(first_row(&rows).map(|row| {
        let column = |at: usize| row.try_get(at).ok().flatten().map(str::to_owned);
        LeaseHolder {
            session: column(0).unwrap_or_default(),
            program: column(1).filter(|name| !name.is_empty()).unwrap_or_else(|| "fetchwell".to_owned()),
            address: column(2),
            since: column(3),
        }
    }))
}

fn first_row(messages: &[SimpleQueryMessage]) -> Option<&SimpleQueryRow> {
    messages.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => Some(row),
        _ => None,
    })
}

/// Returns the key of a job's lock. Locks of other databases of the server do not matter.
fn key_of(job: &str) -> i64 {
    let digest = Sha256::digest(format!("fetchwell lease {job}"));
    let bytes = digest.first_chunk().copied().unwrap_or_default();
    i64::from_be_bytes(bytes)
}

/// Returns the name of the program as a string of SQL. The server keeps its first 63 bytes.
fn name_of(job: &str) -> String {
    let plain = |c: char| if c.is_ascii_graphic() || c == ' ' { c } else { '?' };
    let name: String = format!("fetchwell {job}").chars().map(plain).take(63).collect();
    format!("'{}'", name.replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn jobs_have_keys_of_their_own_and_plain_names() {
        let [one, other] = ["a", "b"].map(|name| name.parse().unwrap());
        let jobs = [Job::Import(&one), Job::Import(&other), Job::Follow(&one), Job::Embed];
        let keys: BTreeSet<i64> = jobs.iter().map(|job| key_of(&job.to_string())).collect();
        assert_eq!(keys.len(), jobs.len());
        assert_eq!(name_of("import o'neil\n"), "'fetchwell import o''neil?'");
    }
}
