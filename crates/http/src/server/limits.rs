//! Limits of connections and timeouts of the steps of a request.

use std::time::Duration;

use fetchwell_core::saturate::saturated;

/// Default maximum number of connections: enough for ten thousand clients with a margin.
pub const DEFAULT_MAX_CONNECTIONS: u32 = 12_000;

/// Default maximum number of connections per address: a twelfth of all.
pub const DEFAULT_MAX_CONNECTIONS_PER_ADDRESS: u32 = 1_000;

/// Default timeout for a client that reads nothing of a response.
pub const DEFAULT_WRITE_TIMEOUT: Duration = Duration::from_secs(30);

/// File descriptors reserved for stores, indexes, state files and requests to record servers.
#[cfg(unix)]
const OTHER_FILES: u64 = 512;

/// Maximum bytes of a request head and maximum number of headers. More get status 431.
pub(crate) const MAX_HEAD_BYTES: u16 = u16::MAX;
pub(crate) const MAX_HEADERS: usize = 100;

/// Limits of connections and timeouts of the steps of a request.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Maximum number of connections. More wait until one ends.
    pub connections: u32,
    /// Maximum number of connections per address. More are closed at once.
    pub connections_per_address: u32,
    /// Timeout from the first byte of a request to the end of its head.
    pub head: Duration,
    /// Timeout of an idle connection.
    pub idle: Duration,
    /// Timeout of a response of which the client reads nothing.
    pub write: Duration,
    /// Timeout for receiving a request body.
    pub body: Duration,
    /// Timeout of the TLS handshake.
    pub handshake: Duration,
    /// Time beyond the deadline of a call after which its request times out. Sending the response is not included.
    pub beyond_call: Duration,
    /// Time to drain the calls in flight on shutdown.
    pub drain: Duration,
    /// Interval between two checks of the certificate files.
    pub certificate: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: DEFAULT_MAX_CONNECTIONS,
            connections_per_address: DEFAULT_MAX_CONNECTIONS_PER_ADDRESS,
            head: Duration::from_secs(10),
            idle: Duration::from_secs(60),
            write: DEFAULT_WRITE_TIMEOUT,
            body: Duration::from_secs(10),
            handshake: Duration::from_secs(10),
            beyond_call: Duration::from_secs(10),
            drain: Duration::from_secs(5),
            certificate: Duration::from_secs(60),
        }
    }
}

/// Raises the limit of open files if necessary. Returns the number of connections that it allows.
#[cfg(unix)]
pub(crate) fn allowed_connections(connections: u32) -> u32 {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let wanted = u64::from(connections) + OTHER_FILES;
    let (Some(soft), hard) = (current, maximum.unwrap_or(u64::MAX)) else { return connections };
    let mut files = soft;
    // Not raised to the hard limit: some systems report it as unlimited and accept no number near that.
    let raised = wanted.min(hard);
    if soft < raised && setrlimit(Resource::Nofile, Rlimit { current: Some(raised), maximum }).is_ok() {
        files = raised;
    }
    let allowed_connections = within(connections, files);
    if allowed_connections < connections {
        tracing::warn!(
            files,
            connections,
            allowed_connections,
            "the system lets this process open too few files for max_connections, which is lowered; raise its limit (ulimit -n, LimitNOFILE)"
        );
    }
    allowed_connections
}

/// Returns the number unchanged: other systems do not count sockets as files.
#[cfg(not(unix))]
pub(crate) fn allowed_connections(connections: u32) -> u32 {
    connections
}

/// Returns the connections that a number of files allows; at least half of the files are for connections.
#[cfg(unix)]
fn within(connections: u32, files: u64) -> u32 {
    let spare = files.saturating_sub(OTHER_FILES).max(files / 2).max(1);
    saturated::<u32>(spare).min(connections)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_files_for_the_rest() {
        for (connections, files, expect) in [
            (12_000, 20_000, 12_000),
            (12_000, 12_512, 12_000),
            (12_000, 4_096, 3_584),
            (12_000, 1_024, 512),
            (12_000, 256, 128),
            (4, 256, 4),
            (4, 0, 1),
        ] {
            assert_eq!(within(connections, files), expect, "{connections} {files}");
        }
    }
}
