//! Tokens leave this machine encrypted, and only to their own origin: through the built binary.

use std::path::Path;
use std::process::Output;

use serde_json::{Value, json};

use crate::support::hosted::{Place, authorization_server, bearer, start, with_authorization_server};
use crate::support::{
    CREDENTIAL, FakeServer, HttpServer, Reply, Request, ask, binary, connect, fetchwell, post, recorded,
    stderr, stdout, text,
};

#[track_caller]
fn failed(output: &Output, code: i32, part: &str) {
    assert_eq!(output.status.code(), Some(code), "{output:?}");
    let shown = format!("{}{}", stderr(output), String::from_utf8_lossy(&output.stdout));
    assert!(shown.contains(part), "`{part}` is not in {shown}");
    assert!(!shown.contains("5ecret"), "{shown}");
}

fn write(folder: &Path, toml: &str) -> String {
    let file = folder.join("fetchwell.toml");
    std::fs::write(&file, toml).unwrap();
    text(&file).to_owned()
}

/// Starts a server that answers searches as a record server does.
fn searched() -> FakeServer {
    FakeServer::start(|request: &Request| {
        if request.line.starts_with("GET /v1/search") {
            recorded("search-lexical")
        } else {
            Reply::Json(404, "{}".to_owned())
        }
    })
}

#[test]
fn plain_http_to_another_machine_is_refused() {
    // An address reserved for documentation: no server is there.
    let url = "http://192.0.2.1:7663";
    for command in
        [&["search", "x"][..], &["serve", "--stdio"], &["client-config", "codex"], &["connections"]]
    {
        let output = binary().args(command).args(["--provider-url", url]).output().unwrap();
        failed(&output, 64, "`allow_insecure = true`");
    }
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("new.toml");
    let added = fetchwell(["source", "add", "work", "--url", url, "--config", text(&config)]);
    failed(&added, 64, "`http://192.0.2.1:7663` is refused");
    assert!(!config.exists());

    let source = format!("[[source]]\nname = \"work\"\nurl = \"{url}\"\ncredential = \"env:WORK_TOKEN\"\n");
    let caller = source.replace("env:WORK_TOKEN", "caller");
    for toml in [&source, &caller] {
        let file = write(folder.path(), toml);
        let unencrypted = "fetchwell.toml:3: source[0].url: over `http://192.0.2.1:7663` the credential";
        for (command, code) in
            [(&["config", "check", &file][..], 1), (&["search", "x", "--config", &file], 2)]
        {
            let output = binary().args(command).env("WORK_TOKEN", "tok_5ecret").output().unwrap();
            failed(&output, code, unencrypted);
        }
    }
    let file = write(folder.path(), &source.replace("credential", "allow_insecure = false\ncredential"));
    failed(&fetchwell(["config", "check", &file]), 1, "set allow_insecure = true");
    let file = write(folder.path(), &source.replace("credential", "allow_insecure = true\ncredential"));
    assert!(stdout(&fetchwell(["config", "check", &file])).contains("is valid: 1 source"));
    assert!(stdout(&fetchwell(["config", "check", "--config", &file])).contains("is valid: 1 source"));
    let file = write(folder.path(), "[[source]]\nname = \"a\"\nstore = \"a.db\"\nallow_insecure = true\n");
    failed(&fetchwell(["config", "check", &file]), 1, "allow_insecure need a url");
}

#[test]
fn spans_to_another_machine_are_not_sent_over_plain_http() {
    let folder = tempfile::tempdir().unwrap();
    let toml = "[telemetry]\notlp_endpoint = \"http://192.0.2.1:4318\"\n";
    let file = write(folder.path(), toml);
    failed(&fetchwell(["config", "check", &file]), 1, "fetchwell.toml:2: telemetry.otlp_endpoint: over");
    let file = write(folder.path(), &format!("{toml}allow_insecure = true\n"));
    stdout(&fetchwell(["config", "check", &file]));

    let store = folder.path().join("demo.db");
    stdout(&fetchwell(["demo", "--store", text(&store)]));
    let serve = |arguments: &[&str]| {
        let mut command = binary();
        command.args(["serve", "--stdio", "--store", text(&store)]).args(arguments);
        command
            .env("OTEL_EXPORTER_OTLP_ENDPOINT", "http://192.0.2.1:4318")
            .stdin(std::process::Stdio::null());
        command.output().unwrap()
    };
    failed(&serve(&[]), 2, "OTEL_EXPORTER_OTLP_ENDPOINT: over `http://192.0.2.1:4318/`");
    let file = write(folder.path(), "[telemetry]\nallow_insecure = true\n");
    stdout(&serve(&["--config", &file]));
}

