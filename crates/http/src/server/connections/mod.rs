//! Accepts connections up to the limits and serves HTTP/1.1 or HTTP/2 on each.
//!
//! Connections are closed when they are idle, when their clients do not read, or when the server stops. On shutdown,
//! requests in flight are drained for a while.
//!
//! * `activity`: decides when a connection is closed
//! * `sending`: tracks the sending of responses
//! * `unsent`: bounds the bytes that wait to be sent to a caller or on a connection
//! * `unsent_total`: bounds those of all connections
//! * `addresses`: bounds the connections of each address

mod activity;
mod addresses;
mod sending;
mod unsent;
mod unsent_total;

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
use axum::http::uri::Scheme;
use axum::http::{HeaderMap, Request, Response, StatusCode, header};
use axum::response::IntoResponse;
use hyper::body::{Body as _, Incoming};
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

pub(crate) use self::sending::HeldUntilSent;
pub(crate) use self::unsent::{MAX_UNSENT_OF_CALLER, TooMuchUnsent, UnsentBudget};

use self::activity::{Activity, InFlight, MonitoredIo, Transfer};
use self::addresses::{AddressSlot, Addresses};
use self::sending::SentBody;
use self::unsent::MAX_UNSENT_WITHOUT_CALLER;
use self::unsent_total::{UnsentOfConnection, UnsentTotal};
use super::forwarded::TrustedProxies;
use super::limits::{Limits, MAX_HEAD_BYTES, MAX_HEADERS, allowed_connections};
use super::tls::Tls;

/// Maximum number of concurrent HTTP/2 streams per connection; the protocol recommends at least 100.
const MAX_STREAMS: u32 = 100;

/// Maximum bytes of a response that HTTP/2 buffers ahead of its client.
const MAX_SEND_BUFFER: usize = 64 * 1024;

/// Maximum unsent bytes of all connections for responses that belong to no caller: with authentication, and without it,
/// where all responses do.
const MAX_TOTAL_WITHOUT_CALLER: usize = 16 * 1024 * 1024;
const MAX_TOTAL_UNAUTHENTICATED: usize = 128 * 1024 * 1024;

/// HTTP/2: maximum number of streams that a client has reset before they were accepted, and of streams that the
/// server has reset because of a client error. Beyond them the connection ends with `ENHANCE_YOUR_CALM`.
const MAX_PENDING_RESETS: usize = 20;
const MAX_ERROR_RESETS: usize = 100;

/// Minimum time between two warnings about refused connections of an address.
const REFUSAL_LOG_INTERVAL: Duration = Duration::from_secs(60);

/// Flow-control windows of HTTP/2 in bytes: for the request body of one stream, and for a connection.
const STREAM_WINDOW: u32 = 64 * 1024;
const CONNECTION_WINDOW: u32 = 256 * 1024;

/// Interval of PING frames to a silent HTTP/2 client, and the timeout of their answers.
const PING_INTERVAL: Duration = Duration::from_secs(20);
const PING_TIMEOUT: Duration = Duration::from_secs(20);

/// Minimum and maximum backoff after a failed `accept`; it doubles each time.
const MIN_BACKOFF: Duration = Duration::from_millis(50);
const MAX_BACKOFF: Duration = Duration::from_secs(1);

/// Timeout of connections that are shutting down.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(1);

/// Settings shared by all connections.
#[derive(Debug, Clone)]
pub(crate) struct Connections {
    pub(crate) app: Router,
    pub(crate) limits: Limits,
    /// Trusted proxies, with connections that are not counted by address.
    pub(crate) proxies: TrustedProxies,
    pub(crate) unsent: UnsentLimits,
    pub(crate) tls: Option<Tls>,
    /// Cancelled to stop accepting requests.
    pub(crate) stop: CancellationToken,
    /// Cancelled to drop the calls in flight.
    pub(crate) drop_calls: CancellationToken,
}

/// Limits of the unsent responses that belong to no caller.
#[derive(Debug, Clone)]
pub(crate) struct UnsentLimits {
    /// Maximum unsent bytes of each connection.
    connection: u32,
    total: UnsentTotal,
}

impl UnsentLimits {
    /// Returns the limits of a server whose records have callers.
    pub(crate) fn authenticated() -> Self {
        Self { connection: MAX_UNSENT_WITHOUT_CALLER, total: UnsentTotal::new(MAX_TOTAL_WITHOUT_CALLER) }
    }

    /// Returns the limits of a server without authentication, where each connection counts as a caller.
    pub(crate) fn unauthenticated() -> Self {
        Self { connection: MAX_UNSENT_OF_CALLER, total: UnsentTotal::new(MAX_TOTAL_UNAUTHENTICATED) }
    }

    fn of_connection(&self, hang_up: &CancellationToken) -> Unsent {
        let counted = self.total.connection(hang_up.clone());
        Unsent { budget: UnsentBudget::new(self.connection), counted }
    }
}

/// Unsent bytes of one connection for responses that belong to no caller. Cheap to clone.
#[derive(Debug, Clone)]
struct Unsent {
    budget: UnsentBudget,
    counted: UnsentOfConnection,
}

