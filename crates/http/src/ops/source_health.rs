//! Checks of the sources for `/health`, the probes, `/metrics` and the operator's page.

use std::time::Duration;

use fetchwell_core::record::Unavailable;
use fetchwell_source::{BackendStatus, Source};
use tokio::time::timeout;

use crate::site::Site;

/// Timeout of a check of all sources.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Error code of a check that took too long.
const LATE: &str = "source_timeout";

/// Returns the sources that are unavailable, or an error code if no record can be read.
pub(crate) async fn unavailable_sources(source: &dyn Source) -> Result<Vec<Unavailable>, String> {
    match timeout(TIMEOUT, source.health()).await {
        Ok(Ok(missing)) => Ok(missing),
        Ok(Err(error)) => Err(error.code().to_owned()),
        Err(_late) => Err(LATE.to_owned()),
    }
}

/// Returns the places that a source reads from, or none if they do not answer in time.
pub(crate) async fn backends(source: &dyn Source) -> Vec<BackendStatus> {
    timeout(TIMEOUT, source.backends()).await.unwrap_or_default()
}

/// Returns the places that are read from. A source that uses the caller's token is not one of them.
pub(super) async fn backends_of(site: &Site) -> Vec<BackendStatus> {
    match site.served.everything() {
        Some(sources) => backends(sources.source()).await,
        None => Vec::new(),
    }
}
