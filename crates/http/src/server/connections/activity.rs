//! Tracks the activity of one connection in order to close idle connections, connections with an incomplete request
//! head (slowloris), and connections with a client that does not read its responses.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::http::Version;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::server::limits::Limits;

/// Maximum header bytes of the requests on one connection that await their responses. HTTP/1.1 has one request at a
/// time.
const MAX_HEAD_BYTES_IN_FLIGHT: usize = 256 * 1024;

/// Activity of one connection, shared by the connection, its requests and its timer.
#[derive(Debug, Clone)]
pub(super) struct Activity(Arc<ActivityState>);

#[derive(Debug)]
struct ActivityState {
    phase: Mutex<Phase>,
    /// Notified when a response begins to wait for its client.
    unsent_began: Notify,
}

#[derive(Debug)]
struct Phase {
    /// Number of requests without a completely sent response.
    in_flight: usize,
    /// Header bytes of the requests without a response.
    head_bytes: usize,
    /// Responses with pieces that wait to be sent, by response number.
    unsent: HashMap<u64, UnsentPieces>,
    /// Number of the next response.
    next_response: u64,
    /// Time at which the last request ended, or at which bytes were sent after it.
    quiet_since: Instant,
    /// Time of the first byte of an incomplete request head.
    head_began: Option<Instant>,
    /// True for HTTP/2, where bytes can arrive that belong to no request.
    is_multiplexed: bool,
}

/// Pieces of one response that wait to be sent.
#[derive(Debug)]
struct UnsentPieces {
    pieces: usize,
    /// Time at which the first of them began to wait, or at which the last piece before them was sent.
    since: Instant,
}

/// Guard of one request, dropped when its response has been sent.
#[derive(Debug)]
pub(super) struct InFlight(Activity);

/// Guard of the header bytes of one request, dropped when it has a response.
#[derive(Debug)]
pub(super) struct HeldHead {
    activity: Activity,
    bytes: usize,
}

/// Handle with which one response reports its progress.
#[derive(Debug)]
pub(super) struct Transfer {
    activity: Activity,
    number: u64,
}

/// First bytes of HTTP/2 without ALPN. No HTTP/1 method begins with them.
const PREFACE: &[u8] = b"PRI";

impl Activity {
    pub(super) fn new(is_multiplexed: bool) -> Self {
        let phase = Mutex::new(Phase::new(is_multiplexed, Instant::now()));
        Self(Arc::new(ActivityState { phase, unsent_began: Notify::new() }))
    }

    /// Records that the head of a request is complete.
    pub(super) fn began(&self, version: Version) -> InFlight {
        self.with(|phase| phase.began(version));
        InFlight(self.clone())
    }

    /// Reserves the header bytes of a request; returns `None` if the connection has no room for them.
    pub(super) fn hold_head(&self, bytes: usize) -> Option<HeldHead> {
        let has_room = self.with(|phase| phase.hold_head(bytes));
        has_room.then(|| HeldHead { activity: self.clone(), bytes })
    }

    /// Starts tracking the response to a request.
    pub(super) fn transfer(&self) -> Transfer {
        let number = self.with(|phase| {
            phase.next_response += 1;
            phase.next_response
        });
        Transfer { activity: self.clone(), number }
    }

    /// Waits until a response begins to wait for its client, which changes the deadline of the connection.
    pub(super) async fn unsent_began(&self) {
        self.0.unsent_began.notified().await;
    }

    /// Returns true if a response waits for its client to read it.
    pub(super) fn has_unsent(&self) -> bool {
        self.with(|phase| !phase.unsent.is_empty())
    }

    /// Returns the time at which the connection is closed if nothing happens until then. While a request is in
    /// flight, only the write timeout counts, because the call has its own deadline.
    pub(super) fn ends_at(&self, limits: &Limits) -> Option<Instant> {
        self.with(|phase| phase.ends_at(limits))
    }

    /// Returns true if the head of a request is incomplete.
    pub(super) fn has_partial_head(&self) -> bool {
        self.with(|phase| phase.in_flight == 0 && phase.head_began.is_some())
    }

