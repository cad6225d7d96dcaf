//! The stdio transport: a JSON-RPC message per line.
//!
//! The line transport of rmcp sends no response to a line that is not JSON or too long, and its handshake ends at the
//! first message that is not a request, so that a client that made such a mistake waits forever. This transport sends
//! an error. rmcp also reads requests without a limit, even if the client does not read the responses; `InFlight`
//! limits the requests in flight.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::StreamExt;
use rmcp::RoleServer;
use rmcp::model::{ClientNotification, ErrorData, GetExtensions, JsonRpcNotification, RequestId};
use rmcp::service::{RxJsonRpcMessage, ServerInitializeError, TxJsonRpcMessage, serve_server_with_ct};
use rmcp::transport::Transport;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::Mutex;
use tokio_util::codec::{AnyDelimiterCodec, AnyDelimiterCodecError, FramedRead};
use tokio_util::sync::CancellationToken;

use super::Server;
use super::end_of_input::EndOfInput;
use super::in_flight::{InFlight, RequestPermit, WaitingLine, WaitingLines};
use super::message::{NoMessage, outline};

/// Maximum length of a line in bytes. Real requests are less than a thousandth of that.
const MAX_LINE_BYTES: usize = 4 * 1024 * 1024;

/// Serves over standard input and output until the input ends or `stop` is cancelled. Calls in flight then continue as long
/// as one of them is answered each second; the others are dropped.
///
/// # Errors
///
/// The handshake failed.
pub async fn serve_stdio(server: Server, stop: CancellationToken) -> Result<(), String> {
    let (input, output) = rmcp::transport::stdio_pipes();
    let end = Arc::new(EndOfInput::new());
    let transport = LineTransport::new(input, output, Arc::clone(&end));
    match Box::pin(serve_server_with_ct(server, transport, stop)).await {
        Ok(running) => tokio::select! {
            ended = running.waiting() => ended.map(|_reason| ()).map_err(|failed| failed.to_string()),
            () = end.idle() => Ok(()),
        },
        // The client closed the input without a message, or the server is stopped.
        Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => Ok(()),
        Err(ServerInitializeError::InitializeFailed(error)) => Err(error.message.into_owned()),
        Err(_handshake) => Err("the client's handshake failed".to_owned()),
    }
}

struct LineTransport<R, W> {
    lines: FramedRead<R, AnyDelimiterCodec>,
    output: Arc<Mutex<W>>,
    /// True once a request was received. Other messages before it are ignored.
    started: bool,
    /// True after an error of the codec, which ends its stream once and then continues.
    after_error: bool,
    /// True once the end of the input was read.
    has_ended: bool,
    end: Arc<EndOfInput>,
    in_flight: InFlight,
    waiting: WaitingLines,
}

/// The next event of the transport.
enum Event {
    Line(Option<Result<Bytes, AnyDelimiterCodecError>>),
    /// A permit for the first waiting line.
    Permit(RequestPermit),
    /// The input has ended and no line waits, or the server shuts down.
    End,
}

impl<R, W> LineTransport<R, W>
where
    R: AsyncRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send + 'static,
{
    fn new(input: R, output: W, end: Arc<EndOfInput>) -> Self {
        let codec = AnyDelimiterCodec::new_with_max_length(b"\n".to_vec(), b"\n".to_vec(), MAX_LINE_BYTES);
        Self {
            lines: FramedRead::new(input, codec),
            output: Arc::new(Mutex::new(output)),
            started: false,
            after_error: false,
            has_ended: false,
            end,
            in_flight: InFlight::default(),
            waiting: WaitingLines::default(),
        }
    }

    /// Waits for the next event. Cancel safe.
    async fn next_event(&mut self) -> Event {
        let Some(bytes) = self.waiting.first_bytes() else {
            return if self.has_ended { Event::End } else { Event::Line(self.lines.next().await) };
        };
        let can_read = self.waiting.has_room() && !self.has_ended;
        tokio::select! {
            biased;
            permit = self.in_flight.permit(bytes) => permit.map_or(Event::End, Event::Permit),
            line = self.lines.next(), if can_read => Event::Line(line),
        }
    }

    /// Queues a request or an invalid line until there is a permit for it. Returns any other message.
    fn sort(&mut self, line: &[u8]) -> Option<RxJsonRpcMessage<RoleServer>> {
        match read_line(line) {
            InputLine::Waiting(line) => self.waiting.push(line),
            InputLine::Other(message) if self.started => {
                if let Some(id) = cancelled_request(&message) {
                    self.waiting.cancel(id);
                    // rmcp would keep the notification in memory, although there is no call to cancel.
                    if !self.in_flight.cancel(id) {
                        return None;
                    }
                }
                return Some(*message);
            }
            InputLine::Other(_) | InputLine::Nothing => {}
        }
        None
    }

    /// Returns the request of the first waiting line, or responds with its error.
    fn admit(&mut self, permit: RequestPermit) -> Option<RxJsonRpcMessage<RoleServer>> {
        let (error, id) = match self.waiting.pop()? {
            WaitingLine::Refused { error, id } => (error, id),
            WaitingLine::Request { id, line } => match serde_json::from_slice(&line) {
                Ok(RxJsonRpcMessage::<RoleServer>::Request(mut request)) => {
                    self.started = true;
                    // The call drops its extensions when it ends; the response is written later.
                    request.request.extensions_mut().insert(permit.clone());
                    self.in_flight.insert(request.id.clone(), permit);
                    return Some(RxJsonRpcMessage::<RoleServer>::Request(request));
                }
                Ok(other) => return self.started.then_some(other),
                Err(_unreadable) => (unreadable(Some(id.clone())).error, Some(id)),
            },
        };
        let reply = TxJsonRpcMessage::<RoleServer>::error(*error, id);
        let output = Arc::clone(&self.output);
        // Written in a task, because the future of the caller may be dropped, and a part of a line must not be written.
        tokio::spawn(async move {
            let _permit = permit;
            write_line(output, reply).await
        });
        None
    }
}

