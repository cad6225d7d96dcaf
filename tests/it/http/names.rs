//! Checks of `Host` and `Origin`, and the client addresses that proxies forward.

use crate::support::hosted::{ANN, Place, STORES, bearer, token};
use crate::support::{HttpServer, ask, binary, demo_store, fetchwell, post, stderr, text};

const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;

/// Starts a server with these lines of configuration.
fn configured(lines: &str) -> (tempfile::TempDir, HttpServer) {
    let (folder, store) = demo_store();
    let config = folder.path().join("fetchwell.toml");
    std::fs::write(&config, lines).unwrap();
    let server = HttpServer::start(["--store", text(&store), "--config", text(&config)]);
    (folder, server)
}

const PATHS: [&str; 10] = [
    "/mcp",
    "/mcp/openai",
    "/v1/streams",
    "/openapi.json",
    "/api/v1",
    "/health",
    "/metrics",
    "/",
    "/.well-known/oauth-protected-resource",
    "/records/x",
];

#[test]
fn a_wrong_name_or_origin_is_refused_on_every_path() {
    let (_folder, server) = configured("");
    for path in PATHS {
        for method in ["GET", "POST", "HEAD", "DELETE"] {
            for header in [
                "host: evil.example",
                "host: localhost@evil.example",
                "origin: https://evil.example",
                "origin: null",
            ] {
                let answer = ask(&server.address, method, path, &[header, "content-length: 0"]);
                assert_eq!(answer.status, 403, "{method} {path} {header}");
                assert_eq!(answer.header("access-control-allow-origin"), None);
            }
        }
    }
    let metrics = ask(&server.address, "GET", "/metrics", &[]).text;
    let refused = PATHS.len() * 16;
    let line = format!("fetchwell_requests_total{{endpoint=\"/{{any}}\",outcome=\"forbidden\"}} {refused}\n");
    assert!(metrics.contains(&line), "{metrics}");
    let answer = post(&server.address, "/mcp", &["host: evil.example"], PING);
    assert_eq!(answer.json()["error"]["code"], -32600);
}

#[test]
fn a_hosted_server_accepts_its_own_names_only() {
    let (_folder, server) = configured(
        "public_url = \"https://records.example.com\"\n[http]\nallowed_hosts = [\"fetchwell.internal:7400\"]\n\
         allowed_origins = [\"https://inspector.example.com\"]\n",
    );
    assert!(server.log().contains("for clients at https://records.example.com"), "{}", server.log());
    for (header, status) in [
        ("host: records.example.com", 200),
        ("host: Records.example.com:443", 200),
        ("host: fetchwell.internal:7400", 200),
        ("host: fetchwell.internal", 403),
        ("host: localhost", 200),
        ("host: a.records.example.com", 403),
        ("origin: https://records.example.com", 200),
        ("origin: http://records.example.com", 403),
        ("origin: https://inspector.example.com", 200),
        ("origin: https://inspector.example.com:444", 403),
        ("origin: http://localhost:6274", 200),
        // No header of a request changes the name. Proxied requests need a token, and this server has no authentication.
        ("x-forwarded-host: records.example.com", 403),
    ] {
        assert_eq!(post(&server.address, "/mcp", &[header], PING).status, status, "{header}");
        assert_eq!(ask(&server.address, "GET", "/v1/streams", &[header]).status, status, "{header}");
    }
}

#[test]
fn a_used_port_is_an_error_with_another_one() {
    let (_folder, store) = demo_store();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let output = fetchwell(["serve", "--store", text(&store), "--listen", &address.to_string()]);
    let problem = stderr(&output);
    assert!(output.status.code() == Some(1) && problem.contains("name another port"), "{output:?}");
    let another = problem.split("`--listen ").nth(1).unwrap().split('`').next().unwrap();
    let another: std::net::SocketAddr = another.parse().unwrap();
    assert!(another.ip() == address.ip() && another.port() != address.port(), "{problem}");
}