    fn with<Answer>(&self, look: impl FnOnce(&mut Phase) -> Answer) -> Answer {
        look(&mut self.0.phase.lock())
    }
}

impl Phase {
    fn new(is_multiplexed: bool, now: Instant) -> Self {
        Self {
            in_flight: 0,
            head_bytes: 0,
            unsent: HashMap::new(),
            next_response: 0,
            quiet_since: now,
            head_began: None,
            is_multiplexed,
        }
    }

    fn hold_head(&mut self, bytes: usize) -> bool {
        let has_room = self.head_bytes == 0 || self.head_bytes + bytes <= MAX_HEAD_BYTES_IN_FLIGHT;
        self.head_bytes += if has_room { bytes } else { 0 };
        has_room
    }

    /// Counts a piece that waits to be sent. Returns true if it is the first of its response.
    fn piece_began(&mut self, response: u64, now: Instant) -> bool {
        let unsent = self.unsent.entry(response).or_insert(UnsentPieces { pieces: 0, since: now });
        unsent.pieces += 1;
        unsent.pieces == 1
    }

    fn piece_ended(&mut self, response: u64, now: Instant) {
        let Some(unsent) = self.unsent.get_mut(&response) else { return };
        unsent.pieces -= 1;
        unsent.since = now;
        if unsent.pieces == 0 {
            self.unsent.remove(&response);
        }
    }

    fn began(&mut self, version: Version) {
        self.in_flight += 1;
        self.head_began = None;
        self.is_multiplexed = version == Version::HTTP_2;
    }

    fn ended(&mut self, now: Instant) {
        self.in_flight = self.in_flight.saturating_sub(1);
        self.quiet_since = now;
    }

    fn ends_at(&self, limits: &Limits) -> Option<Instant> {
        let unsent_since = self.unsent.values().map(|unsent| unsent.since).min();
        match self.head_began {
            _ if self.in_flight > 0 => unsent_since.map(|since| since + limits.write),
            Some(began) => Some(began + limits.head),
            None => Some(self.quiet_since + limits.idle),
        }
    }

    fn bytes_came(&mut self, bytes: &[u8], now: Instant) {
        if self.in_flight == 0 && !self.is_multiplexed && self.head_began.is_none() {
            self.is_multiplexed = bytes.starts_with(PREFACE);
            self.head_began = (!self.is_multiplexed).then_some(now);
        }
    }

    fn bytes_went(&mut self, now: Instant) {
        // HTTP/2 sends frames of its own, which show no activity of the client.
        if !self.is_multiplexed {
            self.quiet_since = now;
        }
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.with(|phase| phase.ended(Instant::now()));
    }
}

impl Drop for HeldHead {
    fn drop(&mut self) {
        self.activity.with(|phase| phase.head_bytes -= self.bytes);
    }
}

impl Transfer {
    /// Records that a piece waits to be sent.
    pub(super) fn piece_began(&self) {
        if self.activity.with(|phase| phase.piece_began(self.number, Instant::now())) {
            self.activity.0.unsent_began.notify_one();
        }
    }

    /// Records that a piece was written to the socket, or dropped with its stream.
    pub(super) fn piece_ended(&self) {
        self.activity.with(|phase| phase.piece_ended(self.number, Instant::now()));
    }
}

/// Stream that reports the bytes read and written.
#[derive(Debug)]
pub(super) struct MonitoredIo<Io> {
    pub(super) io: Io,
    pub(super) activity: Activity,
}

impl<Io: AsyncRead + Unpin> AsyncRead for MonitoredIo<Io> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let before = buf.filled().len();
        let read = ready!(Pin::new(&mut self.io).poll_read(cx, buf));
        if let Some(fresh) = buf.filled().get(before..).filter(|fresh| !fresh.is_empty()) {
            self.activity.with(|phase| phase.bytes_came(fresh, Instant::now()));
        }
        Poll::Ready(read)
    }
}

