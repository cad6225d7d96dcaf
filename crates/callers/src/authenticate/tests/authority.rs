//! A mock authorization server on a real socket.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use crate::AuthorityUrl;

/// A received request.
#[derive(Debug, Clone)]
pub(super) struct Request {
    /// Method and path, such as `POST /introspect`.
    pub(super) line: String,
    /// The header lines, with names in lower case.
    pub(super) headers: Vec<String>,
    pub(super) body: String,
}

/// A response of the mock server.
#[derive(Debug, Clone)]
pub(super) enum Reply {
    Json(String),
    Status(u16),
    Redirect(String),
    /// A body of this many bytes that is no JSON.
    Huge(usize),
    /// No response; the connection stays open.
    Hang,
}

/// A server that is stopped when it is dropped.
pub(super) struct Authority {
    pub(super) url: String,
    requests: Arc<Mutex<Vec<Request>>>,
    reply: Arc<Mutex<Answerer>>,
    stopped: Arc<Mutex<bool>>,
}

type Answerer = Box<dyn Fn(&Request) -> Reply + Send>;

impl Authority {
    pub(super) fn start(reply: impl Fn(&Request) -> Reply + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let reply: Arc<Mutex<Answerer>> = Arc::new(Mutex::new(Box::new(reply)));
        let server = Self { url, requests: Arc::default(), reply, stopped: Arc::default() };
        let (requests, reply, stopped) =
            (Arc::clone(&server.requests), Arc::clone(&server.reply), Arc::clone(&server.stopped));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                if *stopped.lock().unwrap() {
                    return;
                }
                let (requests, reply) = (Arc::clone(&requests), Arc::clone(&reply));
                std::thread::spawn(move || converse(stream.unwrap(), &requests, &reply));
            }
        });
        server
    }

    /// Replaces the response function.
    pub(super) fn answer(&self, reply: impl Fn(&Request) -> Reply + Send + 'static) {
        *self.reply.lock().unwrap() = Box::new(reply);
    }

    pub(super) fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }

    /// Returns the number of requests for this path.
    pub(super) fn asked(&self, path: &str) -> usize {
        self.requests().iter().filter(|request| request.line.ends_with(&format!(" {path}"))).count()
    }

    pub(super) fn at(&self, path: &str) -> AuthorityUrl {
        format!("{}{path}", self.url).parse().unwrap()
    }
}

impl Drop for Authority {
    fn drop(&mut self) {
        *self.stopped.lock().unwrap() = true;
        // Wakes the listener, so that it notices the stop.
        let _ = TcpStream::connect(self.url.trim_start_matches("http://"));
    }
}

fn converse(mut stream: TcpStream, requests: &Mutex<Vec<Request>>, reply: &Mutex<Answerer>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    let mut headers = Vec::new();
    let mut length = 0;
    loop {
        let mut header = String::new();
        if reader.read_line(&mut header).unwrap() == 0 || header.trim().is_empty() {
            break;
        }
        let (name, value) = header.trim().split_once(':').unwrap();
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().unwrap();
        }
        headers.push(format!("{}:{value}", name.to_ascii_lowercase()));
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let line = line.trim().trim_end_matches(" HTTP/1.1").to_owned();
    let request = Request { line, headers, body: String::from_utf8(body).unwrap() };
    requests.lock().unwrap().push(request.clone());
    let reply = reply.lock().unwrap()(&request);
    let (status, head, body) = match reply {
        Reply::Json(json) => (200, "content-type: application/json\r\n".to_owned(), json),
        Reply::Status(status) => (status, String::new(), "{}".to_owned()),
        Reply::Redirect(to) => (307, format!("location: {to}\r\n"), String::new()),
        Reply::Huge(bytes) => (200, String::new(), " ".repeat(bytes)),
        Reply::Hang => {
            // Blocks until the client disconnects.
            let _ = reader.read(&mut [0]);
            return;
        }
    };
    let length = body.len();
    // A client that has read enough disconnects.
    let _ = write!(
        stream,
        "HTTP/1.1 {status} It\r\n{head}content-length: {length}\r\nconnection: close\r\n\r\n{body}"
    );
}
