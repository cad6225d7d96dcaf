//! The stdio transport: a JSON-RPC message per line.
//!
//! rmcp's own line transport gives no answer to a line that is not JSON, or too long, and its handshake
//! ends at the first message that is no request. A client that made such a mistake waits for ever; here it
//! is told.

use std::sync::Arc;

use futures_util::StreamExt;
use rmcp::RoleServer;
use rmcp::model::{ErrorData, RequestId};
use rmcp::service::{RxJsonRpcMessage, ServerInitializeError, TxJsonRpcMessage, serve_server_with_ct};
use rmcp::transport::Transport;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::Mutex;
use tokio_util::codec::{AnyDelimiterCodec, AnyDelimiterCodecError, FramedRead};
use tokio_util::sync::CancellationToken;

use super::Server;
use super::message::{NoMessage, outline};

/// The longest line that is read, in bytes. No request of ours is a thousandth of that.
const MAX_LINE_BYTES: usize = 4 * 1024 * 1024;

/// Serves over standard input and output until the input ends or `stop` is cancelled. Calls in flight are
/// answered, for a moment; then they are dropped.
///
/// # Errors
///
/// The handshake failed.
pub async fn serve_stdio(server: Server, stop: CancellationToken) -> Result<(), String> {
    let (input, output) = rmcp::transport::stdio_pipes();
    match serve_server_with_ct(server, LineTransport::new(input, output), stop).await {
        Ok(running) => match running.waiting().await {
            Ok(_reason) => Ok(()),
            Err(failed) => Err(failed.to_string()),
        },
        // The client left before it said anything, or we were told to stop.
        Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => Ok(()),
        Err(ServerInitializeError::InitializeFailed(error)) => Err(error.message.into_owned()),
        Err(_handshake) => Err("the client's handshake failed".to_owned()),
    }
}

struct LineTransport<R, W> {
    lines: FramedRead<R, AnyDelimiterCodec>,
    output: Arc<Mutex<W>>,
    /// Whether a request has come: until then nothing else means anything.
    started: bool,
    /// The codec ends its stream once after an error and goes on after that.
    after_error: bool,
}

impl<R: AsyncRead, W> LineTransport<R, W> {
    fn new(input: R, output: W) -> Self {
        let codec = AnyDelimiterCodec::new_with_max_length(b"\n".to_vec(), b"\n".to_vec(), MAX_LINE_BYTES);
        Self {
            lines: FramedRead::new(input, codec),
            output: Arc::new(Mutex::new(output)),
            started: false,
            after_error: false,
        }
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
        write_line(Arc::clone(&self.output), message)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            let (error, id) = match self.lines.next().await {
                None if self.after_error => {
                    self.after_error = false;
                    continue;
                }
                None | Some(Err(AnyDelimiterCodecError::Io(_))) => return None,
                Some(Err(AnyDelimiterCodecError::MaxChunkLengthExceeded)) => {
                    self.after_error = true;
                    let problem = format!("the message is longer than {MAX_LINE_BYTES} bytes");
                    (ErrorData::invalid_request(problem, None), None)
                }
                Some(Ok(line)) => match read_line(&line) {
                    Read::Message(message) => {
                        self.started |= matches!(*message, RxJsonRpcMessage::<RoleServer>::Request(_));
                        if self.started {
                            return Some(*message);
                        }
                        continue;
                    }
                    Read::Nothing => continue,
                    Read::Refused(error, id) => (error, id),
                },
            };
            let reply = TxJsonRpcMessage::<RoleServer>::error(error, id);
            // On a task of its own: this future is dropped whenever something else happens, and half a
            // line must not go out.
            tokio::spawn(write_line(Arc::clone(&self.output), reply));
        }
    }

    async fn close(&mut self) -> Result<(), std::io::Error> {
        self.output.lock().await.flush().await
    }
}

/// What a line of input is.
enum Read {
    Message(Box<RxJsonRpcMessage<RoleServer>>),
    /// Needs no answer.
    Nothing,
    /// Has to be answered with an error, since a client may be waiting.
    Refused(ErrorData, Option<RequestId>),
}

fn read_line(line: &[u8]) -> Read {
    let line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if line.iter().all(u8::is_ascii_whitespace) {
        return Read::Nothing;
    }
    let refused = match outline(line) {
        Ok(id) => match serde_json::from_slice(line) {
            Ok(message) => return Read::Message(Box::new(message)),
            Err(_unreadable) => NoMessage::invalid("the message cannot be read", id),
        },
        Err(no_message) => no_message,
    };
    if refused.needs_no_answer { Read::Nothing } else { Read::Refused(*refused.error, refused.id) }
}

async fn write_line<W: AsyncWrite + Unpin>(
    output: Arc<Mutex<W>>,
    message: TxJsonRpcMessage<RoleServer>,
) -> Result<(), std::io::Error> {
    let mut line = serde_json::to_vec(&message)?;
    line.push(b'\n');
    let mut output = output.lock().await;
    output.write_all(&line).await?;
    output.flush().await
}
