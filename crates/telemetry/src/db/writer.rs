//! The thread that writes calls to the telemetry file.
//!
//! No call waits for it: a call is queued, or counted as dropped if the queue is full. Failed writes are retried with
//! exponential backoff; meanwhile calls are kept in memory, up to a maximum.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use fetchwell_state::StateError;
use parking_lot::Mutex;
use rusqlite::Connection;

use super::database::Database;
use super::flush::flush_queue;
use super::keep::{FileTotals, add, latencies, read_totals};
use crate::TelemetryRecord;
use crate::ring::Ring;
use crate::totals::Totals;

/// Maximum number of queued calls.
const QUEUE: usize = 4_096;

/// Pause between two writes. A single call is written at once; under load each write takes all queued calls.
const PAUSE: Duration = Duration::from_millis(10);

/// Maximum time for which the thread does not look at the queue while it waits for its next write.
const MAX_NAP: Duration = Duration::from_millis(50);

/// Delay before the first retry of a failed write. It doubles with each retry.
const FIRST_RETRY: Duration = Duration::from_secs(1);

/// Maximum delay between two retries.
const MAX_RETRY: Duration = Duration::from_secs(30);

/// A handle to the thread. When it is dropped, the thread writes the remaining calls and ends.
#[derive(Debug)]
pub(crate) struct Writer {
    queue: SyncSender<Message>,
    shared: Arc<WriterState>,
    /// The state directory.
    directory: PathBuf,
}

#[derive(Debug)]
enum Message {
    Record(Arc<TelemetryRecord>),
    /// Requests a reply once all earlier calls are written, or cannot be.
    Flush(SyncSender<()>),
}

/// State that is shared by calls and the thread.
#[derive(Debug, Default)]
struct WriterState {
    /// Both fields change together, so that their sum is always right.
    tally: Mutex<Tally>,
    dropped: AtomicU64,
    is_degraded: AtomicBool,
}

#[derive(Debug, Clone, Copy, Default)]
struct Tally {
    held: FileTotals,
    /// Totals of the calls that are not in the file yet.
    pending: Totals,
}

impl WriterState {
    fn tally<Answer>(&self, read: impl FnOnce(&mut Tally) -> Answer) -> Answer {
        read(&mut self.tally.lock())
    }
}

impl Writer {
    /// Opens the file and starts the thread. Also returns the latencies, in microseconds, of the latest `max_calls` calls.
    pub(crate) fn start(database: Database, max_calls: usize) -> (Self, Vec<u64>) {
        let shared = Arc::new(WriterState::default());
        let directory = database.file.directory().to_owned();
        let (queue, messages) = sync_channel(QUEUE);
        let mut keeper = Keeper {
            connection: None,
            shared: Arc::clone(&shared),
            waiting: Ring::new(max_calls),
            next_try: Instant::now(),
            failures: 0,
            database,
        };
        let latencies = keeper.open(max_calls);
        let started =
            thread::Builder::new().name("telemetry".to_owned()).spawn(move || keeper.run(&messages));
        if let Err(error) = started {
            tracing::warn!(%error, "the thread that writes telemetry cannot be started; telemetry is kept in memory");
            shared.is_degraded.store(true, Ordering::Relaxed);
        }
        (Self { queue, shared, directory }, latencies)
    }

