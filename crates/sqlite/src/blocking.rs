//! Reads of a store on blocking threads, and short ones in the task that asks.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use fetchwell_core::saturate::saturated;
use tokio::runtime::Handle;
use tokio::task::spawn_blocking;

/// Duration from which a read counts as slow, such as one that waits for a disk.
const SLOW: Duration = Duration::from_millis(5);

/// Time after a slow read in which all reads run on blocking threads.
const PAUSE: Duration = Duration::from_secs(1);

/// Short reads of the process.
static SHORT_READS: LazyLock<ShortReads> = LazyLock::new(ShortReads::default);

/// Runs a read on a blocking thread, where waiting for the disk delays no other task.
pub(crate) async fn spawn_read<Answer: Send + 'static>(
    read: impl FnOnce() -> Answer + Send + 'static,
) -> Answer {
    match spawn_blocking(read).await {
        Ok(answer) => answer,
        Err(panicked) => std::panic::resume_unwind(panicked.into_panic()),
    }
}

/// Duration that is expected of a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadLength {
    /// Microseconds, if the disk is fast: two hand-overs between threads take longer.
    Short,
    /// Any duration, such as that of a search.
    Any,
}

/// Runs a short read at once, and another one on a blocking thread as [`spawn_read`]. Short reads run on blocking threads, too,
/// if one was slow recently, and if no thread of the runtime would be left for other tasks.
pub(crate) async fn run_read<Answer: Send + 'static>(
    length: ReadLength,
    read: impl FnOnce() -> Answer + Send + 'static,
) -> Answer {
    let others = Handle::current().metrics().num_workers().saturating_sub(1);
    let short = (length == ReadLength::Short).then(|| SHORT_READS.begin(others)).flatten();
    match short {
        Some(_running) => read(),
        None => spawn_read(read).await,
    }
}

/// Number of the short reads that run in tasks, and the time from which they may.
#[derive(Debug)]
struct ShortReads {
    running: AtomicUsize,
    created: Instant,
    /// Milliseconds after `created`.
    paused_until: AtomicU64,
}

/// A running short read, which ends on drop.
#[derive(Debug)]
struct ShortRead<'a> {
    reads: &'a ShortReads,
    began: Instant,
}

impl Default for ShortReads {
    fn default() -> Self {
        Self { running: AtomicUsize::new(0), created: Instant::now(), paused_until: AtomicU64::new(0) }
    }
}

impl ShortReads {
    /// Begins a read, unless `max` reads run or a read was slow recently.
    fn begin(&self, max: usize) -> Option<ShortRead<'_>> {
        let read = ShortRead { reads: self, began: Instant::now() };
        let running = self.running.fetch_add(1, Ordering::Relaxed);
        // A refused read is subtracted on drop.
        (running < max && self.millis(read.began) >= self.paused_until.load(Ordering::Relaxed))
            .then_some(read)
    }

    fn millis(&self, at: Instant) -> u64 {
        saturated::<u64>(at.duration_since(self.created).as_millis())
    }
}

impl Drop for ShortRead<'_> {
    fn drop(&mut self) {
        self.reads.running.fetch_sub(1, Ordering::Relaxed);
        if self.began.elapsed() >= SLOW {
            self.reads.paused_until.store(self.reads.millis(Instant::now() + PAUSE), Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_reads_pause_reads_in_tasks() {
        let reads = ShortReads::default();
        let first = reads.begin(2);
        assert!(first.is_some() && reads.begin(1).is_none(), "the last thread stays free");
        drop((first, reads.begin(2)));
        assert_eq!(reads.running.load(Ordering::Relaxed), 0, "refused reads are not counted");
        assert!(reads.begin(0).is_none() && reads.begin(1).is_some());
        let mut slow = reads.begin(1).unwrap();
        slow.began = slow.began.checked_sub(SLOW).unwrap();
        drop(slow);
        assert!(reads.begin(1).is_none(), "a slow read");
        reads.paused_until.store(0, Ordering::Relaxed);
        assert!(reads.begin(1).is_some());
        assert_eq!(reads.running.load(Ordering::Relaxed), 0);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn short_reads_run_in_the_task_where_a_thread_is_left() {
        let here = std::thread::current().id();
        let task = tokio::spawn(async {
            let here = std::thread::current().id();
            (here, run_read(ReadLength::Short, || std::thread::current().id()).await)
        });
        let (task, read) = task.await.unwrap();
        assert!(task == read && task != here);
        assert_ne!(run_read(ReadLength::Any, || std::thread::current().id()).await, here);
    }

    #[tokio::test]
    async fn short_reads_leave_a_single_thread_alone() {
        assert_ne!(
            run_read(ReadLength::Short, || std::thread::current().id()).await,
            std::thread::current().id()
        );
    }
}
