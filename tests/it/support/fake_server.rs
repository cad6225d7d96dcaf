//! A server on a real socket that can misbehave as real ones do: of records, or of MCP.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::net::TcpSocket;

use super::waiting::wait_until;

/// A received request.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    /// `GET /v1/search?q=x`
    pub(crate) line: String,
    /// The `Authorization` header.
    pub(crate) authorization: Option<String>,
    /// The `Range` header.
    pub(crate) range: Option<String>,
    /// The body of the request.
    pub(crate) body: String,
}

/// The way in which the server answers a request.
#[derive(Debug, Clone)]
pub(crate) enum Reply {
    /// A status and JSON.
    Json(u16, String),
    /// A status, headers and a body.
    Full(u16, Vec<(&'static str, String)>, String),
    /// A status, headers and a body, of which only so many bytes are sent before the connection ends or is silent.
    File { status: u16, headers: Vec<(&'static str, String)>, body: Vec<u8>, sent: usize, is_silent: bool },
    /// No answer, on an open connection.
    Hang,
    /// A head and half a body, then nothing.
    HangInBody,
    /// A head that promises a longer body, then the end of the connection.
    Truncated(String),
    /// A body of this many bytes, in pieces, while the client reads.
    Endless(usize),
    /// A head that promises this many bytes, and no body until the client disconnects.
    Announced(usize),
    /// These bytes as JSON, even if they are invalid.
    Bytes(Vec<u8>),
    /// A body that is sent byte by byte, with this pause before each.
    Drip(Vec<u8>, Duration),
    /// The end of the connection.
    Reset,
    /// A reset of the connection, so that the client's system reports an error.
    Abort,
}

/// A server that is stopped when it is dropped.
pub(crate) struct FakeServer {
    pub(crate) url: String,
    requests: Arc<Mutex<Vec<Request>>>,
    abandoned: Arc<AtomicUsize>,
    open: Arc<AtomicUsize>,
    stopped: Arc<AtomicUsize>,
    /// The port of a closed server, bound without listening.
    closed: Mutex<Option<TcpSocket>>,
}

impl FakeServer {
    /// Starts a server that answers every request with `answer`.
    pub(crate) fn start(answer: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let server = Self {
            url,
            requests: Arc::default(),
            abandoned: Arc::default(),
            open: Arc::default(),
            stopped: Arc::default(),
            closed: Mutex::default(),
        };
        let (requests, abandoned, open, stopped) = (
            Arc::clone(&server.requests),
            Arc::clone(&server.abandoned),
            Arc::clone(&server.open),
            Arc::clone(&server.stopped),
        );
        let answer = Arc::new(answer);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                if stopped.load(Ordering::SeqCst) > 0 {
                    return;
                }
                let Ok(stream) = stream else { continue };
                let (answer, requests, abandoned, open) =
                    (Arc::clone(&answer), Arc::clone(&requests), Arc::clone(&abandoned), Arc::clone(&open));
                open.fetch_add(1, Ordering::SeqCst);
                std::thread::spawn(move || {
                    let _ = converse(stream, &*answer, &requests, &abandoned);
                    open.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        server
    }

    /// Returns the requests so far.
    pub(crate) fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }

    /// Returns the number of clients that disconnected before their answer.
    pub(crate) fn abandoned(&self) -> usize {
        self.abandoned.load(Ordering::SeqCst)
    }

    /// Returns the number of open connections.
    pub(crate) fn open(&self) -> usize {
        self.open.load(Ordering::SeqCst)
    }

    /// Stops listening: further connections are refused, and no other server gets the port.
    pub(crate) fn close(&self) {
        let address: SocketAddr = self.url.trim_start_matches("http://").parse().unwrap();
        self.stopped.store(1, Ordering::SeqCst);
        // Wakes the listener so that it notices the stop, and waits until it has ended.
        while TcpStream::connect(address).is_ok() {
            std::thread::park_timeout(Duration::from_millis(1));
        }
        let socket = TcpSocket::new_v4().unwrap();
        // Connections of the server may still be open.
        socket.set_reuseaddr(true).unwrap();
        socket.bind(address).unwrap();
        *self.closed.lock().unwrap() = Some(socket);
    }

    /// Waits until a client has disconnected before its answer.
    pub(crate) fn wait_until_abandoned(&self) {
        wait_until("the request was dropped", || self.abandoned() > 0);
    }

    /// Waits until a request was received.
    pub(crate) fn wait_for_request(&self) {
        wait_until("a request came", || !self.requests().is_empty());
    }
}

/// Answers a message of an MCP client. `script` returns the results of `tools/list` and `tools/call` by their parameters, or an
/// error as `{"error": ...}`.
pub(crate) fn mcp_reply(request: &Request, script: &dyn Fn(&str, &Value) -> Value) -> Reply {
    let Ok(message) = serde_json::from_str::<Value>(&request.body) else {
        return Reply::Json(405, String::new());
    };
    let (method, params) = (message["method"].as_str().unwrap_or_default(), &message["params"]);
    let result = match method {
        "initialize" => json!({"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}},
            "serverInfo": {"name": "scripted", "version": "1"}}),
        "tools/list" | "tools/call" => script(method, params),
        _ => return Reply::Full(202, Vec::new(), String::new()),
    };
    let mut reply = json!({"jsonrpc": "2.0", "id": message["id"]});
    match result.get("error") {
        Some(error) => reply["error"] = error.clone(),
        None => reply["result"] = result,
    }
    Reply::Json(200, reply.to_string())
}

/// Returns an MCP tool with arguments that are texts, of which the first is required.
pub(crate) fn mcp_tool(name: &str, arguments: &[&str]) -> Value {
    let properties: Map<String, Value> =
        arguments.iter().map(|name| ((*name).to_owned(), json!({"type": "string"}))).collect();
    json!({"name": name, "inputSchema": {"type": "object", "properties": properties, "required": arguments[..1]}})
}

impl Drop for FakeServer {
    fn drop(&mut self) {
        self.stopped.store(1, Ordering::SeqCst);
        // Wakes the listener so that it notices the stop.
        let _ = TcpStream::connect(self.url.trim_start_matches("http://"));
    }
}

fn converse(
    mut stream: TcpStream,
    answer: &(dyn Fn(&Request) -> Reply + Send + Sync),
    requests: &Mutex<Vec<Request>>,
    abandoned: &AtomicUsize,
) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream.try_clone()?);
    loop {
        let Some(request) = read_request(&mut reader)? else { return Ok(()) };
        requests.lock().unwrap().push(request.clone());
        match answer(&request) {
            Reply::Json(status, body) => {
                let headers = vec![("content-type", "application/json; charset=utf-8".to_owned())];
                write_reply(&mut stream, status, &headers, body.as_bytes())?;
            }
            Reply::Full(status, headers, body) => {
                write_reply(&mut stream, status, &headers, body.as_bytes())?;
            }
            Reply::File { status, headers, body, sent, is_silent } => {
                if sent >= body.len() {
                    write_reply(&mut stream, status, &headers, &body)?;
                } else {
                    stream.write_all(head(status, &headers, body.len()).as_bytes())?;
                    stream.write_all(&body[..sent])?;
                    return if is_silent { wait_for_end(&mut stream, abandoned) } else { Ok(()) };
                }
            }
            Reply::Hang => return wait_for_end(&mut stream, abandoned),
            Reply::HangInBody => {
                stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{\"data\":")?;
                return wait_for_end(&mut stream, abandoned);
            }
            Reply::Truncated(body) => {
                let head = format!(
                    "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
                    body.len() + 10
                );
                stream.write_all(head.as_bytes())?;
                return stream.write_all(body.as_bytes());
            }
            Reply::Endless(bytes) => {
                stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n{\"data\":\"")?;
                let piece = [b'x'; 64 * 1024];
                for _ in 0..bytes / piece.len() {
                    if stream.write_all(&piece).is_err() {
                        abandoned.fetch_add(1, Ordering::SeqCst);
                        return Ok(());
                    }
                }
                return Ok(());
            }
            Reply::Announced(bytes) => {
                let head = format!(
                    "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {bytes}\r\n\r\n"
                );
                stream.write_all(head.as_bytes())?;
                return wait_for_end(&mut stream, abandoned);
            }
            Reply::Bytes(body) => {
                let headers = [("content-type", "application/json; charset=utf-8".to_owned())];
                write_reply(&mut stream, 200, &headers, &body)?;
            }
            Reply::Drip(body, pause) => return drip(&mut stream, &body, pause, abandoned),
            Reply::Reset => return Ok(()),
            Reply::Abort => return abort(stream),
        }
    }
}

fn read_request(reader: &mut BufReader<TcpStream>) -> std::io::Result<Option<Request>> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let (mut authorization, mut range, mut length) = (None, None, 0);
    loop {
        let mut header = String::new();
        if reader.read_line(&mut header)? == 0 {
            return Ok(None);
        }
        let Some((name, value)) = header.split_once(':') else { break };
        if name.eq_ignore_ascii_case("authorization") {
            authorization = Some(value.trim().to_owned());
        }
        if name.eq_ignore_ascii_case("range") {
            range = Some(value.trim().to_owned());
        }
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let line = line.trim_end().trim_end_matches(" HTTP/1.1").to_owned();
    let body = String::from_utf8_lossy(&body).into_owned();
    Ok(Some(Request { line, authorization, range, body }))
}

fn write_reply(
    stream: &mut TcpStream,
    status: u16,
    headers: &[(&str, String)],
    body: &[u8],
) -> std::io::Result<()> {
    stream.write_all(&[head(status, headers, body.len()).as_bytes(), body].concat())
}

fn head(status: u16, headers: &[(&str, String)], length: usize) -> String {
    let mut head = format!("HTTP/1.1 {status} Status\r\ncontent-length: {length}\r\n");
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head + "\r\n"
}

/// Writes a byte after each pause, and notices at once when the client disconnects.
fn drip(
    stream: &mut TcpStream,
    body: &[u8],
    pause: Duration,
    abandoned: &AtomicUsize,
) -> std::io::Result<()> {
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.set_read_timeout(Some(pause))?;
    for byte in body {
        let has_left = matches!(stream.read(&mut [0]), Ok(0));
        if has_left || stream.write_all(&[*byte]).is_err() {
            abandoned.fetch_add(1, Ordering::SeqCst);
            return Ok(());
        }
    }
    Ok(())
}

/// Resets the connection, which only tokio's sockets can do.
fn abort(stream: TcpStream) -> std::io::Result<()> {
    stream.set_nonblocking(true)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let _entered = runtime.enter();
    tokio::net::TcpStream::from_std(stream)?.set_zero_linger()
}

fn wait_for_end(stream: &mut TcpStream, abandoned: &AtomicUsize) -> std::io::Result<()> {
    let mut byte = [0];
    while stream.read(&mut byte).unwrap_or(0) > 0 {}
    abandoned.fetch_add(1, Ordering::SeqCst);
    Ok(())
}
