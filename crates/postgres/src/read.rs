//! One read: a read-only transaction on a blocking thread, bounded by a deadline and cancelled when its future is dropped.
//!
//! An import that drops indexes locks the tables one after the other, as a read does. If each waits for a table of the other,
//! the server ends one of the two. The import goes on when the read is ended, so the read is repeated once.

use std::cell::Cell;
use std::time::Duration;

use fetchwell_ranking::relational::interrupt::{Interrupt, InterruptOnDrop};
use fetchwell_source::SourceError;
use tokio::runtime::Handle;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, timeout_at};
use tokio_postgres::CancelToken;

use super::pool::PostgresPool;
use super::queries::DatabaseWaiter;
use super::tables::PostgresTables;
use super::tls::PostgresTls;
use super::transaction::begin_read;

/// Runs a read of the tables, and repeats it once after a deadlock. The reads of `relational` are synchronous, so it runs on a
/// blocking thread.
pub(crate) async fn read<Answer: Send + 'static>(
    pool: &PostgresPool,
    deadline: Duration,
    read: impl Fn(&PostgresTables<'_>, &Interrupt) -> Result<Answer, SourceError> + Send + 'static,
) -> Result<Answer, SourceError> {
    let until = Instant::now() + deadline;
    let late = || SourceError::Timeout { after: deadline };
    let mut connection = timeout_at(until, pool.connection()).await.map_err(|_elapsed| late())??;
    let interrupt = Interrupt::default();
    let mut guard = CancelOnDrop {
        _interrupt: InterruptOnDrop(interrupt.clone()),
        token: Some(connection.cancel_token()),
        tls: pool.tls(),
    };
    let (pool, runtime) = (pool.clone(), Handle::current());
    let answer = spawn_blocking(move || {
        let has_deadlocked = Cell::new(false);
        let waiting = DatabaseWaiter { runtime, until, deadline, pool: pool.clone(), has_deadlocked };
        let mut read_once = || {
            let transaction = waiting.wait(begin_read(&mut connection, pool.url()))?;
            waiting.wait(transaction.batch_execute(&statement_timeout(deadline)))?;
            read(&PostgresTables::new(&transaction, &waiting), &interrupt)
        };
        let answer = read_once();
        // The error of a statement can be anywhere in the answer of a read.
        if waiting.has_deadlocked.get() { read_once() } else { answer }
    });
    let answer = answer.await;
    guard.token = None;
    match answer {
        Ok(answer) => answer,
        Err(panicked) => std::panic::resume_unwind(panicked.into_panic()),
    }
}

/// Returns the statement that bounds the statements of a transaction. The server also stops those of a client that it
/// cannot reach.
fn statement_timeout(deadline: Duration) -> String {
    format!("SET LOCAL statement_timeout = {}", deadline.as_millis().clamp(1, 2_000_000_000))
}

/// Cancels the statement of a read when its future is dropped.
struct CancelOnDrop {
    _interrupt: InterruptOnDrop,
    token: Option<CancelToken>,
    tls: PostgresTls,
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        let Some(token) = self.token.take() else { return };
        let tls = self.tls.clone();
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move {
                // Without the request the statement ends at its timeout.
                let _ = token.cancel_query(tls).await;
            });
        }
    }
}
