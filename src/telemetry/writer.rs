//! The thread that takes calls to their file.
//!
//! No call waits for it: a call is put into a queue, or counted as dropped when the queue is full. A file that cannot
//! be written is tried again at growing intervals; what comes meanwhile is kept in memory, as far as there is room.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::Connection;

use super::TelemetryRecord;
use super::database::Database;
use super::keep::{Held, add, held, latencies};
use super::ring::Ring;
use super::totals::Totals;
use crate::state::StateError;

/// Calls that may wait for the thread.
const QUEUE: usize = 4_096;

/// Between two writes: a single call is written at once, and of many each write takes all that came.
const PAUSE: Duration = Duration::from_millis(10);

/// How long the thread leaves the queue alone while it waits for its next write.
const NAP_MOST: Duration = Duration::from_millis(50);

/// Before the second try of a write that failed, doubled for each after it.
const RETRY_FIRST: Duration = Duration::from_secs(1);

/// The most between two tries.
const RETRY_MOST: Duration = Duration::from_secs(30);

/// The way to the thread. It writes what is left and ends when this is dropped.
#[derive(Debug)]
pub(super) struct Writer {
    queue: SyncSender<Message>,
    shared: Arc<Shared>,
}

#[derive(Debug)]
enum Message {
    Record(Arc<TelemetryRecord>),
    /// To be told when all that came before is written, or cannot be.
    Flush(SyncSender<()>),
}

/// What calls and the thread both look at.
#[derive(Debug, Default)]
struct Shared {
    /// Both halves change together, so that their sum is right at any time.
    tally: Mutex<Tally>,
    dropped: AtomicU64,
    is_degraded: AtomicBool,
}

#[derive(Debug, Clone, Copy, Default)]
struct Tally {
    held: Held,
    /// Calls that are not in the file yet.
    pending: Totals,
}

impl Shared {
    fn tally<Answer>(&self, look: impl FnOnce(&mut Tally) -> Answer) -> Answer {
        look(&mut self.tally.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Writer {
    /// Opens the file and starts the thread. Gives the latencies, in microseconds, of the latest `most` calls too.
    pub(super) fn start(database: Database, most: usize) -> (Self, Vec<u64>) {
        let shared = Arc::new(Shared::default());
        let (queue, messages) = sync_channel(QUEUE);
        let mut keeper = Keeper {
            connection: None,
            shared: Arc::clone(&shared),
            waiting: Ring::of(most),
            next_try: Instant::now(),
            failures: 0,
            database,
        };
        let latencies = keeper.open(most);
        let started =
            thread::Builder::new().name("telemetry".to_owned()).spawn(move || keeper.run(&messages));
        if let Err(error) = started {
            tracing::warn!(%error, "the system gives no thread for telemetry; it is kept in memory");
            shared.is_degraded.store(true, Ordering::Relaxed);
        }
        (Self { queue, shared }, latencies)
    }

    /// Counts a call and has it written, without waiting for anything.
    pub(super) fn keep(&self, record: Arc<TelemetryRecord>) {
        self.shared.tally(|tally| tally.pending = tally.pending.plus(Totals::of(&record)));
        if self.queue.try_send(Message::Record(record)).is_err() {
            self.shared.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// What all calls come to, those of earlier processes and those that are not written yet included.
    pub(super) fn totals(&self) -> Totals {
        self.shared.tally(|tally| tally.held.totals.plus(tally.pending))
    }

    /// Rows in the file.
    pub(super) fn rows(&self) -> u64 {
        self.shared.tally(|tally| tally.held.rows)
    }

    /// Calls whose rows were lost.
    pub(super) fn dropped(&self) -> u64 {
        self.shared.dropped.load(Ordering::Relaxed)
    }

    /// Whether the file cannot be written now.
    pub(super) fn is_degraded(&self) -> bool {
        self.shared.is_degraded.load(Ordering::Relaxed)
    }

    /// Waits until all that came so far is written, for `most` at the longest.
    pub(super) fn flush(&self, most: Duration) {
        let until = Instant::now() + most;
        let (done, is_done) = sync_channel(1);
        // The queue has no send that ends at a time.
        while let Err(TrySendError::Full(_)) = self.queue.try_send(Message::Flush(done.clone())) {
            if Instant::now() >= until {
                return;
            }
            thread::park_timeout(PAUSE);
        }
        drop(done);
        let _ = is_done.recv_timeout(until.saturating_duration_since(Instant::now()));
    }
}

/// The thread's own.
#[derive(Debug)]
struct Keeper {
    database: Database,
    connection: Option<Connection>,
    shared: Arc<Shared>,
    /// Calls that are not in the file yet.
    waiting: Ring<Arc<TelemetryRecord>>,
    next_try: Instant,
    failures: u32,
}

impl Keeper {
    /// Looks into the file. Whatever is wrong with it is tried again by the first write.
    fn open(&mut self, most: usize) -> Vec<u64> {
        let opened = self.database.file.prepare().and_then(|connection| {
            let read = || Ok((held(&connection)?, latencies(&connection, most)?));
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
                // Not with the queue: whoever put something into it would have to wake this thread.
                let nap = self.next_try.saturating_duration_since(Instant::now());
                thread::park_timeout(nap.min(NAP_MOST));
            }
            is_open = self.take_all(messages);
            if !is_open || Instant::now() >= self.next_try {
                self.write();
            }
        }
    }

    /// Takes what has come. Says whether more can come.
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
                // Few records in memory are no reason to lose one that the file would take.
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
        // A file that was deleted is made again.
        let kept = self.connection.take().filter(|_| self.database.file.is_there());
        let mut connection = kept.map_or_else(|| self.database.file.prepare(), Ok)?;
        let more = self.shared.tally(|tally| tally.pending);
        let added = add(&mut connection, self.waiting.iter(), more, self.database.rows_most);
        let held = added.map_err(|error| self.database.file.error(&error))?;
        self.shared.tally(|tally| *tally = Tally { held, pending: tally.pending.minus(more) });
        self.connection = Some(connection);
        Ok(())
    }

    /// Says so once, and leaves the file alone for a while.
    fn failed(&mut self, error: &StateError) {
        if self.failures == 0 {
            tracing::warn!(%error, "telemetry cannot be written; it is kept in memory and tried again");
        }
        self.shared.is_degraded.store(true, Ordering::Relaxed);
        let pause = RETRY_FIRST * 2_u32.saturating_pow(self.failures.min(5));
        self.failures = self.failures.saturating_add(1);
        self.next_try = Instant::now() + pause.min(RETRY_MOST);
    }
}
