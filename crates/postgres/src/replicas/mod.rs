//! Read replicas: reads go to one of them while it is up to date, and otherwise to the primary.
//!
//! A process reads from one replica at a time. It moves to another one only when that has replayed everything that the primary
//! had written at that moment, so no read sees an older state than an earlier one did. Lists of changes are always read from
//! the primary, and so is a record that the replica does not have.
//!
//! * `position`: positions in the write-ahead log, and the lag that they mean

mod position;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use fetchwell_source::backend::ReplicaStatus;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

use self::position::{PrimaryPositions, WalPosition};
use super::pool::PostgresPool;

/// Interval at which the replica in use is checked.
const CHECK_INTERVAL: Duration = Duration::from_millis(500);

/// Maximum time of asking one server for its position.
const CHECK_TIMEOUT: Duration = Duration::from_secs(1);

/// Lag up to which a replica is read from, unless the configuration says otherwise.
pub const DEFAULT_MAX_LAG: Duration = Duration::from_secs(5);

/// Position of the primary.
const PRIMARY_SQL: &str = "SELECT pg_current_wal_lsn()";

/// Position of a replica. A server that was promoted is no replica any more.
const REPLICA_SQL: &str = "SELECT CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() END";

/// Replicas of a primary. Clones share the choice.
#[derive(Clone)]
pub struct ReadReplicas {
    inner: Arc<Inner>,
}

struct Inner {
    replicas: Vec<PostgresPool>,
    max_lag: Duration,
    choice: Mutex<Choice>,
}

/// Choice of the server for reads.
#[derive(Debug, Default)]
struct Choice {
    /// Replica in use; `None` for the primary.
    replica: Option<usize>,
    checked: Option<Instant>,
    primary: PrimaryPositions,
    /// Lag of each replica when it was checked last.
    lags: Vec<Option<Duration>>,
}

impl fmt::Debug for ReadReplicas {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadReplicas")
            .field("replicas", &self.inner.replicas)
            .field("max_lag", &self.inner.max_lag)
            .finish_non_exhaustive()
    }
}

impl ReadReplicas {
    /// Creates the choice between some replicas, of which none was checked yet.
    #[must_use]
    pub fn new(replicas: Vec<PostgresPool>, max_lag: Duration) -> Self {
        let choice = Mutex::new(Choice { lags: vec![None; replicas.len()], ..Choice::default() });
        Self { inner: Arc::new(Inner { replicas, max_lag, choice }) }
    }

    /// Returns the replica to read from, or `None` for the primary.
    pub(crate) async fn choose(&self, primary: &PostgresPool) -> Option<PostgresPool> {
        let mut choice = self.inner.choice.lock().await;
        let is_recent = |checked: Instant| checked.elapsed() < CHECK_INTERVAL;
        if !choice.checked.is_some_and(is_recent) {
            self.check(&mut choice, primary).await;
        }
        self.inner.replicas.get(choice.replica?).cloned()
    }

    /// Reads from the primary until the replicas are checked again. A read from the replica failed.
    pub(crate) async fn give_up(&self) {
        let mut choice = self.inner.choice.lock().await;
        choice.replica = None;
        choice.checked = Some(Instant::now());
    }

    /// Returns the states of the replicas.
    pub(crate) async fn status(&self, primary: &PostgresPool) -> Vec<ReplicaStatus> {
        let mut choice = self.inner.choice.lock().await;
        self.check(&mut choice, primary).await;
        let states = self.inner.replicas.iter().zip(&choice.lags).enumerate();
        let state = |(at, (replica, lag)): (usize, (&PostgresPool, &Option<Duration>))| ReplicaStatus {
            database: replica.url().to_string(),
            lag_ms: lag.map(|lag| lag.as_millis().try_into().unwrap_or(u64::MAX)),
            is_used: choice.replica == Some(at),
        };
        states.map(state).collect()
    }

    async fn check(&self, choice: &mut Choice, primary: &PostgresPool) {
        let Inner { replicas, max_lag, .. } = &*self.inner;
        let before = choice.replica;
        let newest = position_of(primary, PRIMARY_SQL).await;
        if let Some(newest) = newest {
            choice.primary.add(newest, Instant::now(), *max_lag);
        }
        let positions = replicas.iter().map(|replica| position_of(replica, REPLICA_SQL));
        let positions: Vec<Option<WalPosition>> = futures_util::future::join_all(positions).await;
        let now = Instant::now();
        choice.lags = positions.iter().map(|at| choice.primary.lag((*at)?, now)).collect();
        let is_fresh = |at: usize| choice.lags.get(at).copied().flatten().is_some_and(|lag| lag <= *max_lag);
        // Another replica must have everything that any read has seen.
        let is_complete = |at: usize| match (positions.get(at).copied().flatten(), newest) {
            (Some(position), Some(newest)) => position >= newest,
            _ => false,
        };
        // Processes begin with different replicas.
        let first = usize::try_from(std::process::id()).unwrap_or_default();
        let others = (0..replicas.len()).map(|at| (first + at) % replicas.len().max(1));
        choice.replica = before
            .filter(|at| is_fresh(*at))
            .or_else(|| others.into_iter().find(|at| is_fresh(*at) && is_complete(*at)));
        choice.checked = Some(Instant::now());
        if before != choice.replica {
            let server = choice.replica.and_then(|at| replicas.get(at)).unwrap_or(primary);
            tracing::info!(server = %server.url(), "reads go to another server");
        }
    }
}

/// Asks a server for its position in the log. Returns `None` if it does not answer in time.
async fn position_of(server: &PostgresPool, sql: &str) -> Option<WalPosition> {
    let asked = async {
        let connection = server.unchecked_connection().await.ok()?;
        let rows = connection.simple_query(sql).await.ok()?;
        rows.iter().find_map(|message| match message {
            tokio_postgres::SimpleQueryMessage::Row(row) => row.try_get(0).ok().flatten()?.parse().ok(),
            _ => None,
        })
    };
    timeout(CHECK_TIMEOUT, asked).await.ok().flatten()
}