impl Connections {
    /// Creates the settings of a listener without callers, TLS and trusted proxies.
    pub(crate) fn without_callers(app: Router, limits: Limits, stop: CancellationToken) -> Self {
        Self {
            app,
            limits,
            proxies: TrustedProxies::default(),
            unsent: UnsentLimits::authenticated(),
            tls: None,
            stop,
            drop_calls: CancellationToken::new(),
        }
    }

    /// Accepts connections until the server is stopped; then drains the requests in flight for a while and drops the
    /// rest.
    pub(crate) async fn serve(self, listener: TcpListener) {
        let max_connections = allowed_connections(self.limits.connections);
        let slots =
            Arc::new(Semaphore::new(usize::try_from(max_connections).unwrap_or(Semaphore::MAX_PERMITS)));
        let (open, hang_up) = (TaskTracker::new(), CancellationToken::new());
        let addresses = Addresses::new(self.limits.connections_per_address, self.proxies.clone());
        let (mut warned, mut refused_logged_at) = (false, None);
        loop {
            if !warned && slots.available_permits() == 0 {
                warned = true;
                tracing::warn!(
                    connections = max_connections,
                    "all connections are taken; more clients wait until one ends"
                );
            }
            let taken = async {
                let slot = Arc::clone(&slots).acquire_owned().await;
                (slot, accept_with_backoff(&listener).await)
            };
            let (slot, (stream, peer)) = tokio::select! {
                () = self.stop.cancelled() => break,
                taken = taken => taken,
            };
            let Some(address_slot) = addresses.slot(peer.ip()) else {
                // The connection is closed without a response, which needs no memory.
                drop(stream);
                self.log_refused(peer, &mut refused_logged_at);
                continue;
            };
            let connection = Connection { of: self.clone(), peer, hang_up: hang_up.child_token() };
            // The slot of the address is released before the next connection is accepted.
            open.spawn(connection.run(stream, (address_slot, slot.ok())));
        }
        // New connections are refused from here on.
        drop(listener);
        open.close();
        let ended = timeout(self.limits.drain, open.wait()).await;
        self.drop_calls.cancel();
        if ended.is_err() && timeout(SHUTDOWN_TIMEOUT, open.wait()).await.is_err() {
            hang_up.cancel();
            let _ = timeout(SHUTDOWN_TIMEOUT, open.wait()).await;
        }
    }

    fn log_refused(&self, peer: SocketAddr, logged_at: &mut Option<Instant>) {
        if logged_at.is_none_or(|at| at.elapsed() >= REFUSAL_LOG_INTERVAL) {
            *logged_at = Some(Instant::now());
            tracing::warn!(
                address = %peer.ip(),
                connections = self.limits.connections_per_address,
                "an address has too many connections; more of them are refused. Name a proxy in http.trusted_proxies, or raise http.max_connections_per_address"
            );
        }
    }
}

/// Accepts the next connection. Retries with backoff while the system has no free file descriptors.
async fn accept_with_backoff(listener: &TcpListener) -> (TcpStream, SocketAddr) {
    let mut backoff = None;
    loop {
        match listener.accept().await {
            Ok(accepted) => return accepted,
            Err(error) if is_aborted_by_client(&error) => {}
            Err(error) => {
                let wait = backoff.map_or(MIN_BACKOFF, |backoff: Duration| (backoff * 2).min(MAX_BACKOFF));
                if backoff.is_none() {
                    tracing::error!(%error, "no more connections can be accepted; new clients wait");
                }
                backoff = Some(wait);
                sleep(wait).await;
            }
        }
    }
}

