//! Work that takes long enough to hold up other calls.

use std::num::NonZero;
use std::sync::{Arc, LazyLock};
use std::thread::available_parallelism;

use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

use super::error::ToolError;

/// The least that runs at a time: one long work holds up no short one.
const MIN_TURNS: usize = 2;

/// Turns of the whole process, as what they share is: its cores, and its memory. A work of a record of megabytes takes
/// several times its size, so more works than cores would end no sooner and take the more.
static TURNS: LazyLock<Arc<Semaphore>> = LazyLock::new(|| {
    let cores = available_parallelism().map_or(MIN_TURNS, NonZero::get);
    Arc::new(Semaphore::new(cores.max(MIN_TURNS)))
});

/// Runs work on a thread of its own, when it is its turn. Work whose caller goes before that never starts.
pub(crate) async fn beside_other_calls<Answer: Send + 'static>(
    work: impl FnOnce() -> Result<Answer, ToolError> + Send + 'static,
) -> Result<Answer, ToolError> {
    in_turn(&TURNS, work).await
}

async fn in_turn<Answer: Send + 'static>(
    turns: &Arc<Semaphore>,
    work: impl FnOnce() -> Result<Answer, ToolError> + Send + 'static,
) -> Result<Answer, ToolError> {
    let turn = Arc::clone(turns).acquire_owned().await.map_err(|_closed| abandoned())?;
    let in_its_turn = move || {
        // A work that its caller has left goes on, and so does its turn.
        let _turn = turn;
        work()
    };
    spawn_blocking(in_its_turn).await.unwrap_or_else(|ended| match ended.try_into_panic() {
        Ok(panic) => std::panic::resume_unwind(panic),
        Err(_cancelled) => Err(abandoned()),
    })
}

/// Nobody sees it: whoever asked has gone.
pub(super) fn abandoned() -> ToolError {
    ToolError::Report { problem: "the call was abandoned".to_owned() }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    #[tokio::test]
    async fn no_more_run_at_a_time_than_there_are_turns() {
        let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let calls: Vec<_> = (0..40)
            .map(|_| {
                let (now, most) = (Arc::clone(&now), Arc::clone(&most));
                tokio::spawn(beside_other_calls(move || {
                    most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    std::thread::park_timeout(Duration::from_millis(5));
                    now.fetch_sub(1, Ordering::SeqCst);
                    Ok(())
                }))
            })
            .collect();
        for call in calls {
            call.await.unwrap().unwrap();
        }
        let cores = available_parallelism().unwrap().get().max(MIN_TURNS);
        assert!(most.load(Ordering::SeqCst) <= cores, "{most:?} of {cores}");
    }

    #[tokio::test]
    async fn what_nobody_waits_for_never_starts_and_what_runs_keeps_its_turn() {
        let turns = Arc::new(Semaphore::new(1));
        let (release, released) = std::sync::mpsc::channel::<()>();
        let running = in_turn(&turns, move || {
            released.recv().unwrap();
            Ok(())
        });
        // Its caller leaves while it runs.
        timeout(Duration::from_millis(20), running).await.unwrap_err();
        let started = Arc::new(AtomicUsize::new(0));
        let start = Arc::clone(&started);
        let late = in_turn(&turns, move || {
            start.fetch_add(1, Ordering::SeqCst);
            Ok(())
        });
        timeout(Duration::from_millis(20), late).await.unwrap_err();
        release.send(()).unwrap();
        in_turn(&turns, || Ok(())).await.unwrap();
        assert_eq!(started.load(Ordering::SeqCst), 0);
    }
}
