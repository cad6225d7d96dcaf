//! Positions of a state directory: in memory first, then written to SQLite by a thread.
//!
//! An answer does not wait for the disk. The thread writes the first position at once, and then all that came meanwhile in one
//! transaction every few milliseconds, so another process of the directory finds a position soon after its cursor was
//! given out (see [`SqlitePositions::wait_for`]). If the file cannot be written, cursors are valid within this process.
//! **Invariant:** the first position of a process is written before its cursor is given out, because many clients start a
//! process for each call and kill it after the answer.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use parking_lot::{Condvar, Mutex};
use tokio::sync::Notify;
use tokio::task::spawn_blocking;

use super::pending::{Batch, Pending, Use};
use super::sqlite::{PositionState, SqlitePositions, StoredPosition};
use crate::StateError;
use crate::cursor::clock::Clock;
use crate::cursor::codec::Reference;
use crate::cursor::keys::Keys;
use crate::cursor::positions::{Position, Positions};
use crate::cursor::sealed_text::{open_position, seal_position};

/// Time between two writes. Positions that come meanwhile share a transaction.
const PAUSE: Duration = Duration::from_millis(5);

/// Time between two transactions of a write that needs several, in which calls get the processor.
const SHORT_PAUSE: Duration = Duration::from_micros(500);

/// Delay before the first retry of a failed write. It doubles with each retry.
const FIRST_RETRY: Duration = Duration::from_secs(1);

/// Maximum delay between two retries.
const MAX_RETRY: Duration = Duration::from_secs(30);

/// Time by which the stored clock may be ahead of the time of issue: calls at the same time raise the clock for each
/// other, and keep their times.
const MAX_AHEAD: Duration = Duration::from_secs(1);

/// Positions of a state directory. When they are dropped, the thread writes what is left and ends.
#[derive(Debug)]
pub(crate) struct WriteBehind {
    shared: Arc<Shared>,
    valid_for: Duration,
    /// Held while the stored clock is read, so that one connection is enough for all calls.
    clock_reader: tokio::sync::Mutex<()>,
}

/// State that calls and the thread share.
#[derive(Debug)]
struct Shared {
    file: SqlitePositions,
    /// Keys that encrypt positions in the file.
    keys: Arc<Keys>,
    clock: Arc<Clock>,
    queue: Mutex<Queue>,
    /// Wakes the thread.
    wake: Condvar,
    /// Notified after each write, whether it succeeded or not.
    attempted: Notify,
}

#[derive(Debug)]
struct Queue {
    pending: Pending,
    /// Number of failed writes since the last one that succeeded.
    failures: u32,
    /// Time of the next write, unless it is urgent.
    next_write: Instant,
    is_urgent: bool,
    /// True unless the thread waits for something to write.
    is_scheduled: bool,
    /// True once a position was written, or could not be.
    has_started: bool,
    /// True if no more positions come.
    is_closed: bool,
    /// Stored clock at the last write.
    clock: Option<ClockReading>,
}

/// Stored clock at a time.
#[derive(Debug, Clone, Copy)]
struct ClockReading {
    at: Instant,
    seen: Duration,
}

impl Queue {
    /// Returns the stored clock if a write found it less than [`PAUSE`] ago. Another process also
    /// raises it up to [`PAUSE`] after its answers, so a newer reading would say no more.
    fn recent_clock(&self) -> Option<Duration> {
        self.clock.filter(|reading| reading.at.elapsed() < PAUSE).map(|reading| reading.seen)
    }
}

impl WriteBehind {
    /// Starts the thread.
    pub(crate) fn start(
        file: SqlitePositions,
        keys: Arc<Keys>,
        clock: Arc<Clock>,
        valid_for: Duration,
    ) -> Self {
        let queue = Mutex::new(Queue {
            pending: Pending::default(),
            failures: 0,
            next_write: Instant::now(),
            is_urgent: false,
            is_scheduled: false,
            has_started: false,
            is_closed: false,
            clock: None,
        });
        let (wake, attempted) = (Condvar::new(), Notify::new());
        let shared = Arc::new(Shared { file, keys, clock, queue, wake, attempted });
        let writer = Arc::clone(&shared);
        if let Err(error) =
            thread::Builder::new().name("cursors".to_owned()).spawn(move || writer.run_writer())
        {
            tracing::warn!(%error, "the thread that stores cursors cannot be started; cursors end with this process");
            shared.queue.lock().failures = 1;
        }
        Self { shared, valid_for, clock_reader: tokio::sync::Mutex::new(()) }
    }

