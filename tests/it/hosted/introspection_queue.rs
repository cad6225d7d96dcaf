//! Invented tokens from one address do not delay new tokens from other addresses.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::hosted::{PUBLIC, Place, STORES, start, with_authorization_server};
use crate::support::{FakeServer, Reply, Request, ask};

/// Connections with invented tokens.
const JUNK: usize = 700;

/// Starts an authorization server that is slow and knows one valid token.
fn slow_authorization_server() -> FakeServer {
    FakeServer::start(|request: &Request| {
        std::thread::park_timeout(Duration::from_millis(200));
        let is_good = request.body.starts_with("token=good-");
        let claims = json!({"active": is_good, "sub": "ann", "client_id": "c", "aud": format!("{PUBLIC}/mcp"),
            "grant_id": "g1", "exp": 4_000_000_000_u64, "scope": "records"});
        Reply::Json(200, claims.to_string())
    })
}

#[test]
fn invented_tokens_of_one_client_delay_no_other_client() {
    let place = Place::new();
    std::fs::write(place.path("secret"), "s3cret").unwrap();
    let asked = slow_authorization_server();
    let subject = "[[auth.subject]]\nsubject = \"ann\"\nsources = [\"ann\"]\n";
    let proxy = "[http]\ntrusted_proxies = [\"127.0.0.1\"]\n";
    let file = place.configure(&with_authorization_server(&asked, &format!("{subject}{proxy}{STORES}")));
    let server = start(&file);
    let mut junk: Vec<TcpStream> = Vec::new();
    for number in 0..JUNK {
        let mut stream = TcpStream::connect(&server.address).unwrap();
        let request = format!(
            "GET /v1/streams HTTP/1.1\r\nhost: {}\r\nx-forwarded-for: 192.0.2.1\r\nauthorization: Bearer junk-{number}\r\n\r\n",
            server.address
        );
        stream.write_all(request.as_bytes()).unwrap();
        junk.push(stream);
    }
    let started = Instant::now();
    for number in 0..5 {
        let token = format!("authorization: Bearer good-{number}");
        let answer = ask(&server.address, "GET", "/v1/streams", &["x-forwarded-for: 198.51.100.7", &token]);
        assert_eq!(answer.status, 200, "{answer:?}");
    }
    println!("five new tokens beside {JUNK} made-up ones: {:?}", started.elapsed());
    // Only a bounded number of the invented tokens waits, and all are refused.
    let mut statuses = Vec::new();
    for mut stream in junk {
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let mut status = [0; 12];
        stream.read_exact(&mut status).unwrap();
        statuses.push(String::from_utf8(status[9..].to_vec()).unwrap());
    }
    assert!(statuses.iter().all(|status| status == "401" || status == "503"), "{statuses:?}");
    assert!(statuses.iter().filter(|status| *status == "503").count() > JUNK / 2);
}
