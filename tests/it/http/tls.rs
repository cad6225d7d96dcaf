//! The server's own TLS, with certificates that the tests create.

use std::path::Path;
use std::time::Duration;

use fetchwell_http::{Limits, Tls, TlsSettings};
use serde_json::Value;

use crate::support::{HttpServer, OwnServer, demo_store, fetchwell, stderr, text};

const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;

/// Writes a self-signed certificate and its key, and returns the certificate in PEM.
fn write_certificate(folder: &Path) -> String {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    std::fs::write(folder.join("cert.pem"), made.cert.pem()).unwrap();
    std::fs::write(folder.join("key.pem"), made.signing_key.serialize_pem()).unwrap();
    made.cert.pem()
}

fn settings(folder: &Path) -> TlsSettings {
    TlsSettings { certificate: folder.join("cert.pem"), key: folder.join("key.pem") }
}

/// Returns a client that trusts this certificate only.
fn trusting(certificate: &str, only_http_1: bool) -> reqwest::Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let certificate = reqwest::Certificate::from_pem(certificate.as_bytes()).unwrap();
    #[expect(clippy::disallowed_methods, reason = "a client as others write theirs")]
    let builder = reqwest::Client::builder().tls_certs_only([certificate]).timeout(Duration::from_secs(30));
    if only_http_1 { builder.http1_only().build().unwrap() } else { builder.build().unwrap() }
}

