//! How much of this machine clients may take: connections, and the time for each step of a request.

use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::Next;
use axum::response::Response;

use super::refusal::{Asked, Refusal};
use super::served::Served;
use crate::telemetry::Telemetry;

/// Connections at a time, when nothing else is configured: some for each client of ten thousand, and some spare.
pub const DEFAULT_MAX_CONNECTIONS: u32 = 12_000;

/// Connections of one address at a time, when nothing else is configured: a twelfth of all.
pub const DEFAULT_MAX_CONNECTIONS_PER_ADDRESS: u32 = 1_000;

/// The default time in which a client has to read some of a response.
pub const DEFAULT_WRITE_TIMEOUT: Duration = Duration::from_secs(30);

/// Files that the program wants open beside its connections: stores, their indexes, the state, questions to record
/// servers.
#[cfg(unix)]
const OTHER_FILES: u64 = 512;

/// The bytes of the head of a request, and the headers in it. More is answered 431.
pub(super) const HEAD_BYTES: u16 = u16::MAX;
pub(super) const HEADERS_MOST: usize = 100;

/// Limits of connections and of the steps of a request.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Connections at a time. More wait until one ends.
    pub connections: u32,
    /// Connections of one address at a time. More are closed at once.
    pub connections_per_address: u32,
    /// From the first byte of a request to the end of its head.
    pub head: Duration,
    /// A connection on which nothing happens.
    pub idle: Duration,
    /// A response of which the client reads nothing.
    pub write: Duration,
    /// All of a body.
    pub body: Duration,
    /// The handshake of TLS.
    pub handshake: Duration,
    /// Beyond the deadline of a call: for all of a request but sending its answer.
    pub beyond_call: Duration,
    /// Calls in flight after a stop.
    pub drain: Duration,
    /// Between two looks at the files of the certificate.
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

/// As many of these connections as the system lets the process have, which is asked for as many files as it may have.
#[cfg(unix)]
pub(super) fn affordable(connections: u32) -> u32 {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let wanted = u64::from(connections) + OTHER_FILES;
    let (Some(soft), hard) = (current, maximum.unwrap_or(u64::MAX)) else { return connections };
    let mut files = soft;
    // No more than is wanted: some systems say that there is no end and take no number near it.
    let raised = wanted.min(hard);
    if soft < raised && setrlimit(Resource::Nofile, Rlimit { current: Some(raised), maximum }).is_ok() {
        files = raised;
    }
    let affordable = within(connections, files);
    if affordable < connections {
        tracing::warn!(
            files,
            connections,
            affordable,
            "the system lets this process open too few files for max_connections, which is lowered; raise its limit (ulimit -n, LimitNOFILE)"
        );
    }
    affordable
}

/// Elsewhere files are not counted so.
#[cfg(not(unix))]
pub(super) fn affordable(connections: u32) -> u32 {
    connections
}

/// Of a few files, half are for connections.
#[cfg(unix)]
fn within(connections: u32, files: u64) -> u32 {
    let spare = files.saturating_sub(OTHER_FILES).max(files / 2).max(1);
    u32::try_from(spare).unwrap_or(u32::MAX).min(connections)
}

/// What [`in_time`] goes by.
#[derive(Debug, Clone)]
pub(super) struct Patience {
    pub(super) served: Served,
    pub(super) beyond_call: Duration,
    pub(super) telemetry: Telemetry,
}

/// Answers that it took too long when a request is not answered some time after the deadline that its call keeps
/// itself. The answer is dropped, and with it what it waits for.
pub(super) async fn in_time(State(patience): State<Patience>, request: Request, next: Next) -> Response {
    let most = patience.served.call_deadline() + patience.beyond_call;
    let asked = Asked::of(&request);
    match tokio::time::timeout(most, next.run(request)).await {
        Ok(response) => response,
        Err(_late) => {
            let refusal = Refusal::new(
                StatusCode::GATEWAY_TIMEOUT,
                "source_timeout",
                -32603,
                format!("there was no answer after {} seconds; call again", most.as_secs()),
            );
            asked.refused(&refusal, &patience.telemetry)
        }
    }
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
