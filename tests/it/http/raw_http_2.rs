//! HTTP/2 frames written by hand, for a client that violates the protocol.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::support::wait_until_or;

const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
pub(crate) const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
pub(crate) const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
pub(crate) const CONTINUATION: u8 = 9;

const ACK: u8 = 1;
const END_STREAM: u8 = 1;
pub(crate) const END_HEADERS: u8 = 4;

/// A connection with a thread that answers PINGs and SETTINGS.
pub(crate) struct RawHttp2 {
    /// The address of the server, because a socket that was reset does not return it.
    server: String,
    stream: Arc<Mutex<TcpStream>>,
    seen: Arc<Mutex<ReceivedFrames>>,
}

/// The received frames.
#[derive(Debug, Default)]
pub(crate) struct ReceivedFrames {
    /// The status of the response of each stream.
    pub(crate) statuses: HashMap<u32, u16>,
    /// Streams that were reset, with the error code.
    pub(crate) resets: HashMap<u32, u32>,
    /// Bytes of bodies.
    pub(crate) data: usize,
    /// The error code of GOAWAY.
    pub(crate) go_away: Option<u32>,
    /// True if the server has closed the connection.
    pub(crate) is_closed: bool,
    pub(crate) pings: usize,
}

impl RawHttp2 {
    /// Connects with this flow-control window for each response.
    pub(crate) fn connect(address: &str, window: u32) -> Self {
        Self::speak(TcpStream::connect(address).unwrap(), window)
    }

    pub(crate) fn speak(mut stream: TcpStream, window: u32) -> Self {
        stream.set_write_timeout(Some(Duration::from_secs(30))).unwrap();
        let settings = [[0, 4].as_slice(), &window.to_be_bytes(), &[0, 1], &0_u32.to_be_bytes()].concat();
        stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").unwrap();
        stream.write_all(&frame(SETTINGS, 0, 0, &settings)).unwrap();
        let reader = stream.try_clone().unwrap();
        let server = stream.peer_addr().unwrap().to_string();
        let client = Self { server, stream: Arc::new(Mutex::new(stream)), seen: Arc::default() };
        let (stream, seen) = (Arc::clone(&client.stream), Arc::clone(&client.seen));
        std::thread::spawn(move || {
            let _ended = answer(reader, &stream, &seen);
            seen.lock().unwrap().is_closed = true;
        });
        client
    }

    /// Sends a frame. Returns false if the connection is closed.
    pub(crate) fn send(&self, kind: u8, flags: u8, stream: u32, payload: &[u8]) -> bool {
        self.stream.lock().unwrap().write_all(&frame(kind, flags, stream, payload)).is_ok()
    }

    /// Sends a `GET` as the nth request.
    pub(crate) fn get(&self, nth: u32, path: &str, headers: &[(&str, &str)]) -> bool {
        let block = self.block("GET", path, headers);
        self.send(HEADERS, END_HEADERS | END_STREAM, 2 * nth + 1, &block)
    }

    /// Sends the head of a `POST` and no body.
    pub(crate) fn begin_post(&self, nth: u32, path: &str, headers: &[(&str, &str)]) -> bool {
        let block = self.block("POST", path, headers);
        let stream = 2 * nth + 1;
        let mut parts = block.chunks(16_384).peekable();
        let mut kind = HEADERS;
        while let Some(part) = parts.next() {
            let flags = if parts.peek().is_none() { END_HEADERS } else { 0 };
            if !self.send(kind, flags, stream, part) {
                return false;
            }
            kind = CONTINUATION;
        }
        true
    }

    /// Sends a whole `POST` of JSON.
    pub(crate) fn post(&self, nth: u32, path: &str, headers: &[(&str, &str)], body: &str) -> bool {
        let json = [("content-type", "application/json")];
        self.begin_post(nth, path, &[headers, &json].concat())
            && self.send(DATA, END_STREAM, 2 * nth + 1, body.as_bytes())
    }

    pub(crate) fn ping(&self) -> bool {
        self.send(PING, 0, 0, &[7; 8])
    }

    /// Extends the window of one response, or (0) of all.
    pub(crate) fn widen(&self, stream: u32, bytes: u32) -> bool {
        self.send(WINDOW_UPDATE, 0, stream, &bytes.to_be_bytes())
    }

    pub(crate) fn seen<Answer>(&self, look: impl FnOnce(&ReceivedFrames) -> Answer) -> Answer {
        look(&self.seen.lock().unwrap())
    }