impl<Io: AsyncWrite + Unpin> AsyncWrite for MonitoredIo<Io> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        let wrote = ready!(Pin::new(&mut self.io).poll_write(cx, bytes));
        self.activity.with(|phase| phase.bytes_went(Instant::now()));
        Poll::Ready(wrote)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[std::io::IoSlice<'_>],
    ) -> Poll<std::io::Result<usize>> {
        let wrote = ready!(Pin::new(&mut self.io).poll_write_vectored(cx, slices));
        self.activity.with(|phase| phase.bytes_went(Instant::now()));
        Poll::Ready(wrote)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn limits() -> Limits {
        Limits {
            head: Duration::from_secs(10),
            idle: Duration::from_secs(60),
            write: Duration::from_secs(30),
            ..Limits::default()
        }
    }

    #[test]
    fn each_step_of_a_connection_has_its_own_end() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut phase = Phase::new(false, start);
        assert_eq!(phase.ends_at(&limits()), Some(at(60)));
        phase.bytes_came(b"P", at(30));
        assert_eq!(phase.ends_at(&limits()), Some(at(40)));
        // More bytes of the head do not extend the deadline.
        phase.bytes_came(b"OST", at(35));
        assert_eq!(phase.ends_at(&limits()), Some(at(40)));
        phase.began(Version::HTTP_11);
        phase.bytes_came(b"{}", at(36));
        assert_eq!((phase.ends_at(&limits()), phase.head_began), (None, None));
        phase.ended(at(135));
        assert_eq!(phase.ends_at(&limits()), Some(at(195)));
        phase.bytes_went(at(140));
        assert_eq!(phase.ends_at(&limits()), Some(at(200)));
        phase.bytes_came(b"G", at(150));
        assert_eq!(phase.ends_at(&limits()), Some(at(160)));
    }

    #[test]
    fn http_2_is_idle_whatever_its_frames_say() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        for is_known in [true, false] {
            let mut phase = Phase::new(is_known, start);
            phase.bytes_came(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", at(1));
            phase.bytes_came(b"ping", at(30));
            phase.bytes_went(at(30));
            assert_eq!(phase.ends_at(&limits()), Some(at(60)));
            phase.began(Version::HTTP_2);
            phase.began(Version::HTTP_2);
            phase.ended(at(31));
            assert_eq!(phase.ends_at(&limits()), None);
            phase.ended(at(32));
            assert_eq!(phase.ends_at(&limits()), Some(at(92)));
        }
    }

    #[test]
    fn only_the_progress_of_a_response_postpones_its_end() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut phase = Phase::new(true, start);
        phase.began(Version::HTTP_2);
        phase.began(Version::HTTP_2);
        assert_eq!(phase.ends_at(&limits()), None);
        assert!(phase.piece_began(1, at(5)));
        assert!(!phase.piece_began(1, at(6)));
        assert_eq!(phase.ends_at(&limits()), Some(at(35)));
        phase.bytes_came(b"ping", at(20));
        phase.bytes_went(at(20));
        assert_eq!(phase.ends_at(&limits()), Some(at(35)));
        // Progress of another response does not count.
        phase.piece_began(2, at(21));
        phase.piece_ended(2, at(22));
        assert_eq!(phase.ends_at(&limits()), Some(at(35)));
        phase.piece_ended(1, at(30));
        assert_eq!(phase.ends_at(&limits()), Some(at(60)));
        // A response without data to send does not require the client to read.
        phase.piece_ended(1, at(31));
        assert_eq!(phase.ends_at(&limits()), None);
    }

    #[test]
    fn headers_of_a_connection_are_bounded() {
        let activity = Activity::new(true);
        let first = activity.hold_head(MAX_HEAD_BYTES_IN_FLIGHT + 1);
        assert!(first.is_some() && activity.hold_head(1).is_none());
        drop(first);
        let _most = activity.hold_head(MAX_HEAD_BYTES_IN_FLIGHT - 10);
        assert!(activity.hold_head(11).is_none() && activity.hold_head(10).is_some());
    }
}
