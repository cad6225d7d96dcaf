//! HTTP as bytes on a socket: requests that no client library would send, and unprocessed responses.

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::Value;

/// A response as it was received.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    head: String,
    pub(crate) text: String,
}

impl Answer {
    /// Returns a header by its name in lower case.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().skip(1).find_map(|line| {
            let (sent, value) = line.split_once(':')?;
            sent.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    /// Returns all headers of a name in lower case.
    pub(crate) fn headers(&self, name: &str) -> Vec<&str> {
        let lines = self.head.lines().skip(1).filter_map(|line| line.split_once(':'));
        lines.filter(|(sent, _)| sent.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim()).collect()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|_| panic!("no JSON: {self:?}"))
    }
}

/// Sends `method target` with these header lines, and with `Host` unless they have one.
#[track_caller]
pub(crate) fn ask(address: &str, method: &str, target: &str, headers: &[&str]) -> Answer {
    send(address, method, target, headers, "")
}

/// Sends JSON with a `POST`.
#[track_caller]
pub(crate) fn post(address: &str, target: &str, headers: &[&str], body: &str) -> Answer {
    let length = format!("content-length: {}", body.len());
    let own = ["content-type: application/json", "accept: application/json, text/event-stream", &length];
    send(address, "POST", target, &[headers, &own].concat(), body)
}

/// Sends a `POST` with a body of any bytes.
#[track_caller]
pub(crate) fn post_bytes(address: &str, target: &str, body: &[u8]) -> Answer {
    let length = format!("content-length: {}", body.len());
    send(address, "POST", target, &["content-type: application/json", &length], body)
}

#[track_caller]
fn send(address: &str, method: &str, target: &str, headers: &[&str], body: impl AsRef<[u8]>) -> Answer {
    let mut stream = TcpStream::connect(address).unwrap();
    let mut request = format!("{method} {target} HTTP/1.1\r\nconnection: close\r\n");
    if headers.iter().all(|line| !line.to_ascii_lowercase().starts_with("host:")) {
        request.push_str(&format!("host: {address}\r\n"));
    }
    for line in headers {
        request.push_str(&format!("{line}\r\n"));
    }
    stream.write_all(&[request.as_bytes(), b"\r\n", body.as_ref()].concat()).unwrap();
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    let answer = String::from_utf8(bytes).unwrap();
    let (head, text) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Answer { status, head: head.to_owned(), text: text.to_owned() }
}

/// Sends a `GET`.
#[track_caller]
pub(crate) fn get(address: &str, target: &str) -> Answer {
    ask(address, "GET", target, &[])
}
