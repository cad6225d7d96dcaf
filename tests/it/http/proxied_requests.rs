//! Requests that came through a proxy: refused without authentication, unless the configuration allows them.

use std::time::Duration;

use serde_json::Value;

use crate::support::hosted::{ANN, HEAD, Place, STORES, bearer, token};
use crate::support::{HttpServer, ask, demo_store, fetchwell, post, stdout, text};

const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;

/// Starts a server without `[auth]`, with these lines of configuration.
fn open_server(lines: &str) -> (tempfile::TempDir, HttpServer) {
    let (folder, store) = demo_store();
    let config = folder.path().join("rest.toml");
    std::fs::write(&config, lines).unwrap();
    let server = HttpServer::start(["--store", text(&store), "--config", text(&config)]);
    (folder, server)
}

/// Headers of common tunnels and proxies: with a value, without one, and repeated.
const PROXIED: [&[&str]; 12] = [
    &["X-Forwarded-For: 192.0.2.7"],
    &["x-forwarded-for: 127.0.0.1", "x-forwarded-for: 127.0.0.1"],
    &["X-FORWARDED-PROTO: https"],
    &["Forwarded:"],
    &["Via: 1.1 proxy"],
    &["X-Real-IP: 192.0.2.7"],
    &["CF-Connecting-IP: 192.0.2.7", "CF-Ray: 1"],
    &["Cdn-Loop: cloudflare"],
    &["Tailscale-User-Login: ann@example.com"],
    &["X-Original-Host: records.example.com"],
    &["X-Tunnel-Authorization: tunnel x"],
    &["ngrok-auth-user-id: 1"],
];

