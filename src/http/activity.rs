//! What happens on one connection, so that one on which nothing happens, or a request that never gets said, does not hold
//! its place for ever.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use axum::http::Version;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

use super::limits::Limits;

/// What happens on a connection, as the connection, its requests and its timer all see it.
#[derive(Debug, Clone)]
pub(super) struct Activity(Arc<Mutex<Phase>>);

#[derive(Debug)]
struct Phase {
    /// Requests that are not answered to their last byte.
    in_flight: usize,
    /// When the last of them was, or bytes went out after it.
    quiet_since: Instant,
    /// When the first byte of a head came whose last did not.
    head_began: Option<Instant>,
    /// HTTP/2: bytes come that belong to no request.
    is_multiplexed: bool,
}

/// One request, until its answer is sent.
#[derive(Debug)]
pub(super) struct InFlight(Activity);

/// How HTTP/2 begins when nothing was agreed on before. No method of HTTP/1 does.
const PREFACE: &[u8] = b"PRI";

impl Activity {
    pub(super) fn new(is_multiplexed: bool) -> Self {
        Self(Arc::new(Mutex::new(Phase::new(is_multiplexed, Instant::now()))))
    }

    /// A head is whole.
    pub(super) fn began(&self, version: Version) -> InFlight {
        self.with(|phase| phase.began(version));
        InFlight(self.clone())
    }

    /// When the connection has to end if nothing happens until then; never while a request is in flight, which has
    /// limits of its own.
    pub(super) fn ends_at(&self, limits: &Limits) -> Option<Instant> {
        self.with(|phase| phase.ends_at(limits))
    }

    /// Whether a request has begun that nobody knows yet.
    pub(super) fn is_half_said(&self) -> bool {
        self.with(|phase| phase.in_flight == 0 && phase.head_began.is_some())
    }

    fn with<Answer>(&self, look: impl FnOnce(&mut Phase) -> Answer) -> Answer {
        look(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Phase {
    fn new(is_multiplexed: bool, now: Instant) -> Self {
        Self { in_flight: 0, quiet_since: now, head_began: None, is_multiplexed }
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
        match self.head_began {
            _ if self.in_flight > 0 => None,
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
        // HTTP/2 sends bytes of its own, which are no sign of a client.
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

/// A connection that tells what comes and goes.
#[derive(Debug)]
pub(super) struct Watched<Io> {
    pub(super) io: Io,
    pub(super) activity: Activity,
}

impl<Io: AsyncRead + Unpin> AsyncRead for Watched<Io> {
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

impl<Io: AsyncWrite + Unpin> AsyncWrite for Watched<Io> {
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
        Limits { head: Duration::from_secs(10), idle: Duration::from_secs(60), ..Limits::default() }
    }

    #[test]
    fn each_step_of_a_connection_has_its_own_end() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut phase = Phase::new(false, start);
        assert_eq!(phase.ends_at(&limits()), Some(at(60)));
        phase.bytes_came(b"P", at(30));
        assert_eq!(phase.ends_at(&limits()), Some(at(40)));
        // A byte now and then does not make it longer.
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
}