/// Returns true if the client closed the connection before it was accepted.
fn is_aborted_by_client(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

struct Connection {
    of: Connections,
    peer: SocketAddr,
    hang_up: CancellationToken,
}

impl Connection {
    /// Serves one connection until it ends; its slots are released then.
    async fn run(self, stream: TcpStream, _slots: (AddressSlot, Option<OwnedSemaphorePermit>)) {
        // Sends small responses without delay (Nagle's algorithm off).
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "TCP_NODELAY");
        }
        let Some(tls) = &self.of.tls else { return self.serve_http(stream, false).await };
        let handshake = timeout(self.of.limits.handshake, tls.accept(stream));
        let stream = tokio::select! {
            () = self.of.stop.cancelled() => return,
            shaken = handshake => match shaken {
                Ok(Ok(stream)) => stream,
                // Port scanners cause such errors, so they are not logged as warnings.
                Ok(Err(error)) => return tracing::debug!(%error, "no TLS connection"),
                Err(_late) => return tracing::debug!("no TLS connection in time"),
            },
        };
        let is_http_2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
        self.serve_http(stream, is_http_2).await;
    }

    async fn serve_http<Io>(&self, io: Io, is_http_2: bool)
    where
        Io: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let activity = Activity::new(is_http_2);
        let unsent = self.of.unsent.of_connection(&self.hang_up);
        let (app, peer, seen) = (self.of.app.clone(), self.peer, activity.clone());
        let scheme = if self.of.tls.is_some() { Scheme::HTTPS } else { Scheme::HTTP };
        let service = service_fn(move |request: Request<Incoming>| {
            let (app, seen, unsent, scheme) = (app.clone(), seen.clone(), unsent.clone(), scheme.clone());
            // Counted before the request waits for anything.
            let in_flight = seen.began(request.version());
            // On the heap, so that a stream whose response waits to be sent takes little memory.
            Box::pin(async move {
                let mut request = request;
                request.extensions_mut().insert(ConnectInfo(peer));
                request.extensions_mut().insert(scheme);
                let response = answer(app, request, &seen).await;
                Ok::<_, Infallible>(sent(response, seen.transfer(), in_flight, &unsent).await)
            })
        });
        let builder = builder();
        let watched = MonitoredIo { io, activity: activity.clone() };
        let mut connection = pin!(builder.serve_connection(TokioIo::new(watched), service));
        let limits = &self.of.limits;
        let mut timer = pin!(sleep(limits.head.min(limits.idle)));
        let mut is_shutting_down = false;
        loop {
            let ended_or_late = poll_fn(|cx| {
                if connection.as_mut().poll(cx).is_ready() {
                    return Poll::Ready(None);
                }
                let Some(end) = activity.ends_at(limits) else { return Poll::Pending };
                // A timer that elapses too early is set again.
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
                    // The connection is already shutting down, its request is incomplete, or its client does not
                    // read.
                    Some(_) if is_shutting_down || activity.has_partial_head() || activity.has_unsent() => return,
                    Some(_) => {
                        connection.as_mut().graceful_shutdown();
                        // GOAWAY and the end of a response take little time.
                        let _ = timeout(SHUTDOWN_TIMEOUT, connection.as_mut()).await;
                        return;
                    }
                },
                () = self.of.stop.cancelled(), if !is_shutting_down => {
                    if activity.has_partial_head() {
                        return;
                    }
                    is_shutting_down = true;
                    connection.as_mut().graceful_shutdown();
                }
                () = self.hang_up.cancelled() => return,
                () = activity.unsent_began() => {}
            }
        }
    }
}

/// Answers a request, or refuses it if it has too many headers. HTTP/1 has checked their number before.
async fn answer(mut app: Router, request: Request<Incoming>, activity: &Activity) -> Response<Body> {
    if request.headers().len() > MAX_HEADERS {
        return StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE.into_response();
    }
    let Some(_head) = activity.hold_head(head_bytes(&request)) else {
        return too_many("The requests on this connection have too many header bytes; wait for responses.\n");
    };
    let Ok(response) = app.call(request.map(Body::new)).await;
    response
}

/// Returns the header bytes of a request as HTTP/2 counts them (RFC 9113, 6.5.2).
fn head_bytes<T>(request: &Request<T>) -> usize {
    let uri = request.uri();
    let uri = uri.path().len() + uri.query().map_or(0, str::len);
    let size = |headers: &HeaderMap| -> usize {
        headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 32).sum()
    };
    uri + size(request.headers())
}

fn too_many(problem: &'static str) -> Response<Body> {
    (StatusCode::TOO_MANY_REQUESTS, [(header::RETRY_AFTER, "1")], problem).into_response()
}

/// Returns the response with a body that reports its progress, or a refusal if too many responses wait to be read.
async fn sent(
    mut response: Response<Body>,
    transfer: Transfer,
    in_flight: InFlight,
    unsent: &Unsent,
) -> Response<Body> {
    let mut watched = sending::Response::new(transfer, in_flight);
    let bytes = response.body().size_hint().exact().and_then(|bytes| usize::try_from(bytes).ok());
    let bytes = bytes.unwrap_or_default();
    match response.extensions_mut().remove::<HeldUntilSent>() {
        Some(held) => watched = watched.holding(held),
        None => {
            watched = watched.counted(unsent.counted.count(bytes));
            match unsent.budget.reserve(bytes).await {
                Ok(share) => watched = watched.with_share(share),
                Err(TooMuchUnsent) => {
                    response = too_many("Too many responses wait on this connection; read them first.\n");
                }
            }
        }
    }
    response.map(|body| Body::new(SentBody::new(body, watched)))
}

/// Returns the protocol settings for HTTP/1.1 and HTTP/2.
fn builder() -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    // The timeout for request heads is enforced by [`Activity`], which distinguishes an idle connection from an
    // incomplete head.
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(None)
        .max_buf_size(usize::from(MAX_HEAD_BYTES));
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(MAX_STREAMS)
        .max_send_buf_size(MAX_SEND_BUFFER)
        .max_pending_accept_reset_streams(MAX_PENDING_RESETS)
        .max_local_error_reset_streams(MAX_ERROR_RESETS)
        .max_header_list_size(u32::from(MAX_HEAD_BYTES))
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .keep_alive_interval(PING_INTERVAL)
        .keep_alive_timeout(PING_TIMEOUT);
    builder
}