#[test]
fn cors_headers_allow_configured_origins_only() {
    let (_folder, server) = configured("[http]\nallowed_origins = [\"https://inspector.example.com\"]\n");
    for origin in ["http://localhost:6274", "https://inspector.example.com"] {
        for path in ["/mcp", "/mcp/openai", "/.well-known/oauth-protected-resource/mcp", "/v1/streams"] {
            let wanted = "access-control-request-headers: authorization,content-type,mcp-protocol-version,mcp-method,mcp-name";
            let lines = [&format!("origin: {origin}") as &str, "access-control-request-method: POST", wanted];
            let answer = ask(&server.address, "OPTIONS", path, &lines);
            assert_eq!(answer.status, 200);
            assert_eq!(answer.header("access-control-allow-origin"), Some(origin));
            assert_eq!(answer.header("access-control-allow-methods"), Some("GET,POST,DELETE"));
            let allowed = answer.header("access-control-allow-headers").unwrap();
            for header in wanted.split(": ").nth(1).unwrap().split(',') {
                assert!(allowed.split(',').any(|one| one == header), "{header} in {allowed}");
            }
        }
        let answer = post(&server.address, "/mcp", &[&format!("origin: {origin}")], PING);
        assert_eq!(answer.header("access-control-allow-origin"), Some(origin));
        let exposed = answer.header("access-control-expose-headers").unwrap();
        for header in [
            "www-authenticate",
            "mcp-protocol-version",
            "request-id",
            "retry-after",
            "search-id",
            "reranked",
            "search-warning",
        ] {
            assert!(exposed.split(',').any(|one| one == header), "{header} in {exposed}");
        }
    }
}

/// Returns the statuses of requests with these forwarding headers.
fn statuses(server: &HttpServer, lines: &[&str]) -> Vec<u16> {
    lines.iter().map(|line| ask(&server.address, "GET", "/v1/streams", &[line]).status).collect()
}

const CLIENTS: [&str; 5] = [
    "x-forwarded-for: 192.0.2.1",
    "x-forwarded-for: 192.0.2.2",
    "x-forwarded-for: 203.0.113.9, 192.0.2.2",
    "forwarded: for=192.0.2.3",
    "x-forwarded-for: 192.0.2.3, 127.0.0.1",
];

const ONE_EACH: &str = "[rate_limit]\nrequests = 1\nper = \"1h\"\n";

/// Permission for proxied requests without authentication, beside `trusted_proxies`.
const ALLOWED: &str = "allow_unauthenticated_proxy = true\n";

#[test]
fn the_client_address_comes_from_a_trusted_proxy() {
    let (_folder, server) =
        configured(&format!("{ONE_EACH}[http]\ntrusted_proxies = [\"127.0.0.1\"]\n{ALLOWED}"));
    // The third client is the second, and the last is the one before: entries that a client added itself are ignored.
    assert_eq!(statuses(&server, &CLIENTS), [200, 200, 429, 200, 429]);
}

#[test]
fn forwarding_headers_of_other_clients_are_ignored() {
    let place = Place::new();
    for proxies in ["", "[http]\ntrusted_proxies = [\"10.0.0.0/8\"]\n"] {
        // Without [auth] such requests are refused.
        let file = place.configure(&format!("{ONE_EACH}{proxies}{}{STORES}", token("ann", ANN)));
        let server = HttpServer::start(["--config", text(&file)]);
        let asked = |line: &&str| ask(&server.address, "GET", "/v1/streams", &[*line, &bearer(ANN)]).status;
        assert_eq!(CLIENTS.iter().map(asked).collect::<Vec<_>>(), [200, 429, 429, 429, 429], "{proxies}");
    }
}

#[test]
fn a_found_file_cannot_open_the_server() {
    let (folder, _store) = demo_store();
    let source = "[[source]]\nname = \"demo\"\nstore = \"demo.db\"\n";
    for (lines, key) in [
        ("public_url = \"https://evil.example\"\n", "public_url"),
        ("[http]\nallowed_origins = [\"https://evil.example\"]\n", "http.allowed_origins"),
        (
            "[http]\nallow_unauthenticated_proxy = true\ntrusted_proxies = [\"127.0.0.1\"]\n",
            "http.allow_unauthenticated_proxy",
        ),
        ("ops_listen = \"127.0.0.1:7401\"\n", "ops_listen"),
        ("[tls]\ncertificate = \"a\"\nkey = \"b\"\n", "tls.certificate"),
    ] {
        let found = folder.path().join("fetchwell.toml");
        let text_of =
            if lines.starts_with('[') { format!("{source}{lines}") } else { format!("{lines}{source}") };
        std::fs::write(&found, text_of).unwrap();
        let served = binary()
            .current_dir(folder.path())
            .args(["serve", "--listen", "127.0.0.1:0", "--state-dir", "state"])
            .output()
            .unwrap();
        let said = stderr(&served);
        assert_eq!(served.status.code(), Some(1), "{said}");
        assert!(said.contains(&format!(": {key}")) && said.contains("needs trust"), "{said}");
        assert!(said.contains("name it: --config"), "{said}");
    }
}