/// Returns the response to a ping, and its HTTP version.
async fn ping(client: &reqwest::Client, address: &str) -> Result<(reqwest::Version, Value), reqwest::Error> {
    let port = address.rsplit(':').next().unwrap();
    let answer = client
        .post(format!("https://localhost:{port}/mcp"))
        .header("content-type", "application/json")
        .body(PING)
        .send()
        .await?;
    let version = answer.version();
    Ok((version, serde_json::from_str(&answer.text().await?).unwrap()))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_enables_https_in_both_versions() {
    let (folder, store) = demo_store();
    let certificate = write_certificate(folder.path());
    let config = folder.path().join("fetchwell.toml");
    std::fs::write(&config, "[tls]\ncertificate = \"cert.pem\"\nkey = \"key.pem\"\n").unwrap();
    let server = HttpServer::start(["--store", text(&store), "--config", text(&config)]);
    assert!(server.log().contains("MCP at https://127.0.0.1:"), "{}", server.log());
    let (version, answer) = ping(&trusting(&certificate, false), &server.address).await.unwrap();
    assert_eq!((version, &answer["id"]), (reqwest::Version::HTTP_2, &Value::from(1)));
    let (version, answer) = ping(&trusting(&certificate, true), &server.address).await.unwrap();
    assert_eq!((version, &answer["id"]), (reqwest::Version::HTTP_11, &Value::from(1)));
    // Plain HTTP is not answered.
    let mut plain = std::net::TcpStream::connect(&server.address).unwrap();
    std::io::Write::write_all(&mut plain, b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    let _ = std::io::Read::read_to_end(&mut plain, &mut answer);
    assert!(!answer.starts_with(b"HTTP/"), "{answer:?}");
    // TLS does not replace authentication.
    let everywhere =
        fetchwell(["serve", "--store", text(&store), "--config", text(&config), "--listen", "0.0.0.0:0"]);
    assert!(stderr(&everywhere).contains("which requires authentication"), "{everywhere:?}");
}

#[test]
fn a_renewed_certificate_is_loaded_and_a_broken_one_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let old = write_certificate(folder.path());
    let tls = Tls::load(settings(folder.path())).unwrap();
    let server = OwnServer::start(Limits::default(), Some(tls.clone()), Duration::from_secs(20));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let is_answered =
        |certificate: &str| runtime.block_on(ping(&trusting(certificate, false), &server.address)).is_ok();
    assert!(is_answered(&old));
    std::fs::write(folder.path().join("key.pem"), "-----BEGIN PRIVATE KEY-----\nsekret\n").unwrap();
    assert!(!tls.renew().unwrap_err().to_string().contains("sekret"));
    assert!(is_answered(&old));
    let new = write_certificate(folder.path());
    assert!(!is_answered(&new), "the files were not read again yet");
    tls.renew().unwrap();
    assert!(is_answered(&new) && !is_answered(&old));
}

#[test]
fn certificate_files_are_watched_while_serving() {
    let folder = tempfile::tempdir().unwrap();
    let old = write_certificate(folder.path());
    let tls = Tls::load(settings(folder.path())).unwrap();
    let limits = Limits { certificate: Duration::from_millis(20), ..Limits::default() };
    let server = OwnServer::start(limits, Some(tls), Duration::from_secs(20));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let is_answered =
        |certificate: &str| runtime.block_on(ping(&trusting(certificate, false), &server.address)).is_ok();
    assert!(is_answered(&old));
    // A renewal that is only half written keeps the old certificate in use.
    std::fs::write(folder.path().join("cert.pem"), "").unwrap();
    std::thread::park_timeout(Duration::from_millis(200));
    assert!(is_answered(&old));
    let new = write_certificate(folder.path());
    assert!((0..600).any(|_| {
        std::thread::park_timeout(Duration::from_millis(50));
        is_answered(&new)
    }));
    assert!(!is_answered(&old));
}

#[test]
fn a_missing_handshake_times_out_and_delays_no_other_client() {
    let folder = tempfile::tempdir().unwrap();
    let certificate = write_certificate(folder.path());
    let tls = Tls::load(settings(folder.path())).unwrap();
    let limits = Limits { handshake: Duration::from_millis(200), ..Limits::default() };
    let server = OwnServer::start(limits, Some(tls), Duration::from_secs(20));
    let mut silent = std::net::TcpStream::connect(&server.address).unwrap();
    silent.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    assert!(runtime.block_on(ping(&trusting(&certificate, false), &server.address)).is_ok());
    assert_eq!(std::io::Read::read(&mut silent, &mut [0; 8]).unwrap(), 0);
}

#[test]
fn unusable_certificates_are_errors_at_startup() {
    let (folder, store) = demo_store();
    let config = folder.path().join("fetchwell.toml");
    let refused = |certificate: &str, key: &str| {
        std::fs::write(&config, format!("[tls]\ncertificate = \"{certificate}\"\nkey = \"{key}\"\n"))
            .unwrap();
        let output = fetchwell([
            "serve",
            "--store",
            text(&store),
            "--config",
            text(&config),
            "--listen",
            "127.0.0.1:0",
        ]);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        stderr(&output)
    };
    write_certificate(folder.path());
    std::fs::copy(folder.path().join("key.pem"), folder.path().join("other.pem")).unwrap();
    write_certificate(folder.path());
    std::fs::write(folder.path().join("text.pem"), "nothing").unwrap();
    for (certificate, key, expect) in [
        ("no.pem", "key.pem", "no.pem cannot be read"),
        ("cert.pem", "no.pem", "the key"),
        ("text.pem", "key.pem", "text.pem holds no certificate in PEM"),
        ("cert.pem", "text.pem", "text.pem holds no private key in PEM"),
        ("key.pem", "cert.pem", "key.pem holds no certificate in PEM"),
        ("cert.pem", "other.pem", "cannot be used"),
        (".", "key.pem", "not a regular file"),
    ] {
        let said = refused(certificate, key);
        assert!(said.contains(expect) && said.contains("[tls]"), "{certificate} {key}: {said}");
    }
}

#[test]
fn doctor_opens_the_certificate_and_the_key() {
    let (folder, store) = demo_store();
    let config = folder.path().join("fetchwell.toml");
    std::fs::write(&config, "[tls]\ncertificate = \"cert.pem\"\nkey = \"key.pem\"\n").unwrap();
    let (certificate, key) = (folder.path().join("cert.pem"), folder.path().join("key.pem"));
    let check = |is_ok: bool, part: &str| {
        let output = fetchwell(["doctor", "--store", text(&store), "--config", text(&config), "--json"]);
        assert_eq!(output.status.success(), is_ok, "{output:?}");
        let checks: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
        let tls = checks.iter().find(|check| check["name"] == "tls").unwrap();
        assert_eq!(tls["ok"], is_ok, "{tls}");
        assert!(tls["found"].as_str().unwrap().contains(part), "{part}: {tls}");
    };
    check(false, &format!("the certificate {} cannot be read", text(&certificate)));
    check(false, "check the path in [tls]");
    write_certificate(folder.path());
    check(true, &format!("its key {} can be used", text(&key)));
    std::fs::remove_file(&key).unwrap();
    check(false, &format!("the key {} cannot be read", text(&key)));
}

#[cfg(unix)]
#[test]
fn a_world_readable_tls_key_causes_a_warning() {
    use std::os::unix::fs::PermissionsExt;

    let (folder, store) = demo_store();
    write_certificate(folder.path());
    let config = folder.path().join("fetchwell.toml");
    std::fs::write(&config, "[tls]\ncertificate = \"cert.pem\"\nkey = \"key.pem\"\n").unwrap();
    let key = folder.path().join("key.pem");
    for (mode, is_warned_of) in [(0o644, true), (0o602, true), (0o640, false), (0o600, false)] {
        std::fs::set_permissions(&key, std::fs::Permissions::from_mode(mode)).unwrap();
        let warning = format!("can read or write the TLS key {} (mode {mode:o}); run `chmod 600", text(&key));
        let server = HttpServer::start(["--store", text(&store), "--config", text(&config)]);
        assert_eq!(server.log().contains(&warning), is_warned_of, "{mode:o}: {}", server.log());
        let checked = fetchwell(["config", "check", text(&config)]);
        assert_eq!(stderr(&checked).contains(&warning), is_warned_of, "{mode:o}: {checked:?}");
        let doctor = fetchwell(["doctor", "--store", text(&store), "--config", text(&config), "--json"]);
        let checks: Value = serde_json::from_slice(&doctor.stdout).unwrap();
        let tls = checks.as_array().unwrap().iter().find(|check| check["name"] == "tls").unwrap();
        assert_eq!(
            tls["warning"].as_str().is_some_and(|said| said.contains(&warning)),
            is_warned_of,
            "{tls}"
        );
    }
}