#[test]
fn a_cached_credential_of_https_is_not_sent_over_http() {
    let server = searched();
    let folder = tempfile::tempdir().unwrap();
    let search = |cache: &Path| {
        let arguments = ["search", "invoice", "--provider-url", &server.url, "--cache-root", text(cache)];
        fetchwell(arguments)
    };
    let encrypted = server.url.replace("http://", "https://");
    connect(folder.path(), &encrypted, CREDENTIAL);
    failed(&search(folder.path()), 78, &format!("is for {encrypted} and is not sent to {}", server.url));
    assert!(server.requests().is_empty());
    connect(folder.path(), &server.url, CREDENTIAL);
    stdout(&search(folder.path()));
    let sent: Vec<_> = server.requests().into_iter().map(|request| request.authorization).collect();
    assert!(
        !sent.is_empty() && sent.iter().all(|sent| sent.as_deref() == Some("Bearer tok_5ecret")),
        "{sent:?}"
    );
}

#[test]
fn a_proxy_of_the_environment_does_not_get_a_token_for_this_machine() {
    let (server, proxy) = (searched(), searched());
    let folder = tempfile::tempdir().unwrap();
    connect(folder.path(), &server.url, CREDENTIAL);
    let mut command = binary();
    command.args(["search", "invoice", "--provider-url", &server.url, "--cache-root", text(folder.path())]);
    for variable in ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"] {
        command.env(variable, &proxy.url);
    }
    command.env_remove("NO_PROXY").env_remove("no_proxy").env_remove("REQUEST_METHOD");
    stdout(&command.output().unwrap());
    assert!(proxy.requests().is_empty(), "{:?}", proxy.requests());
    assert!(!server.requests().is_empty());
}

/// A token with letters of both cases that is also valid as an error code, a media type and a host.
const TOKEN: &str = "Tok_5ecret-ABCdef.0123456789xYz";

/// Returns the token in the encodings that a server may use.
fn forms(token: &str) -> Vec<String> {
    use base64::Engine;
    use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
    let percent = |token: &str| token.bytes().map(|byte| format!("%{byte:02X}")).collect::<String>();
    vec![
        token.to_owned(),
        percent(token),
        percent(&percent(token)),
        token.to_uppercase(),
        token.to_lowercase(),
        STANDARD_NO_PAD.encode(token),
        URL_SAFE_NO_PAD.encode(token),
        STANDARD_NO_PAD.encode(format!("Bearer {token}")),
        token.bytes().map(|byte| format!("{byte:02x}")).collect(),
    ]
}

/// Returns an error that repeats the token of the request in every place, the second time escaped.
fn echo(request: &Request) -> Reply {
    let token = request.authorization.clone().unwrap_or_default().replace("Bearer ", "");
    let all = forms(&token).join(" ");
    let path = request.line.trim_start_matches("GET ");
    if path.starts_with("/v1/schema") {
        let connection =
            json!({"connection_id": format!("c-{token}"), "display_name": format!("Mail {token}")});
        let stream = json!({"name": "mail", "granted_connections": [connection]});
        let connector = json!({"object": "connector", "connector_key": "mail", "streams": [stream]});
        return Reply::Json(200, json!({"object": "schema", "connectors": [connector]}).to_string());
    }
    if path.contains("redirect") {
        return Reply::Full(302, vec![("location", format!("https://{token}.example/"))], String::new());
    }
    if path.contains("html") {
        return Reply::Full(200, vec![("content-type", format!("text/{token}"))], "<html>".to_owned());
    }
    let error = json!({"error": {
        "type": "invalid_request_error",
        "code": token,
        "message": format!("refused: {all}"),
        "hint": format!("not {all}"),
        "param": token,
        "available_connections": [{"connection_id": token, "display_name": all}],
    }})
    .to_string();
    let escaped: String = token.bytes().map(|byte| format!("\\u{byte:04X}")).collect();
    let error = if path.contains("escaped") { error.replace(&token, &escaped) } else { error };
    let status = if path.contains("conflict") { 409 } else { 400 };
    Reply::Json(status, error)
}

