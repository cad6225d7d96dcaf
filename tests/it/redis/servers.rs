//! Replicas of a server with two callers, the Redis that they share, and a proxy that delays its answers.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use serde_json::Value;

use crate::support::hosted::{ANN, BOB, HEAD, Place, STORES, bearer, token};
use crate::support::{Answer, HttpServer, ask, binary, text};

/// Returns the URL of the Redis of all tests, with keys of one test alone.
pub(super) fn shared_url() -> String {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    format!("{}?prefix=test-{}-{number}", variable("FETCHWELL_TEST_REDIS"), std::process::id())
}

pub(super) fn variable(name: &str) -> String {
    #[expect(clippy::disallowed_methods, reason = "tests/redis/run sets it for the tests")]
    let value = std::env::var(name);
    value.unwrap_or_else(|_| {
        panic!("{name} is not set; run these tests with `tests/redis/run cargo test --test it -- --ignored redis`")
    })
}

/// Stores of two callers, and a configuration of replicas that share only a Redis and the files with the keys.
pub(super) struct Replicas {
    pub(super) place: Place,
    config: PathBuf,
}

impl Replicas {
    pub(super) fn new(url: &str, more: &str) -> Self {
        let place = Place::new();
        let config = place.configure(&format!(
            "state = \"{url}\"\n{HEAD}{more}{}{}{STORES}",
            token("ann", ANN),
            token("bob", BOB)
        ));
        Self { place, config }
    }

    /// Creates replicas with another configuration, in the folder of its stores.
    pub(super) fn configured(place: Place, text: &str) -> Self {
        let config = place.configure(text);
        Self { place, config }
    }

    /// Starts a replica with a state directory of its own and the same keys.
    pub(super) fn start(&self, name: &str) -> HttpServer {
        self.start_by(binary(), name)
    }

    /// Starts a replica with another clock of cursors, such as `+1h`.
    pub(super) fn start_with_clock(&self, name: &str, clock: &str) -> HttpServer {
        self.start_with(binary(), name, Some(clock))
    }

    /// Starts a replica by a command, such as one with another system clock.
    pub(super) fn start_by(&self, command: Command, name: &str) -> HttpServer {
        self.start_with(command, name, None)
    }

    fn start_with(&self, command: Command, name: &str, clock: Option<&str>) -> HttpServer {
        let state = self.place.path(name);
        let keys = self.place.path("keys");
        if keys.exists() {
            let copy = Command::new("cp").args(["-a", text(&keys), text(&state)]).status().unwrap();
            assert!(state.exists() && copy.success());
        }
        let [config, state_dir] = [text(&self.config), text(&state)];
        let address = "127.0.0.1:0";
        let server = match clock {
            None => HttpServer::start_with(command, address, ["--config", config, "--state-dir", state_dir]),
            Some(clock) => {
                let arguments = ["--config", config, "--state-dir", state_dir, "--clock", clock];
                HttpServer::start_with(command, address, arguments)
            }
        };
        if !keys.exists() {
            fs::create_dir(&keys).unwrap();
            for file in ["cursor-keys.json", "change-key.json"] {
                let copy = Command::new("cp").args(["-a", text(&state.join(file)), text(&keys)]).status();
                assert!(copy.unwrap().success());
            }
        }
        server
    }

    /// Runs `fetchwell doctor`, and returns the check of the shared state.
    pub(super) fn doctor(&self) -> Value {
        let output = binary().args(["doctor", "--json", "--config", text(&self.config)]).output().unwrap();
        let shown = format!("{output:?}");
        assert!(!shown.contains("hunter2"), "{shown}");
        let checks: Value = serde_json::from_slice(&output.stdout).unwrap();
        checks.as_array().unwrap().iter().find(|check| check["name"] == "state").unwrap().clone()
    }
}

/// Returns the address of `/health` and `/metrics` of a replica with `ops_listen`.
pub(super) fn ops_address(server: &HttpServer) -> String {
    let log = server.log();
    let address = log.lines().find_map(|line| {
        let (address, _) = line.split_once("/health and /metrics at ")?.1.split_once(' ')?;
        Some(address.to_owned())
    });
    address.unwrap_or_else(|| panic!("{log}"))
}

/// Requests a path of `/v1` or `/api/v1` as a caller.
pub(super) fn read(server: &HttpServer, caller: &str, target: &str) -> Answer {
    ask(&server.address, "GET", target, &[&bearer(caller)])
}

/// Password of the user with the documented rules.
const PASSWORD: &str = "r3dis-5ecret";

/// Returns the ACL rules of `docs/redis.md`.
pub(super) fn documented_rules() -> Vec<String> {
    let document = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/redis.md")).unwrap();
    let rules = document.split('`').find(|code| code.starts_with("user fetchwell on")).unwrap();
    rules.split(' ').skip(2).map(|rule| rule.replace("PASSWORD", PASSWORD)).collect()
}

/// A Redis of one test, which can be stopped.
pub(super) struct OwnRedis {
    pub(super) port: u16,
    process: Option<Child>,
    folder: tempfile::TempDir,
    options: Vec<String>,
}

