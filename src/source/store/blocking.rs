//! Reads on blocking threads.

use tokio::task::spawn_blocking;

/// Runs a read on a blocking thread, where waiting for the disk delays no other task.
pub(super) async fn spawn_read<Answer: Send + 'static>(
    read: impl FnOnce() -> Answer + Send + 'static,
) -> Answer {
    match spawn_blocking(read).await {
        Ok(answer) => answer,
        Err(panicked) => std::panic::resume_unwind(panicked.into_panic()),
    }
}
