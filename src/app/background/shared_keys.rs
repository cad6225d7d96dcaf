//! Warns about servers that share a Redis but have different keys, at the start and later.

use std::sync::Arc;
use std::time::Duration;

use fetchwell_state::cursor::{Cursors, LatestKeyMismatch};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

/// Interval at which a server compares its keys, and confirms that it uses them.
const INTERVAL: Duration = Duration::from_secs(20);

/// Compares the keys of this server with those of others until `stop` is cancelled. Logs each difference once, and keeps the
/// latest result in `latest`.
pub(crate) async fn follow_shared_keys(
    cursors: Arc<Cursors>,
    latest: LatestKeyMismatch,
    stop: CancellationToken,
) {
    let compare = async {
        loop {
            // Failures of Redis are counted and logged by its client.
            if let Ok(found) = cursors.confirm_shared_keys().await {
                let known = latest.replace(found);
                match found {
                    Some(mismatch) if known != found => tracing::warn!("{mismatch}"),
                    None if known.is_some() => {
                        tracing::info!("all servers with this Redis have the same keys");
                    }
                    Some(_) | None => {}
                }
            }
            sleep(INTERVAL).await;
        }
    };
    stop.run_until_cancelled(compare).await;
}
