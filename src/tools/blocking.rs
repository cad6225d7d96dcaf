//! Work that takes long enough to hold up other calls.

use tokio::task::spawn_blocking;

use super::ToolError;

/// Runs work on a thread of its own.
pub(crate) async fn beside_other_calls<Answer: Send + 'static>(
    work: impl FnOnce() -> Result<Answer, ToolError> + Send + 'static,
) -> Result<Answer, ToolError> {
    spawn_blocking(work).await.unwrap_or_else(|ended| match ended.try_into_panic() {
        Ok(panic) => std::panic::resume_unwind(panic),
        Err(_cancelled) => Err(abandoned()),
    })
}

/// Nobody sees it: whoever asked has gone.
pub(super) fn abandoned() -> ToolError {
    ToolError::Report { problem: "the call was abandoned".to_owned() }
}