impl OwnRedis {
    pub(super) fn start(options: &[&str]) -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let options = options.iter().map(|&option| option.to_owned()).collect();
        let mut redis = Self { port, process: None, folder: tempfile::tempdir().unwrap(), options };
        redis.restart();
        redis
    }

    /// Reserves a port without starting a server.
    pub(super) fn stopped() -> Self {
        let mut redis = Self::start(&[]);
        redis.kill();
        redis
    }

    pub(super) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/0", self.port)
    }

    /// Gives the user `fetchwell` these rules alone.
    pub(super) fn set_rules(&self, rules: &[String]) {
        let rules: Vec<&str> = rules.iter().map(String::as_str).collect();
        let reply = self.command(&[&["ACL", "SETUSER", "fetchwell", "reset"], rules.as_slice()].concat());
        assert!(reply.starts_with("+OK"), "{reply}");
    }

    /// Returns the URL of the user of [`documented_rules`], with its password in a file of a folder.
    pub(super) fn url_with_rules(&self, folder: &Path) -> String {
        let password = folder.join("password");
        fs::write(&password, PASSWORD).unwrap();
        format!("redis://fetchwell@127.0.0.1:{}/0?password=file:{}", self.port, text(&password))
    }

    pub(super) fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().unwrap();
            process.wait().unwrap();
        }
    }

    /// Starts the server at its port, without data.
    pub(super) fn restart(&mut self) {
        self.kill();
        let port = self.port.to_string();
        let mut command = Command::new(variable("FETCHWELL_TEST_REDIS_SERVER"));
        command.args(["--port", &port, "--bind", "127.0.0.1", "--save", "", "--dir"]).arg(self.folder.path());
        command.args(&self.options).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        self.process = Some(command.spawn().unwrap());
        for _ in 0..1_500 {
            if TcpStream::connect(("127.0.0.1", self.port)).is_ok() {
                return;
            }
            std::thread::park_timeout(Duration::from_millis(20));
        }
        panic!("Redis does not start at port {}", self.port);
    }

    /// Sends a command, and returns the reply as it was received.
    pub(super) fn command(&self, words: &[&str]) -> String {
        command(&format!("127.0.0.1:{}", self.port), words)
    }
}

impl Drop for OwnRedis {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Returns all keys and values below the prefix of a URL, as text.
pub(super) fn contents(url: &str) -> String {
    let (address, prefix) = url.strip_prefix("redis://").unwrap().split_once("/0?prefix=").unwrap();
    let keys = command(address, &["KEYS", &format!("{prefix}:*")]);
    let keys: Vec<&str> = keys.lines().filter(|line| line.starts_with(prefix)).collect();
    let value = |key: &&str| {
        let read =
            if key.contains(":of:") { ["ZRANGE", key, "0", "-1"].to_vec() } else { ["GET", key].to_vec() };
        format!("{key} {}", command(address, &read))
    };
    keys.iter().map(value).collect()
}

/// Returns the remaining lifetime of each key below the prefix of a URL, in milliseconds; negative without one.
pub(super) fn lifetimes(url: &str) -> Vec<(String, i64)> {
    let (address, prefix) = url.strip_prefix("redis://").unwrap().split_once("/0?prefix=").unwrap();
    let keys = command(address, &["KEYS", &format!("{prefix}:*")]);
    let keys = keys.lines().filter(|line| line.starts_with(prefix));
    keys.map(|key| {
        let left = command(address, &["PTTL", key]);
        (key.to_owned(), left.trim().trim_start_matches(':').parse().unwrap())
    })
    .collect()
}

fn command(address: &str, words: &[&str]) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let mut sent = format!("*{}\r\n", words.len());
    for word in words.iter() {
        sent.push_str(&format!("${}\r\n{word}\r\n", word.len()));
    }
    stream.write_all(format!("{sent}*1\r\n$4\r\nQUIT\r\n").as_bytes()).unwrap();
    let mut reply = Vec::new();
    stream.read_to_end(&mut reply).unwrap();
    let reply = String::from_utf8_lossy(&reply).replace("\r\n", "\n");
    reply.strip_suffix("+OK\n").unwrap_or(&reply).to_owned()
}

/// A proxy in front of a Redis that delays every answer.
pub(super) struct DelayProxy {
    pub(super) port: u16,
    delay_ms: Arc<AtomicU64>,
}

impl DelayProxy {
    pub(super) fn start(upstream: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let delay_ms = Arc::new(AtomicU64::new(0));
        let delay = Arc::clone(&delay_ms);
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let Ok(server) = TcpStream::connect(("127.0.0.1", upstream)) else { continue };
                let (from_client, to_server) = (client.try_clone().unwrap(), server.try_clone().unwrap());
                std::thread::spawn(move || forward(from_client, to_server, &AtomicU64::new(0)));
                let delay = Arc::clone(&delay);
                std::thread::spawn(move || forward(server, client, &delay));
            }
        });
        Self { port, delay_ms }
    }

    pub(super) fn delay(&self, by: Duration) {
        self.delay_ms.store(u64::try_from(by.as_millis()).unwrap(), Ordering::SeqCst);
    }
}

fn forward(mut from: TcpStream, mut to: TcpStream, delay_ms: &AtomicU64) {
    let mut buffer = [0; 64 * 1024];
    while let Ok(read @ 1..) = from.read(&mut buffer) {
        std::thread::park_timeout(Duration::from_millis(delay_ms.load(Ordering::SeqCst)));
        if to.write_all(&buffer[..read]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(std::net::Shutdown::Both);
    let _ = from.shutdown(std::net::Shutdown::Both);
}
