//! Work that would block other calls: parsing, dividing and fitting long records.
//!
//! `run_blocking` runs it on the blocking pool, with a permit. The number of permits is that of the cores, for the whole
//! process, because the memory for a record of megabytes is several times its size.

use std::num::NonZero;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::thread::available_parallelism;

use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

use crate::error::ToolError;

/// Minimum number of permits, so that a long task does not block a short one.
const MIN_PERMITS: usize = 2;

/// Permits of the process. More tasks than cores would finish no sooner and take more memory.
static PERMITS: LazyLock<Arc<Semaphore>> = LazyLock::new(|| {
    let cores = available_parallelism().map_or(MIN_PERMITS, NonZero::get);
    Arc::new(Semaphore::new(cores.max(MIN_PERMITS)))
});

/// Runs work on the blocking pool once there is a permit. Work of a call that is dropped before that never starts.
pub async fn run_blocking<Answer: Send + 'static>(
    work: impl FnOnce() -> Result<Answer, ToolError> + Send + 'static,
) -> Result<Answer, ToolError> {
    run_with_permit(&PERMITS, work).await
}

/// Runs small work at once, and other work as [`run_blocking`] does. Two hand-overs between threads take longer than small
/// work.
pub(crate) async fn run_by_size<Answer: Send + 'static>(
    is_small: bool,
    work: impl FnOnce() -> Result<Answer, ToolError> + Send + 'static,
) -> Result<Answer, ToolError> {
    if is_small { work() } else { run_blocking(work).await }
}

async fn run_with_permit<Answer: Send + 'static>(
    permits: &Arc<Semaphore>,
    work: impl FnOnce() -> Result<Answer, ToolError> + Send + 'static,
) -> Result<Answer, ToolError> {
    let permit = Arc::clone(permits).acquire_owned().await.map_err(|_closed| cancelled())?;
    let task = move || {
        // Work continues after its call is dropped, and keeps its permit.
        let _permit = permit;
        work()
    };
    spawn_blocking(task).await.unwrap_or_else(|ended| match ended.try_into_panic() {
        Ok(panic) => std::panic::resume_unwind(panic),
        Err(_cancelled) => Err(cancelled()),
    })
}

/// Sets a flag when the call is dropped, which stops dividing its document.
#[derive(Debug, Default)]
pub(crate) struct StopOnDrop(pub(crate) Arc<AtomicBool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Creates the error of a call that was dropped. No client sees it.
pub(crate) fn cancelled() -> ToolError {
    ToolError::Internal { problem: "the call was abandoned".to_owned() }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    #[test]
    fn a_dropped_call_stops_dividing() {
        let stop = StopOnDrop::default();
        let stopped = Arc::clone(&stop.0);
        drop(stop);
        assert!(stopped.load(Ordering::Relaxed));
    }

    #[tokio::test]
    async fn concurrency_is_limited_by_the_permits() {
        let (now, peak) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let calls: Vec<_> = (0..40)
            .map(|_| {
                let (now, peak) = (Arc::clone(&now), Arc::clone(&peak));
                tokio::spawn(run_blocking(move || {
                    peak.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    std::thread::park_timeout(Duration::from_millis(5));
                    now.fetch_sub(1, Ordering::SeqCst);
                    Ok(())
                }))
            })
            .collect();
        for call in calls {
            call.await.unwrap().unwrap();
        }
        let cores = available_parallelism().unwrap().get().max(MIN_PERMITS);
        assert!(peak.load(Ordering::SeqCst) <= cores, "{peak:?} of {cores}");
    }

    #[tokio::test]
    async fn dropped_work_does_not_start_and_running_work_keeps_its_permit() {
        let permits = Arc::new(Semaphore::new(1));
        let (release, released) = std::sync::mpsc::channel::<()>();
        let running = run_with_permit(&permits, move || {
            released.recv().unwrap();
            Ok(())
        });
        // The call is dropped while its work runs.
        timeout(Duration::from_millis(20), running).await.unwrap_err();
        let started = Arc::new(AtomicUsize::new(0));
        let start = Arc::clone(&started);
        let late = run_with_permit(&permits, move || {
            start.fetch_add(1, Ordering::SeqCst);
            Ok(())
        });
        timeout(Duration::from_millis(20), late).await.unwrap_err();
        release.send(()).unwrap();
        run_with_permit(&permits, || Ok(())).await.unwrap();
        assert_eq!(started.load(Ordering::SeqCst), 0);
    }
}