    /// Returns the time of issue: that of the stored clock if another process raised it.
    async fn time_of_issue(&self, own: Duration) -> Duration {
        let recent = {
            let queue = self.shared.queue.lock();
            if queue.failures > 0 {
                return own;
            }
            queue.recent_clock()
        };
        let seen = match recent {
            Some(seen) => seen,
            None => self.stored_clock().await,
        };
        if seen < own + MAX_AHEAD { own } else { seen }
    }

    /// Reads the stored clock.
    async fn stored_clock(&self) -> Duration {
        let _reader = self.clock_reader.lock().await;
        // If the file cannot be read, the thread finds out and logs the reason.
        self.blocking(|shared| shared.file.seen()).await.unwrap_or_default()
    }

    /// Waits until `read` returns a value. Calls it at once, and after each write.
    async fn wait_for<Answer>(&self, mut read: impl FnMut(&mut Queue) -> Option<Answer>) -> Answer {
        loop {
            let mut attempted = std::pin::pin!(self.shared.attempted.notified());
            // From here on, no notification is lost.
            attempted.as_mut().enable();
            if let Some(answer) = read(&mut self.shared.queue.lock()) {
                return answer;
            }
            attempted.await;
        }
    }

    async fn blocking<Answer: Send + 'static>(
        &self,
        call: impl FnOnce(&Shared) -> Answer + Send + 'static,
    ) -> Answer {
        let shared = Arc::clone(&self.shared);
        match spawn_blocking(move || call(&shared)).await {
            Ok(answer) => answer,
            Err(panicked) => std::panic::resume_unwind(panicked.into_panic()),
        }
    }
}

#[async_trait]
impl Positions for WriteBehind {
    async fn keep(&self, reference: Reference, position: Position) -> Result<Duration, StateError> {
        let issued = self.time_of_issue(position.issued).await;
        let position = Arc::new(Position { issued, ..position });
        let expires = issued.saturating_add(self.valid_for);
        let (number, has_started) = self
            .wait_for(|queue| {
                if queue.failures > 0 {
                    queue.pending.evict_for(&position);
                }
                if !queue.pending.has_room(&position) {
                    self.shared.write_now(queue);
                    return None;
                }
                let number = queue.pending.push(reference, Arc::clone(&position), expires);
                self.shared.write_soon(queue);
                Some((number, queue.has_started))
            })
            .await;
        if !has_started {
            self.wait_for(|queue| (queue.failures > 0 || queue.pending.is_complete(number)).then_some(()))
                .await;
        }
        Ok(issued)
    }

    async fn find(&self, reference: Reference, now: Duration) -> Result<Option<Position>, StateError> {
        let pending = self.shared.queue.lock().pending.get(&reference, now);
        if let Some(pending) = pending {
            self.shared.mark_used(Use { reference, at: now });
            return Ok(Some(Position::clone(&pending)));
        }
        self.blocking(move |shared| {
            let Some(found) = shared.file.wait_for(&reference, now)? else { return Ok(None) };
            if found.state == PositionState::Created {
                shared.mark_used(Use { reference, at: now });
            }
            Ok(Some(found)
                .filter(|found| found.state != PositionState::Expired)
                .and_then(|found| shared.open(found)))
        })
        .await
    }

    async fn expire(&self, now: Duration) -> Result<(), StateError> {
        self.shared.queue.lock().pending.expire(now);
        self.blocking(move |shared| shared.file.expire(now)).await
    }

    async fn flush(&self) {
        let failures = {
            let mut queue = self.shared.queue.lock();
            self.shared.write_now(&mut queue);
            queue.failures
        };
        self.wait_for(|queue| {
            if queue.pending.is_empty() || queue.failures > failures {
                return Some(());
            }
            self.shared.write_now(queue);
            None
        })
        .await;
    }
}

