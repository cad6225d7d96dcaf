//! Connections: taken in up to a limit, HTTP/1.1 or HTTP/2 spoken on each, and ended when nothing happens on them or the
//! server stops.

use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::{Request, Response, StatusCode};
use axum::response::IntoResponse;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::Service;

use super::activity::{Activity, Watched};
use super::limits::{HEAD_BYTES, HEADERS_MOST, Limits, affordable};
use super::tls::Tls;

/// Requests at a time on one connection of HTTP/2.
const STREAMS_MOST: u32 = 128;

/// Bytes of bodies that HTTP/2 takes in before somebody reads them: of one request, and of a connection.
const STREAM_WINDOW: u32 = 64 * 1024;
const CONNECTION_WINDOW: u32 = 256 * 1024;

/// How often a silent client of HTTP/2 is asked whether it is there, and how long it may take to say so.
const PING_EVERY: Duration = Duration::from_secs(20);
const PING_WAIT: Duration = Duration::from_secs(20);

/// How long the server leaves clients alone when the system gives it no more connections: doubled each time.
const PAUSE_LEAST: Duration = Duration::from_millis(50);
const PAUSE_MOST: Duration = Duration::from_secs(1);

/// How long connections may take to end when they were told to.
const GOODBYE: Duration = Duration::from_secs(1);

/// What every connection needs.
#[derive(Debug, Clone)]
pub(super) struct Connections {
    pub(super) app: Router,
    pub(super) limits: Limits,
    pub(super) tls: Option<Tls>,
    /// No more requests are taken.
    pub(super) stop: CancellationToken,
    /// Calls in flight are dropped.
    pub(super) drop_calls: CancellationToken,
}

impl Connections {
    /// Takes connections in until the server is stopped; then requests in flight are answered for a while, and
    /// dropped.
    pub(super) async fn serve(self, listener: TcpListener) {
        let most = affordable(self.limits.connections);
        let slots = Arc::new(Semaphore::new(usize::try_from(most).unwrap_or(Semaphore::MAX_PERMITS)));
        let (open, hang_up) = (TaskTracker::new(), CancellationToken::new());
        let mut warned = false;
        loop {
            if !warned && slots.available_permits() == 0 {
                warned = true;
                tracing::warn!(
                    connections = most,
                    "all connections are taken; more clients wait until one ends"
                );
            }
            let taken = async {
                let slot = Arc::clone(&slots).acquire_owned().await;
                (slot, accepted(&listener).await)
            };
            let (slot, (stream, peer)) = tokio::select! {
                () = self.stop.cancelled() => break,
                taken = taken => taken,
            };
            let connection = Connection { of: self.clone(), peer, hang_up: hang_up.clone() };
            open.spawn(connection.run(stream, slot.ok()));
        }
        // Whoever comes now is refused.
        drop(listener);
        open.close();
        let ended = timeout(self.limits.drain, open.wait()).await;
        self.drop_calls.cancel();
        if ended.is_err() && timeout(GOODBYE, open.wait()).await.is_err() {
            hang_up.cancel();
            let _ = timeout(GOODBYE, open.wait()).await;
        }
    }
}

/// The next connection, however long the system takes to give one.
async fn accepted(listener: &TcpListener) -> (TcpStream, SocketAddr) {
    let mut pause = None;
    loop {
        match listener.accept().await {
            Ok(accepted) => return accepted,
            Err(error) if left_again(&error) => {}
            Err(error) => {
                let wait = pause.map_or(PAUSE_LEAST, |pause: Duration| (pause * 2).min(PAUSE_MOST));
                if pause.is_none() {
                    tracing::error!(%error, "the system gives no more connections; clients wait");
                }
                pause = Some(wait);
                sleep(wait).await;
            }
        }
    }
}

