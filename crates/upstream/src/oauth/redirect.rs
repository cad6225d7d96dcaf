//! The port on this machine that the browser returns to after a sign-in (RFC 8252, 7.3).
//!
//! It answers `GET /callback` with the state of the attempt; everything else gets 404 and is ignored. Requests are read
//! beside each other, because browsers open connections that send nothing.

use std::io;
use std::time::Duration;

use fetchwell_callers::AuthorizationReply;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// Path of the redirect URI.
const PATH: &str = "/callback";

/// Maximum size of the head of a request in bytes.
const MAX_HEAD_BYTES: usize = 16 * 1024;

/// Maximum number of connections at a time.
const MAX_CONNECTIONS: usize = 16;

/// Timeout of a request, and of a response.
const CONNECTION_WITHIN: Duration = Duration::from_secs(10);

/// Pause after a connection that could not be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Listener for the browser.
#[derive(Debug)]
pub(super) struct RedirectListener {
    listener: TcpListener,
    port: u16,
}

/// Browser that has returned and waits for a page.
#[derive(Debug)]
pub(super) struct ReturnedBrowser {
    pub(super) reply: AuthorizationReply,
    stream: TcpStream,
}

impl RedirectListener {
    /// Listens on a port of 127.0.0.1; 0 is any free port.
    pub(super) async fn bind(port: u16) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", port)).await?;
        let port = listener.local_addr()?.port();
        Ok(Self { listener, port })
    }

    /// Returns the redirect URI.
    pub(super) fn redirect_uri(&self) -> String {
        format!("http://127.0.0.1:{}{PATH}", self.port)
    }

    /// Waits for the browser that returns with this state. Has no timeout.
    pub(super) async fn wait(&self, state: &str) -> ReturnedBrowser {
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                accepted = self.listener.accept(), if connections.len() < MAX_CONNECTIONS => {
                    match accepted {
                        Ok((stream, _address)) => {
                            connections.spawn(serve(stream, state.to_owned()));
                        }
                        Err(_too_many_files) => sleep(ACCEPT_PAUSE).await,
                    }
                }
                Some(ended) = connections.join_next() => {
                    if let Ok(Some(browser)) = ended {
                        return browser;
                    }
                }
            }
        }
    }
}

impl ReturnedBrowser {
    /// Shows a page with a heading and a sentence, neither of which may contain text of a request.
    pub(super) async fn show(self, title: &'static str, sentence: &'static str) {
        respond(self.stream, "200 OK", title, sentence).await;
    }
}

/// Reads one request, and returns its connection if it is the expected one. Otherwise answers it with 404.
async fn serve(mut stream: TcpStream, state: String) -> Option<ReturnedBrowser> {
    let head = timeout(CONNECTION_WITHIN, read_head(&mut stream)).await.ok()??;
    let reply = query_of(&head).map(AuthorizationReply::from_query);
    match reply.filter(|reply| reply.state.as_ref() == Some(&state)) {
        Some(reply) => Some(ReturnedBrowser { reply, stream }),
        None => {
            respond(stream, "404 Not Found", "Not found", "This page is for the return from a sign-in.")
                .await;
            None
        }
    }
}

/// Reads the head of a request. Returns `None` if it is too long, not text, or ends early.
async fn read_head(stream: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    while !head.windows(4).any(|four| four == b"\r\n\r\n") {
        if head.len() >= MAX_HEAD_BYTES || stream.read_buf(&mut head).await.ok()? == 0 {
            return None;
        }
    }
    String::from_utf8(head).ok()
}

/// Returns the query of a GET request to the redirect URI.
fn query_of(head: &str) -> Option<&str> {
    let mut words = head.lines().next()?.split(' ');
    let (method, target, version) = (words.next()?, words.next()?, words.next()?);
    let is_http = version.starts_with("HTTP/1.") && words.next().is_none();
    let query = target.strip_prefix(PATH)?.strip_prefix('?')?;
    (method == "GET" && is_http).then_some(query)
}

/// Writes a page. A browser that has gone away is no error.
async fn respond(mut stream: TcpStream, status: &str, title: &str, sentence: &str) {
    let page = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>{title}</title><h1>{title}</h1><p>{sentence}</p></html>\n"
    );
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\nConnection: close\r\n\
        Cache-Control: no-store\r\nContent-Security-Policy: default-src 'none'\r\nReferrer-Policy: no-referrer\r\n\
        X-Content-Type-Options: nosniff\r\n\r\n",
        page.len()
    );
    let written = async {
        stream.write_all(head.as_bytes()).await?;
        stream.write_all(page.as_bytes()).await?;
        stream.shutdown().await
    };
    let _ = timeout(CONNECTION_WITHIN, written).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_get_of_the_redirect_uri_is_a_reply() {
        for (line, query) in [
            ("GET /callback?code=a&state=s HTTP/1.1", Some("code=a&state=s")),
            ("GET /callback? HTTP/1.0", Some("")),
            ("GET /callback HTTP/1.1", None),
            ("POST /callback?code=a HTTP/1.1", None),
            ("HEAD /callback?code=a HTTP/1.1", None),
            ("GET /callbacks?code=a HTTP/1.1", None),
            ("GET /favicon.ico HTTP/1.1", None),
            ("GET http://127.0.0.1/callback?code=a HTTP/1.1", None),
            ("GET /callback?code=a", None),
            ("GET /callback?a b HTTP/1.1", None),
            ("", None),
        ] {
            assert_eq!(query_of(&format!("{line}\r\nHost: x\r\n\r\n")), query, "{line}");
        }
    }
}
