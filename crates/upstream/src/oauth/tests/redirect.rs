//! Requests to the port that the browser returns to.

use secrecy::ExposeSecret;
use tokio::net::TcpStream;
use url::Url;

use super::super::redirect::RedirectListener;
use super::{get, send};

#[tokio::test]
async fn everything_but_the_reply_is_ignored() {
    let listener = RedirectListener::bind(0).await.unwrap();
    let uri = listener.redirect_uri();
    let base: Url = uri.parse().unwrap();
    let waiting = tokio::spawn(async move {
        let browser = listener.wait("s1").await;
        let code = browser.reply.code.as_ref().unwrap().expose_secret().to_owned();
        browser.show("Signed in", "Done.").await;
        code
    });
    // Browsers open connections that they do not use.
    let address = (base.host_str().unwrap(), base.port().unwrap());
    let _idle = TcpStream::connect(address).await.unwrap();
    let query = "code=a&state=s1";
    for request in [
        "GET /favicon.ico HTTP/1.1\r\n\r\n".to_owned(),
        "GET /callback?code=forged&state=s2 HTTP/1.1\r\n\r\n".to_owned(),
        "GET /callback?code=forged HTTP/1.1\r\n\r\n".to_owned(),
        format!("POST /callback?{query} HTTP/1.1\r\nContent-Length: 0\r\n\r\n"),
        format!("HEAD /callback?{query} HTTP/1.1\r\n\r\n"),
        format!("GET /other?{query} HTTP/1.1\r\n\r\n"),
        "\u{16}\u{3}\u{1}\r\n\r\n".to_owned(),
    ] {
        let response = send(&base, &request).await;
        assert!(response.starts_with("HTTP/1.1 404 "), "{request}: {response}");
        assert!(!response.contains("forged"), "{response}");
    }
    let long = format!("GET /callback?{query}&x={} HTTP/1.1\r\n", "x".repeat(100_000));
    assert_eq!(send(&base, &long).await, "");
    let response = get(&format!("{uri}?{query}")).await;
    assert!(response.starts_with("HTTP/1.1 200 ") && response.contains("<h1>Signed in</h1>"), "{response}");
    assert!(response.contains("Cache-Control: no-store") && response.contains("Content-Security-Policy"));
    assert_eq!(waiting.await.unwrap(), "a");
}