/// Whether a client went before it was taken in.
fn left_again(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

struct Connection {
    of: Connections,
    peer: SocketAddr,
    hang_up: CancellationToken,
}

impl Connection {
    /// Serves one connection to its end; its slot is free again then.
    async fn run(self, stream: TcpStream, _slot: Option<OwnedSemaphorePermit>) {
        // Small replies go out at once instead of waiting for more.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "TCP_NODELAY");
        }
        let Some(tls) = &self.of.tls else { return self.speak(stream, false).await };
        let handshake = timeout(self.of.limits.handshake, tls.accept(stream));
        let stream = tokio::select! {
            () = self.of.stop.cancelled() => return,
            shaken = handshake => match shaken {
                Ok(Ok(stream)) => stream,
                // Whoever knocks at every door is no news.
                Ok(Err(error)) => return tracing::debug!(%error, "no TLS connection"),
                Err(_late) => return tracing::debug!("no TLS connection in time"),
            },
        };
        let is_http_2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
        self.speak(stream, is_http_2).await;
    }

    async fn speak<Io>(&self, io: Io, is_http_2: bool)
    where
        Io: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let activity = Activity::new(is_http_2);
        let (app, peer, seen) = (self.of.app.clone(), self.peer, activity.clone());
        let service = service_fn(move |mut request: Request<Incoming>| {
            let in_flight = seen.began(request.version());
            let mut app = app.clone();
            async move {
                request.extensions_mut().insert(ConnectInfo(peer));
                let response = answer(&mut app, request).await;
                // It is answered when the body is gone, too.
                let sent = move |body: Body| {
                    Body::new(body.map_err(move |error| {
                        let _until_then = &in_flight;
                        error
                    }))
                };
                Ok::<_, Infallible>(response.map(sent))
            }
        });
        let builder = builder();
        let watched = Watched { io, activity: activity.clone() };
        let mut connection = pin!(builder.serve_connection(TokioIo::new(watched), service));
        let limits = &self.of.limits;
        let mut timer = pin!(sleep(limits.head.min(limits.idle)));
        let mut is_leaving = false;
        loop {
            let ended_or_late = poll_fn(|cx| {
                if connection.as_mut().poll(cx).is_ready() {
                    return Poll::Ready(None);
                }
                let Some(end) = activity.ends_at(limits) else { return Poll::Pending };
                // A timer that is early is set again when it rings.
                if end < timer.deadline() || (timer.is_elapsed() && Instant::now() < end) {
                    timer.as_mut().reset(end);
                }
                timer.as_mut().poll(cx).map(|()| Some(end))
            });
            tokio::select! {
                biased;
                ended_or_late = ended_or_late => match ended_or_late {
                    None => return,
                    Some(end) if Instant::now() < end => {}
                    // It was told to leave already, or never got to say what it wants.
                    Some(_) if is_leaving || activity.is_half_said() => return,
                    Some(_) => {
                        connection.as_mut().graceful_shutdown();
                        // What it still has to say does not take long.
                        let _ = timeout(GOODBYE, connection.as_mut()).await;
                        return;
                    }
                },
                () = self.of.stop.cancelled(), if !is_leaving => {
                    if activity.is_half_said() {
                        return;
                    }
                    is_leaving = true;
                    connection.as_mut().graceful_shutdown();
                }
                () = self.hang_up.cancelled() => return,
            }
        }
    }
}

/// The answer of the program, which is not asked when there are too many headers. HTTP/1 has counted them by then.
async fn answer(app: &mut Router, request: Request<Incoming>) -> Response<Body> {
    if request.headers().len() > HEADERS_MOST {
        return StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE.into_response();
    }
    let Ok(response) = app.call(request.map(Body::new)).await;
    response
}

/// Both versions with their limits. Those on streams that are reset as soon as they are opened are left as they are.
fn builder() -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    // The time for heads is measured on the connection, where waiting for the first byte is told from the others.
    builder.http1().timer(TokioTimer::new()).header_read_timeout(None).max_buf_size(usize::from(HEAD_BYTES));
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS_MOST)
        .max_header_list_size(u32::from(HEAD_BYTES))
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .keep_alive_interval(PING_EVERY)
        .keep_alive_timeout(PING_WAIT);
    builder
}