#[test]
fn proxied_requests_are_refused_without_authentication() {
    let (_folder, server) = open_server("");
    let mut refused = 0;
    for headers in PROXIED {
        for path in [
            "/mcp",
            "/mcp/openai",
            "/v1/streams",
            "/api/v1",
            "/openapi.json",
            "/records/x",
            "/health",
            "/metrics",
            "/",
            "/.well-known/oauth-protected-resource",
        ] {
            for method in ["GET", "POST", "OPTIONS"] {
                let preflight = [
                    "host: localhost",
                    "origin: http://localhost:6274",
                    "access-control-request-method: POST",
                ];
                let answer = ask(&server.address, method, path, &[&preflight, headers].concat());
                assert_eq!(answer.status, 403, "{method} {path} {headers:?}");
                assert_eq!(answer.header("access-control-allow-origin"), None);
                for part in [
                    &headers[0].split(':').next().unwrap().to_lowercase(),
                    "[auth]",
                    "allow_unauthenticated_proxy = true",
                ] {
                    assert!(answer.text.contains(part), "no {part} in {}", answer.text);
                }
                refused += 1;
            }
        }
        for open in ["/health/live", "/health/ready"] {
            assert_eq!(ask(&server.address, "GET", open, headers).text, "ok\n");
        }
    }
    let answer = post(&server.address, "/mcp", PROXIED[0], PING).json();
    assert_eq!(
        (&answer["error"]["code"], &answer["error"]["data"]["code"]),
        (&(-32_003).into(), &"forbidden".into())
    );
    // A local program is answered as before.
    assert_eq!(post(&server.address, "/mcp", &[], PING).status, 200);
    let metrics = ask(&server.address, "GET", "/metrics", &[]).text;
    let counted = format!("{{endpoint=\"/{{any}}\",outcome=\"forbidden\"}} {}\n", refused + 1);
    assert!(metrics.contains(&counted), "{metrics}");
    assert_eq!(server.log().matches("came through a proxy").count(), 1, "{}", server.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn proxied_requests_are_refused_over_http_2() {
    let (_folder, server) = open_server("");
    let _ = rustls::crypto::ring::default_provider().install_default();
    #[expect(clippy::disallowed_methods, reason = "a client as others write theirs")]
    let client = reqwest::Client::builder().http2_prior_knowledge().timeout(Duration::from_secs(30));
    let client = client.build().unwrap();
    for (header, status) in [("X-Forwarded-For", 403), ("cf-ray", 403), ("x-request-id", 200)] {
        let answer = client.get(server.url("/v1/streams")).header(header, "1").send().await.unwrap();
        assert_eq!(
            (answer.version(), answer.status().as_u16()),
            (reqwest::Version::HTTP_2, status),
            "{header}"
        );
    }
}

#[test]
fn only_a_named_proxy_with_the_permission_is_answered_without_authentication() {
    let trusted = |proxy: &str| format!("[http]\ntrusted_proxies = [\"{proxy}\"]\n");
    let allowed = "allow_unauthenticated_proxy = true\n";
    for (lines, status) in [
        (trusted("127.0.0.1"), 403),
        (trusted("10.0.0.0/8") + allowed, 403),
        (trusted("127.0.0.0/8") + allowed, 200),
    ] {
        let (_folder, server) = open_server(&lines);
        for headers in PROXIED {
            let answer = ask(&server.address, "GET", "/v1/streams", headers);
            assert_eq!(answer.status, status, "{lines} {headers:?}");
        }
        let is_said = server.log().contains("everyone who reaches a trusted proxy can read every record");
        assert_eq!(is_said, lines.contains(allowed), "{}", server.log());
    }
}

#[test]
fn a_proxied_request_with_a_token_is_answered() {
    let place = Place::new();
    let server = HttpServer::start(["--config", text(&place.of_two())]);
    for headers in PROXIED {
        assert_eq!(ask(&server.address, "GET", "/v1/streams", headers).status, 401, "{headers:?}");
        let answer = ask(&server.address, "GET", "/v1/streams", &[headers, &[&bearer(ANN)]].concat());
        assert_eq!(answer.status, 200, "{headers:?}");
    }
}

#[test]
fn the_permission_needs_a_proxy_and_no_authentication() {
    let place = Place::new();
    let allowed = "[http]\nallow_unauthenticated_proxy = true\n";
    let proxies = "trusted_proxies = [\"127.0.0.1\"]\n";
    for (lines, problem) in [
        (format!("{allowed}{STORES}"), "add the addresses of the proxy"),
        (format!("{HEAD}{allowed}{proxies}{}{STORES}", token("ann", ANN)), "remove one of them"),
    ] {
        let output = fetchwell(["config", "check", text(&place.configure(&lines))]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && said.contains("http.allow_unauthenticated_proxy"), "{said}");
        assert!(said.contains(problem), "{said}");
    }
}

/// Follows the printed steps with filled-in placeholders, as a reader would.
#[test]
fn the_chatgpt_recipe_makes_a_server_with_authentication() {
    let (folder, store) = demo_store();
    let printed = fetchwell(["client-config", "chatgpt", "--store", text(&store), "--json"]);
    let recipe: Value = serde_json::from_str(&stdout(&printed)).unwrap();
    let recipe = recipe["snippet"].as_str().unwrap();
    let at = |part: &str| recipe.find(part).unwrap_or_else(|| panic!("no {part} in {recipe}"));
    assert!(
        at(" token new ") < at(" serve --config ") && at(" serve --config ") < at("\nngrok "),
        "{recipe}"
    );
    assert!(!recipe.contains("host-header") && recipe.contains("OAuth"), "{recipe}");

    let (_, rest) = recipe.split_once("# 2. ").unwrap();
    let (lines, _) = rest.split_once("# 3. ").unwrap();
    let (_, lines) = lines.split_once('\n').unwrap();
    let lines = lines.replace("YOUR-HOST", "records.example.com").replace("YOUR-ISSUER", "login.example.com");
    let made = stdout(&fetchwell(["token", "new", "--name", "me", "--json"]));
    let made: Value = serde_json::from_str(&made).unwrap();
    let file = folder.path().join("fetchwell.toml");
    std::fs::write(&file, format!("{lines}\n{}", made["configuration"].as_str().unwrap())).unwrap();
    let server = HttpServer::start(["--config", text(&file)]);

    // The request as the tunnel forwards it.
    let through =
        ["host: records.example.com", "x-forwarded-for: 192.0.2.7", "x-forwarded-host: records.example.com"];
    let token = bearer(made["token"].as_str().unwrap());
    for path in ["/mcp", "/mcp/openai"] {
        assert_eq!(post(&server.address, path, &through, PING).status, 401);
        assert_eq!(post(&server.address, path, &[], PING).status, 401, "a program of this machine");
        let answer = post(&server.address, path, &[&through[..], &[&token]].concat(), PING);
        assert_eq!(answer.status, 200, "{answer:?}");
    }
    let answer = ask(&server.address, "GET", "/v1/streams", &[&through[..], &[&token]].concat());
    assert!(answer.status == 200 && answer.text.contains("messages"), "{answer:?}");
}