    /// Counts a call and queues it, without blocking.
    pub(crate) fn keep(&self, record: Arc<TelemetryRecord>) {
        self.shared.tally(|tally| tally.pending = tally.pending.plus(Totals::from_record(&record)));
        if self.queue.try_send(Message::Record(record)).is_err() {
            self.shared.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns the totals of all calls, including those of earlier processes and those not yet written.
    pub(crate) fn totals(&self) -> Totals {
        self.shared.tally(|tally| tally.held.totals.plus(tally.pending))
    }

    /// Returns the number of rows in the file.
    pub(crate) fn rows(&self) -> u64 {
        self.shared.tally(|tally| tally.held.rows)
    }

    /// Returns the number of calls that were dropped before they were written.
    pub(crate) fn dropped(&self) -> u64 {
        self.shared.dropped.load(Ordering::Relaxed)
    }

    /// Returns the state directory.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Returns true if the file cannot be written at present.
    pub(crate) fn is_degraded(&self) -> bool {
        self.shared.is_degraded.load(Ordering::Relaxed)
    }

    /// Waits until all calls so far are written, for at most `timeout`.
    pub(crate) fn flush(&self, timeout: Duration) {
        flush_queue(&self.queue, Message::Flush, timeout);
    }
}

/// The state of the thread.
#[derive(Debug)]
struct Keeper {
    database: Database,
    connection: Option<Connection>,
    shared: Arc<WriterState>,
    /// Calls that are not in the file yet, up to a maximum.
    waiting: Ring<Arc<TelemetryRecord>>,
    next_try: Instant,
    failures: u32,
}

impl Keeper {
    /// Opens the file. If that fails, the first write tries again.
    fn open(&mut self, max_calls: usize) -> Vec<u64> {
        let opened = self.database.file.prepare().and_then(|connection| {
            let read = || Ok((read_totals(&connection)?, latencies(&connection, max_calls)?));
            let (held, latencies) = read().map_err(|error| self.database.file.error(&error))?;
            Ok((connection, held, latencies))
        });
        match opened {
            Ok((connection, held, latencies)) => {
                self.connection = Some(connection);
                self.shared.tally(|tally| tally.held = held);
                latencies
            }
            Err(error) => {
                self.failed(&error);
                Vec::new()
            }
        }
    }

    fn run(mut self, messages: &Receiver<Message>) {
        let mut is_open = true;
        while is_open {
            if self.waiting.is_empty() {
                let Ok(message) = messages.recv() else { return };
                self.take(message);
            } else {
                // Not `recv_timeout`: a call that is queued would then have to wake this thread.
                let nap = self.next_try.saturating_duration_since(Instant::now());
                thread::park_timeout(nap.min(MAX_NAP));
            }
            is_open = self.take_all(messages);
            if !is_open || Instant::now() >= self.next_try {
                self.write();
            }
        }
    }

    /// Takes all queued messages. Returns false if the queue is closed.
    fn take_all(&mut self, messages: &Receiver<Message>) -> bool {
        loop {
            match messages.try_recv() {
                Ok(message) => self.take(message),
                Err(TryRecvError::Empty) => return true,
                Err(TryRecvError::Disconnected) => return false,
            }
        }
    }

    fn take(&mut self, message: Message) {
        match message {
            Message::Record(record) => {
                // A small in-memory list is no reason to drop a call that the file would accept.
                if self.failures == 0 && self.waiting.is_full() {
                    self.write();
                }
                if self.waiting.push(record).is_some() {
                    self.shared.dropped.fetch_add(1, Ordering::Relaxed);
                }
            }
            Message::Flush(done) => {
                self.write();
                let _ = done.try_send(());
            }
        }
    }

    fn write(&mut self) {
        if self.waiting.is_empty() {
            return;
        }
        match self.try_write() {
            Ok(()) => {
                if std::mem::take(&mut self.failures) > 0 {
                    tracing::info!("telemetry is written again");
                }
                self.shared.is_degraded.store(false, Ordering::Relaxed);
                self.waiting.clear();
                self.next_try = Instant::now() + PAUSE;
            }
            Err(error) => self.failed(&error),
        }
    }

    fn try_write(&mut self) -> Result<(), StateError> {
        // A file that was deleted is created again.
        let kept = self.connection.take().filter(|_| self.database.file.is_there());
        let mut connection = kept.map_or_else(|| self.database.file.prepare(), Ok)?;
        let more = self.shared.tally(|tally| tally.pending);
        let added = add(&mut connection, self.waiting.iter(), more, self.database.max_rows);
        let held = added.map_err(|error| self.database.file.error(&error))?;
        self.shared.tally(|tally| *tally = Tally { held, pending: tally.pending.minus(more) });
        self.connection = Some(connection);
        Ok(())
    }

    /// Logs the first failure and schedules a retry.
    fn failed(&mut self, error: &StateError) {
        if self.failures == 0 {
            tracing::warn!(%error, "telemetry cannot be written; it is kept in memory and tried again");
        }
        self.shared.is_degraded.store(true, Ordering::Relaxed);
        let pause = FIRST_RETRY * 2_u32.saturating_pow(self.failures.min(5));
        self.failures = self.failures.saturating_add(1);
        self.next_try = Instant::now() + pause.min(MAX_RETRY);
    }
}