/// Checks that a text has no form of the token, in any case, and that something was redacted.
#[track_caller]
fn redacted(shown: &str, token: &str) {
    assert_untold(shown, token);
    assert!(shown.contains("[redacted]"), "{shown}");
}

#[track_caller]
fn assert_untold(shown: &str, token: &str) {
    let lower = shown.to_lowercase();
    for form in forms(token) {
        // The last characters of Base64 depend on the bytes after them.
        let form = form.to_lowercase();
        let part = form.get(2..form.len() - 2).unwrap();
        assert!(!lower.contains(part), "{part} is in {shown}");
    }
    assert!(!lower.contains("5ecret"), "{shown}");
}

#[test]
fn a_token_that_a_record_server_echoes_is_redacted_in_errors_and_logs() {
    let server = FakeServer::start(echo);
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("token"), TOKEN).unwrap();
    connect(&folder.path().join(".pdpp"), &server.url, &json!({ "access_token": TOKEN }).to_string());
    for credential in ["pdpp-cache", "env:WORK_TOKEN", "file:token", "command:cat token"] {
        let source = format!("[[source]]\nname = \"work\"\nurl = \"{}\"\n", server.url);
        let file = write(folder.path(), &format!("{source}credential = \"{credential}\"\n"));
        for command in [
            &["search", "plain"][..],
            &["search", "escaped"],
            &["search", "conflict", "--json"],
            &["search", "redirect"],
            &["doctor"],
            &["connections"],
        ] {
            let arguments = ["--config", &file, "--log", "trace"];
            let output = binary().args(command).args(arguments).env("WORK_TOKEN", TOKEN).output().unwrap();
            let shown = format!("{}{}", stderr(&output), String::from_utf8_lossy(&output.stdout));
            match command {
                ["search", ..] | ["connections"] => redacted(&shown, TOKEN),
                _ => assert_untold(&shown, TOKEN),
            }
        }
        let arguments = ["search", "html", "--config", &file];
        let output = binary().args(arguments).env("WORK_TOKEN", TOKEN).output().unwrap();
        assert!(!output.status.success() && stderr(&output).contains("not JSON"), "{output:?}");
        assert_untold(&stderr(&output), TOKEN);
    }
    let file = text(&folder.path().join("fetchwell.toml")).to_owned();
    let server = HttpServer::start(["--config", &file, "--log", "trace"]);
    for query in ["plain", "escaped", "conflict"] {
        let answer = ask(&server.address, "GET", &format!("/v1/search?q={query}"), &[]);
        assert!(answer.status >= 400, "{answer:?}");
        redacted(&answer.text, TOKEN);
        redacted(&tool(&server, &[], "search", &json!({ "query": query })), TOKEN);
    }
    // The choices come from the schema.
    let arguments = json!({"stream": "mail", "connection_id": "nowhere"});
    assert_untold(&tool(&server, &[], "query_records", &arguments), TOKEN);
    redacted(&tool(&server, &[], "schema", &json!({})), TOKEN);
    assert_untold(&server.end(), TOKEN);
}

/// Returns the whole response of a tool over `/mcp`.
fn tool(server: &HttpServer, headers: &[&str], name: &str, arguments: &Value) -> String {
    let params = json!({ "name": name, "arguments": arguments });
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    post(&server.address, "/mcp", headers, &message.to_string()).text
}

#[test]
fn the_token_of_a_caller_is_redacted_too() {
    let (place, asked, records) = (Place::new(), authorization_server(), FakeServer::start(echo));
    std::fs::write(place.path("secret"), "s3cret\n").unwrap();
    let source = format!("[[source]]\nname = \"mail\"\nurl = \"{}\"\ncredential = \"caller\"\n", records.url);
    let server = start(&place.configure(&with_authorization_server(&asked, &source)));
    for token in ["ann-package", "ann-narrow"] {
        let header = bearer(token);
        for query in ["plain", "escaped", "conflict"] {
            let target = format!("/v1/search?q={query}");
            for shown in [
                ask(&server.address, "GET", &target, &[&header]).text,
                tool(&server, &[&header], "search", &json!({ "query": query })),
            ] {
                assert!(shown.contains("[redacted]") && !shown.to_lowercase().contains(token), "{shown}");
            }
        }
    }
    assert!(!server.end().contains("ann-"));
}
