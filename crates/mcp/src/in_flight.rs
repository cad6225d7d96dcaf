//! Backpressure for requests over stdio.
//!
//! A request holds permits from its dispatch until its response is written, and a cancelled request until its call
//! has ended. While all permits are in use, further requests wait as unparsed lines, up to `MAX_WAITING_BYTES`.
//! Beyond that nothing is read, and the client's pipe fills. Notifications do not wait, so a client can cancel a
//! request that is in flight or waits.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use fetchwell_core::saturate::saturated;
use rmcp::RoleServer;
use rmcp::model::{ErrorData, RequestId};
use rmcp::service::TxJsonRpcMessage;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Maximum number of requests in flight.
pub(crate) const MAX_IN_FLIGHT: u32 = 64;

/// Size of a request, in bytes, per permit. Longer requests take more permits, so that all requests in flight
/// together have at most 64 * 64 KiB = 4 MiB, or are a single line.
const BYTES_PER_PERMIT: usize = 64 * 1024;

/// Maximum size of lines that wait for a permit, in bytes. The line that exceeds it still waits, but the next one is
/// not read.
const MAX_WAITING_BYTES: usize = 1024 * 1024;

/// Memory of a waiting line besides its text, in bytes, rounded up.
const WAITING_OVERHEAD: usize = 512;

/// The permits of one request. Clones share them.
#[derive(Debug, Clone)]
pub(crate) struct RequestPermit {
    _permits: Arc<OwnedSemaphorePermit>,
}

/// The requests that were dispatched and not answered yet.
#[derive(Debug)]
pub(crate) struct InFlight {
    permits: Arc<Semaphore>,
    unanswered: HashMap<RequestId, RequestPermit>,
}

impl Default for InFlight {
    fn default() -> Self {
        let permits = Arc::new(Semaphore::new(MAX_IN_FLIGHT as usize));
        Self { permits, unanswered: HashMap::new() }
    }
}

impl InFlight {
    /// Waits for the permits of a line of this size. Cancelling the wait takes no permit. Returns `None` at shutdown.
    pub(crate) fn permit(&self, bytes: usize) -> impl Future<Output = Option<RequestPermit>> + use<> {
        let permits = Arc::clone(&self.permits);
        let count = saturated::<u32>(bytes.div_ceil(BYTES_PER_PERMIT));
        async move {
            let acquired = permits.acquire_many_owned(count.clamp(1, MAX_IN_FLIGHT)).await.ok()?;
            Some(RequestPermit { _permits: Arc::new(acquired) })
        }
    }

    /// Stores the permit of a request until its response is written or the request is cancelled.
    pub(crate) fn insert(&mut self, id: RequestId, permit: RequestPermit) {
        self.unanswered.insert(id, permit);
    }

    /// Removes and returns the permit of the request that a message answers.
    pub(crate) fn take_answered(&mut self, message: &TxJsonRpcMessage<RoleServer>) -> Option<RequestPermit> {
        let id = match message {
            TxJsonRpcMessage::<RoleServer>::Response(response) => Some(&response.id),
            TxJsonRpcMessage::<RoleServer>::Error(error) => error.id.as_ref(),
            _ => None,
        };
        self.unanswered.remove(id?)
    }

    /// Removes a request that will not be answered. Its call holds a clone of the permit until it ends. Returns true
    /// if the request was in flight.
    pub(crate) fn cancel(&mut self, id: &RequestId) -> bool {
        self.unanswered.remove(id).is_some()
    }
}

/// A line that requires a response and waits for a permit.
#[derive(Debug)]
pub(crate) enum WaitingLine {
    /// A request, of which only the id was parsed.
    Request {
        /// Id of the request.
        id: RequestId,
        /// Text of the line.
        line: Vec<u8>,
    },
    /// A line that is rejected.
    Refused {
        /// Error of the response.
        error: Box<ErrorData>,
        /// Id of the request, if it is known.
        id: Option<RequestId>,
    },
}

impl WaitingLine {
    fn bytes(&self) -> usize {
        match self {
            Self::Request { line, .. } => line.len(),
            Self::Refused { .. } => 0,
        }
    }
}

/// Lines that wait for a permit, in the order of their arrival.
#[derive(Debug, Default)]
pub(crate) struct WaitingLines {
    lines: VecDeque<WaitingLine>,
    bytes: usize,
}

impl WaitingLines {
    /// Returns the length of the first line in bytes, or `None` if no line waits.
    pub(crate) fn first_bytes(&self) -> Option<usize> {
        self.lines.front().map(WaitingLine::bytes)
    }

    /// Returns true if another line may be read.
    pub(crate) fn has_room(&self) -> bool {
        self.bytes < MAX_WAITING_BYTES
    }

    pub(crate) fn push(&mut self, line: WaitingLine) {
        self.bytes += line.bytes() + WAITING_OVERHEAD;
        self.lines.push_back(line);
    }

    /// Removes and returns the first line.
    pub(crate) fn pop(&mut self) -> Option<WaitingLine> {
        let line = self.lines.pop_front()?;
        self.bytes -= line.bytes() + WAITING_OVERHEAD;
        Some(line)
    }

    /// Removes a waiting request that was cancelled. It needs no response.
    pub(crate) fn cancel(&mut self, cancelled: &RequestId) {
        self.lines.retain(|line| match line {
            WaitingLine::Request { id, .. } => id != cancelled,
            WaitingLine::Refused { .. } => true,
        });
        self.bytes = self.lines.iter().map(|line| line.bytes() + WAITING_OVERHEAD).sum();
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    fn request(id: i64, bytes: usize) -> WaitingLine {
        WaitingLine::Request { id: RequestId::Number(id), line: vec![b' '; bytes] }
    }

    #[test]
    fn long_requests_take_more_permits() {
        let in_flight = InFlight::default();
        let half = in_flight.permit(2 * 1024 * 1024).now_or_never().unwrap();
        let rest: Vec<_> = (0..32).map(|_| in_flight.permit(100).now_or_never().unwrap()).collect();
        assert!(in_flight.permit(1).now_or_never().is_none());
        drop((half, rest));
        // A line longer than the total of all permits is dispatched alone.
        let whole = in_flight.permit(100 * 1024 * 1024).now_or_never().unwrap();
        assert!(in_flight.permit(0).now_or_never().is_none());
        drop(whole);
        assert!(in_flight.permit(0).now_or_never().is_some());
    }

    #[test]
    fn waiting_lines_are_bounded_in_bytes_and_can_be_cancelled() {
        let mut waiting = WaitingLines::default();
        for id in 0..4 {
            assert!(waiting.has_room());
            waiting.push(request(id, 300_000));
        }
        assert!(!waiting.has_room());
        waiting.cancel(&RequestId::Number(0));
        assert!(waiting.has_room());
        for id in 1..4 {
            assert!(
                matches!(waiting.pop(), Some(WaitingLine::Request { id: RequestId::Number(n), .. }) if n == id)
            );
        }
        assert_eq!((waiting.first_bytes(), waiting.bytes), (None, 0));
    }
}