    #[track_caller]
    pub(crate) fn wait_until(&self, what: &str, done: impl Fn(&ReceivedFrames) -> bool) {
        wait_until_or(|| format!("{what}: {:?}", self.seen.lock()), || self.seen(&done));
    }

    fn block(&self, method: &str, path: &str, headers: &[(&str, &str)]) -> Vec<u8> {
        let own = [(":method", method), (":scheme", "http"), (":path", path), (":authority", &self.server)];
        header_block(&[own.as_slice(), headers].concat())
    }
}

impl Drop for RawHttp2 {
    fn drop(&mut self) {
        let _ = self.stream.lock().unwrap().shutdown(std::net::Shutdown::Both);
    }
}

/// Encodes headers as literals without indexing (RFC 7541, 6.2.2).
pub(crate) fn header_block(headers: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in headers {
        block.push(0);
        for text in [name, value] {
            let mut length = text.len();
            if length < 127 {
                block.push(u8::try_from(length).unwrap());
            } else {
                block.push(127);
                length -= 127;
                while length >= 128 {
                    block.push(u8::try_from(length % 128 + 128).unwrap());
                    length /= 128;
                }
                block.push(u8::try_from(length).unwrap());
            }
            block.extend_from_slice(text.as_bytes());
        }
    }
    block
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

fn answer(mut from: TcpStream, to: &Mutex<TcpStream>, seen: &Mutex<ReceivedFrames>) -> std::io::Result<()> {
    loop {
        let mut head = [0; 9];
        from.read_exact(&mut head)?;
        let [a, b, c, kind, flags, s1, s2, s3, s4] = head;
        let mut payload = vec![0; usize::try_from(u32::from_be_bytes([0, a, b, c])).unwrap()];
        from.read_exact(&mut payload)?;
        let stream = u32::from_be_bytes([s1 & 0x7f, s2, s3, s4]);
        let code = |at: usize| u32::from_be_bytes(payload[at..at + 4].try_into().unwrap());
        match kind {
            PING if flags & ACK == 0 => to.lock().unwrap().write_all(&frame(PING, ACK, 0, &payload))?,
            SETTINGS if flags & ACK == 0 => to.lock().unwrap().write_all(&frame(SETTINGS, ACK, 0, &[]))?,
            _ => {}
        }
        let mut seen = seen.lock().unwrap();
        match kind {
            PING if flags & ACK == 0 => seen.pings += 1,
            HEADERS => {
                seen.statuses.insert(stream, status_of(&payload));
            }
            DATA => seen.data += payload.len(),
            RST_STREAM => {
                // DATA frames after the first reset are answered with further ones.
                seen.resets.entry(stream).or_insert(code(0));
            }
            GOAWAY => seen.go_away = Some(code(4)),
            _ => {}
        }
    }
}

/// Returns the status at the beginning of a header block without a dynamic table; 0 if it cannot be decoded.
fn status_of(block: &[u8]) -> u16 {
    let block = match block {
        // An update of the size of the dynamic table.
        [first, rest @ ..] if first & 0xe0 == 0x20 => rest,
        block => block,
    };
    match block {
        [indexed @ 0x88..=0x8e, ..] => [200, 204, 206, 304, 400, 404, 500][usize::from(indexed - 0x88)],
        [0x48 | 0x08 | 0x18, length, text @ ..] => {
            let text = &text[..usize::from(length & 0x7f)];
            let digits = if length & 0x80 == 0 { text.to_vec() } else { huffman_digits(text) };
            String::from_utf8(digits).unwrap().parse().unwrap()
        }
        _ => 0,
    }
}

/// Encodes three digits in the code of RFC 7541, appendix B: five bits for 0 to 2, six for the others.
fn huffman_digits(text: &[u8]) -> Vec<u8> {
    let bits: Vec<u8> = text.iter().flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1)).collect();
    let (mut at, mut digits) = (0, Vec::new());
    while digits.len() < 3 {
        let number = |length: usize| bits[at..at + length].iter().fold(0, |sum, bit| sum * 2 + bit);
        let (digit, length) = if number(5) < 3 { (number(5), 5) } else { (number(6) - 0b01_1001 + 3, 6) };
        digits.push(b'0' + digit);
        at += length;
    }
    digits
}

/// Connects from one of this machine's addresses.
pub(crate) fn connect_from(from: IpAddr, to: &str) -> std::io::Result<TcpStream> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let stream = runtime.block_on(async {
        let socket = tokio::net::TcpSocket::new_v4()?;
        socket.bind(SocketAddr::new(from, 0))?;
        socket.connect(to.parse().unwrap()).await?.into_std()
    })?;
    stream.set_nonblocking(false)?;
    Ok(stream)
}