impl Drop for WriteBehind {
    fn drop(&mut self) {
        self.shared.queue.lock().is_closed = true;
        self.shared.wake.notify_all();
    }
}

impl Shared {
    /// Wakes the thread if it has nothing to wait for.
    fn write_soon(&self, queue: &mut Queue) {
        if queue.failures == 0 && (!queue.has_started || queue.pending.is_half_full()) {
            self.write_now(queue);
        } else if !queue.is_scheduled {
            queue.is_scheduled = true;
            self.wake.notify_all();
        }
    }

    fn write_now(&self, queue: &mut Queue) {
        if !queue.is_urgent {
            queue.is_urgent = true;
            self.wake.notify_all();
        }
    }

    fn mark_used(&self, first_use: Use) {
        let mut queue = self.queue.lock();
        queue.pending.push_use(first_use);
        self.write_soon(&mut queue);
    }

    /// Decrypts a position of the file. Returns `None` if its key is gone or the file is damaged.
    fn open(&self, found: StoredPosition) -> Option<Position> {
        let now = self.clock.now();
        let text = open_position(|id| self.keys.key(id, now), &found.reference, &found.position.text).ok()?;
        Some(Position { text, ..found.position })
    }
}

/// Methods of the thread that writes.
impl Shared {
    fn run_writer(&self) {
        while let Some(batch) = self.next_batch() {
            let written = self.write(&batch);
            self.finish(&batch, written);
        }
    }

    /// Waits for the time of the next write. Returns `None` if no more positions come.
    fn next_batch(&self) -> Option<Batch> {
        let mut queue = self.queue.lock();
        loop {
            let wait = queue.next_write.saturating_duration_since(Instant::now());
            let is_due = wait.is_zero() || queue.is_urgent || queue.is_closed;
            if queue.pending.is_empty() {
                queue.is_urgent = false;
                if queue.is_closed {
                    return None;
                }
                queue.is_scheduled = false;
                self.wake.wait(&mut queue);
            } else if is_due {
                queue.is_urgent = false;
                return Some(queue.pending.batch());
            } else {
                self.wake.wait_for(&mut queue, wait);
            }
        }
    }

    /// Writes a batch and returns the stored clock.
    fn write(&self, batch: &Batch) -> Result<Duration, StateError> {
        let key = self.keys.newest(self.clock.now());
        let seal = |(reference, position): &(Reference, Arc<Position>)| {
            let text = seal_position(&key, reference, &position.text)?;
            let Position { kind, issued, offset, binding, .. } = &**position;
            let sealed =
                Position { kind: *kind, issued: *issued, offset: *offset, binding: binding.clone(), text };
            Ok((*reference, sealed))
        };
        let sealed = batch.positions.iter().map(seal).collect::<Result<Vec<_>, StateError>>()?;
        self.file.write(&sealed, &batch.uses)
    }

    fn finish(&self, batch: &Batch, written: Result<Duration, StateError>) {
        let mut queue = self.queue.lock();
        queue.has_started |= !batch.positions.is_empty();
        match written {
            Ok(seen) => {
                queue.clock = Some(ClockReading { at: Instant::now(), seen });
                if std::mem::take(&mut queue.failures) > 0 {
                    tracing::info!("cursors are stored again");
                }
                queue.pending.complete(batch);
                let pause = if batch.is_partial { SHORT_PAUSE } else { PAUSE };
                queue.next_write = Instant::now() + pause;
            }
            Err(error) => {
                if queue.failures == 0 {
                    tracing::warn!(%error, "cursors are kept in memory, and end with this process");
                }
                let pause = FIRST_RETRY * 2_u32.saturating_pow(queue.failures.min(5));
                queue.failures = queue.failures.saturating_add(1);
                queue.next_write = Instant::now() + pause.min(MAX_RETRY);
                if queue.is_closed {
                    queue.pending = Pending::default();
                }
            }
        }
        drop(queue);
        self.attempted.notify_waiters();
    }
}
