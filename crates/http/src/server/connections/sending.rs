//! Body of a response while it is being sent.
//!
//! A body is passed to the protocol in pieces of at most 16 KiB. The protocol drops a piece after writing it to the
//! socket, which shows how much the client reads, regardless of what it sends. The resources of a response (the
//! permit of its call, its share of unsent bytes, its place in the connection's count) are released with its last
//! piece.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::body::{Body, Bytes, HttpBody};
use fetchwell_core::saturate::saturated;
use hyper::body::{Frame, SizeHint};
use tokio::sync::OwnedSemaphorePermit;

use super::activity::{InFlight, Transfer};
use super::unsent::UnsentShare;
use super::unsent_total::CountedUnsent;

/// Maximum size of a piece in bytes. A client that reads less within the write timeout loses its connection.
const PIECE_BYTES: usize = 16 * 1024;

/// Concurrency permit and unsent bytes that a response to a caller holds until it is sent; stored as an extension of
/// the response.
#[derive(Debug, Clone)]
pub(crate) struct HeldUntilSent {
    _permit: Arc<OwnedSemaphorePermit>,
    _share: Option<Arc<UnsentShare>>,
}

impl HeldUntilSent {
    pub(crate) fn new(permit: Arc<OwnedSemaphorePermit>, share: Option<UnsentShare>) -> Self {
        Self { _permit: permit, _share: share.map(Arc::new) }
    }
}

/// Resources that a response holds until its last piece is sent.
#[derive(Debug)]
pub(super) struct Response {
    transfer: Transfer,
    _in_flight: InFlight,
    _held: Option<HeldUntilSent>,
    _share: Option<UnsentShare>,
    _counted: Option<CountedUnsent>,
}

impl Response {
    pub(super) fn new(transfer: Transfer, in_flight: InFlight) -> Self {
        Self { transfer, _in_flight: in_flight, _held: None, _share: None, _counted: None }
    }

    /// Adds the permit and the unsent bytes of a caller's call.
    pub(super) fn holding(self, held: HeldUntilSent) -> Self {
        Self { _held: Some(held), ..self }
    }

    /// Adds a share of the connection's unsent bytes.
    pub(super) fn with_share(self, share: UnsentShare) -> Self {
        Self { _share: Some(share), ..self }
    }

    /// Adds the bytes that are counted for all connections.
    pub(super) fn counted(self, counted: CountedUnsent) -> Self {
        Self { _counted: Some(counted), ..self }
    }
}

/// Response body that is passed on in pieces, each of which reports when it is sent.
#[derive(Debug)]
pub(super) struct SentBody {
    inner: Body,
    /// Bytes received from `inner` and not passed on yet.
    rest: Bytes,
    response: Arc<Response>,
}

impl SentBody {
    pub(super) fn new(inner: Body, response: Response) -> Self {
        Self { inner, rest: Bytes::new(), response: Arc::new(response) }
    }
}

impl HttpBody for SentBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.rest.is_empty() {
            match ready!(Pin::new(&mut self.inner).poll_frame(cx)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(bytes) => self.rest = bytes,
                    Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
                },
                end => return Poll::Ready(end),
            }
        }
        let length = self.rest.len().min(PIECE_BYTES);
        let bytes = self.rest.split_to(length);
        let piece = Piece::new(bytes, Arc::clone(&self.response));
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_owner(piece)))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let rest = saturated::<u64>(self.rest.len());
        let inner = self.inner.size_hint();
        let mut hint = SizeHint::new();
        if let Some(upper) = inner.upper() {
            hint.set_upper(upper.saturating_add(rest));
        }
        hint.set_lower(inner.lower().saturating_add(rest));
        hint
    }
}

/// Piece of a response body, dropped when the protocol has written it.
#[derive(Debug)]
struct Piece {
    bytes: Bytes,
    response: Arc<Response>,
}

impl Piece {
    fn new(bytes: Bytes, response: Arc<Response>) -> Self {
        response.transfer.piece_began();
        Self { bytes, response }
    }
}

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        self.response.transfer.piece_ended();
    }
}

#[cfg(test)]
mod tests {
    use axum::http::Version;
    use http_body_util::BodyExt;
    use tokio::sync::Semaphore;

    use super::*;
    use crate::server::connections::activity::Activity;

    #[tokio::test]
    async fn response_resources_are_released_with_the_last_piece() {
        let permits = Arc::new(Semaphore::new(1));
        let permit = Arc::new(Arc::clone(&permits).try_acquire_owned().unwrap());
        let activity = Activity::new(true);
        let text = "x".repeat(PIECE_BYTES * 2 + 1);
        let in_flight = activity.began(Version::HTTP_2);
        let response =
            Response::new(activity.transfer(), in_flight).holding(HeldUntilSent::new(permit, None));
        let mut body = SentBody::new(Body::from(text.clone()), response);
        assert_eq!(body.size_hint().exact(), Some(text.len() as u64));
        let mut pieces = Vec::new();
        while let Some(frame) = body.frame().await {
            pieces.push(frame.unwrap().into_data().unwrap());
            let left = text.len() - pieces.iter().map(Bytes::len).sum::<usize>();
            assert_eq!(body.size_hint().exact(), Some(left as u64));
            assert_eq!(body.is_end_stream(), left == 0);
        }
        assert_eq!(pieces.iter().map(Bytes::len).collect::<Vec<_>>(), [PIECE_BYTES, PIECE_BYTES, 1]);
        assert_eq!(pieces.concat(), text.as_bytes());
        drop(body);
        // A slice of a piece keeps the whole piece.
        let last = pieces.pop().unwrap().slice(0..1);
        drop(pieces);
        assert_eq!((permits.available_permits(), activity.has_unsent()), (0, true));
        drop(last);
        assert_eq!((permits.available_permits(), activity.has_unsent()), (1, false));
    }
}