impl<R, W> Transport<RoleServer> for LineTransport<R, W>
where
    R: AsyncRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send + 'static,
{
    type Error = std::io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), std::io::Error>> + Send + 'static {
        let permit = self.in_flight.take_answered(&message);
        let (output, end) = (Arc::clone(&self.output), Arc::clone(&self.end));
        async move {
            let _permit = permit;
            write_line(output, message).await?;
            end.answered();
            Ok(())
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            let message = match self.next_event().await {
                Event::End => return None,
                Event::Permit(permit) => self.admit(permit),
                Event::Line(None) if self.after_error => {
                    self.after_error = false;
                    None
                }
                Event::Line(None | Some(Err(AnyDelimiterCodecError::Io(_)))) => {
                    self.has_ended = true;
                    self.end.reached();
                    None
                }
                Event::Line(Some(Err(AnyDelimiterCodecError::MaxChunkLengthExceeded))) => {
                    self.after_error = true;
                    let problem = format!("the message is longer than {MAX_LINE_BYTES} bytes");
                    let error = Box::new(ErrorData::invalid_request(problem, None));
                    self.waiting.push(WaitingLine::Refused { error, id: None });
                    None
                }
                Event::Line(Some(Ok(line))) => self.sort(&line),
            };
            if message.is_some() {
                return message;
            }
        }
    }

    async fn close(&mut self) -> Result<(), std::io::Error> {
        // The lock is held while a line is written that the client does not read.
        match self.output.try_lock() {
            Ok(mut output) => output.flush().await,
            Err(_in_use) => Ok(()),
        }
    }
}

/// A line of input, parsed as far as necessary before there is a permit for it.
enum InputLine {
    /// Requires a response.
    Waiting(WaitingLine),
    /// A notification, or a response of the client.
    Other(Box<RxJsonRpcMessage<RoleServer>>),
    /// Requires no response.
    Nothing,
}

fn read_line(line: &[u8]) -> InputLine {
    let line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if line.iter().all(u8::is_ascii_whitespace) {
        return InputLine::Nothing;
    }
    let refused = match outline(line) {
        Ok(Some(id)) => return InputLine::Waiting(WaitingLine::Request { id, line: line.to_vec() }),
        Ok(None) => match serde_json::from_slice(line) {
            Ok(message) => return InputLine::Other(Box::new(message)),
            Err(_unreadable) => unreadable(None),
        },
        Err(no_message) => no_message,
    };
    if refused.needs_no_answer {
        return InputLine::Nothing;
    }
    InputLine::Waiting(WaitingLine::Refused { error: refused.error, id: refused.id })
}

fn unreadable(id: Option<RequestId>) -> NoMessage {
    NoMessage::invalid("the message cannot be read", id)
}

/// Returns the request that a message cancels.
fn cancelled_request(message: &RxJsonRpcMessage<RoleServer>) -> Option<&RequestId> {
    match message {
        RxJsonRpcMessage::<RoleServer>::Notification(JsonRpcNotification {
            notification: ClientNotification::CancelledNotification(cancelled),
            ..
        }) => cancelled.params.request_id.as_ref(),
        _ => None,
    }
}

async fn write_line<W: AsyncWrite + Unpin>(
    output: Arc<Mutex<W>>,
    message: TxJsonRpcMessage<RoleServer>,
) -> Result<(), std::io::Error> {
    let mut line = serde_json::to_vec(&message)?;
    drop(message);
    line.push(b'\n');
    let mut output = output.lock().await;
    output.write_all(&line).await?;
    output.flush().await
}
