//! `ops_listen`: health and metrics at a separate address.

use std::net::{TcpListener, TcpStream};

use crate::support::hosted::{ANN, HEAD, Place, STORES, bearer, token};
use crate::support::{HttpServer, ask, fetchwell, get, post, stderr, text};

/// Starts a server with `ops_listen` and further lines of configuration. Returns it with the address of its metrics.
fn serve(place: &Place, ops_listen: &str, top: &str, tables: &str) -> (HttpServer, String) {
    let file = place.configure(&format!("ops_listen = \"{ops_listen}\"\n{top}{tables}{STORES}"));
    let server = HttpServer::start(["--config", text(&file)]);
    let log = server.log();
    let said = log
        .lines()
        .find(|line| line.starts_with("/health and /metrics at "))
        .unwrap_or_else(|| panic!("{log}"));
    let address = said.split(" at ").nth(1).unwrap().split(' ').next().unwrap().to_owned();
    (server, address)
}

#[test]
fn metrics_need_no_token_and_records_do() {
    let place = Place::new();
    let (server, ops) = serve(&place, "127.0.0.1:0", HEAD, &token("ann", ANN));
    assert_eq!(ask(&server.address, "GET", "/v1/schema", &[&bearer(ANN)]).status, 200);
    for path in ["/health", "/metrics"] {
        assert_eq!(get(&server.address, path).status, 401);
        let answer = get(&ops, path);
        assert_eq!(answer.status, 200, "{answer:?}");
        assert!(answer.header("request-id").is_some());
        assert_eq!(ask(&ops, "DELETE", path, &[]).status, 405);
    }
    assert_eq!(get(&ops, "/health").json()["status"], "healthy");
    let metrics = get(&ops, "/metrics").text;
    assert!(metrics.contains("{endpoint=\"/v1/schema\",outcome=\"ok\"} 1\n"), "{metrics}");
    for probe in ["/health/live", "/health/ready"] {
        assert_eq!(get(&ops, probe).text, "ok\n");
    }
    let message = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    for path in ["/mcp", "/mcp/openai", "/v1/schema", "/api/v1", "/openapi.json", "/records/x", "/"] {
        assert_eq!(ask(&ops, "GET", path, &[&bearer(ANN)]).status, 404, "{path}");
        assert_eq!(post(&ops, path, &[&bearer(ANN)], message).status, 404, "{path}");
    }
}

#[test]
fn browsers_and_proxies_cannot_read_metrics() {
    let place = Place::new();
    let (_server, ops) = serve(&place, "127.0.0.1:0", HEAD, &token("ann", ANN));
    for (header, status) in [
        ("host: localhost", 200),
        // A Kubernetes probe uses the IP address of the pod.
        ("host: 10.1.2.3:7401", 200),
        ("host: [2001:db8::1]:7401", 200),
        ("host: evil.example", 403),
        ("host: 10.1.2.3.nip.io", 403),
        ("origin: https://evil.example", 403),
        ("x-forwarded-for: 192.0.2.7", 403),
        ("via: 1.1 proxy", 403),
    ] {
        for path in ["/health", "/metrics"] {
            let answer = ask(&ops, "GET", path, &[header]);
            assert_eq!(answer.status, status, "{path} {header}");
            assert_eq!(answer.header("access-control-allow-origin"), None);
        }
    }
    assert!(
        ask(&ops, "GET", "/metrics", &["via: 1.1 proxy"])
            .text
            .contains("name the proxy in http.trusted_proxies")
    );
    let trusting = format!("[http]\ntrusted_proxies = [\"127.0.0.1\"]\n{}", token("ann", ANN));
    let (_server, ops) = serve(&place, "127.0.0.1:0", HEAD, &trusting);
    assert_eq!(ask(&ops, "GET", "/metrics", &["via: 1.1 proxy"]).status, 200);
}

#[test]
fn metrics_are_read_while_all_connections_are_in_use() {
    let place = Place::new();
    let (server, ops) =
        serve(&place, "127.0.0.1:0", HEAD, &format!("[http]\nmax_connections = 1\n{}", token("ann", ANN)));
    let _held = TcpStream::connect(&server.address).unwrap();
    server.wait_until("it is full", || server.log().contains("all connections are taken"));
    assert_eq!(get(&ops, "/metrics").status, 200);
}

#[test]
fn other_machines_may_read_metrics_without_authentication() {
    let place = Place::new();
    let (server, ops) = serve(&place, "0.0.0.0:0", "", "");
    assert!(server.log().contains("including other machines"), "{}", server.log());
    let port = ops.rsplit(':').next().unwrap();
    assert_eq!(get(&format!("127.0.0.1:{port}"), "/metrics").status, 200);
    assert_eq!(get(&format!("127.0.0.1:{port}"), "/v1/schema").status, 404);
    // Without [auth], local programs read them at the main address, too.
    assert_eq!(get(&server.address, "/metrics").status, 200);
}

#[test]
fn an_address_in_use_is_named_with_its_key() {
    let (place, taken) = (Place::new(), TcpListener::bind("127.0.0.1:0").unwrap());
    let address = taken.local_addr().unwrap();
    let file = place.configure(&format!("ops_listen = \"{address}\"\n{STORES}"));
    let state = place.path("state");
    let output =
        fetchwell(["serve", "--config", text(&file), "--listen", "127.0.0.1:0", "--state-dir", text(&state)]);
    let said = stderr(&output);
    assert!(!output.status.success() && said.contains("set another ops_listen"), "{said}");
    assert!(said.contains(&address.to_string()), "{said}");
}

#[test]
fn a_changed_address_applies_at_the_next_start() {
    let place = Place::new();
    let (server, ops) = serve(&place, "127.0.0.1:0", HEAD, &token("ann", ANN));
    place.configure(&format!("{HEAD}{}{STORES}", token("ann", ANN)));
    server.wait_until("it is said", || {
        server
            .log()
            .lines()
            .any(|line| line.contains("takes effect at the next start") && line.contains("ops_listen"))
    });
    assert_eq!(get(&ops, "/metrics").status, 200);
}
