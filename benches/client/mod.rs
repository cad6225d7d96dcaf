//! The release binary over real stdio, as the benches call it.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

pub(crate) fn binary() -> &'static str {
    env!("CARGO_BIN_EXE_fetchwell")
}

pub(crate) struct Client {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    line: String,
    id: usize,
    /// Cursors and keys. The directory of the user may have thousands of pages, which make each call slower.
    _state: tempfile::TempDir,
}

impl Client {
    /// Starts the server and returns the time until it answered `initialize`.
    pub(crate) fn start(arguments: &[&str]) -> (Self, Duration) {
        let state = tempfile::tempdir().unwrap();
        let started = Instant::now();
        let mut process = Command::new(binary())
            .env("XDG_STATE_HOME", state.path())
            .args(["serve", "--stdio", "--log", "error"])
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (input, output) = (process.stdin.take().unwrap(), process.stdout.take().unwrap());
        let output = BufReader::new(output);
        let mut client = Self { process, input, output, line: String::new(), id: 0, _state: state };
        client.send(r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"0"}}}"#);
        client.receive();
        let took = started.elapsed();
        client.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        (client, took)
    }

    pub(crate) fn send(&mut self, message: &str) {
        self.line.clear();
        self.line.push_str(message);
        self.line.push('\n');
        self.input.write_all(self.line.as_bytes()).unwrap();
    }

    pub(crate) fn receive(&mut self) -> &str {
        self.line.clear();
        self.output.read_line(&mut self.line).unwrap();
        &self.line
    }

    pub(crate) fn call(&mut self, tool: &str, arguments: &str) -> Duration {
        self.id += 1;
        let id = self.id;
        let message = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments}}}}}"#
        );
        let started = Instant::now();
        self.send(&message);
        assert!(!self.receive().contains("isError\":true"), "{}", self.line);
        started.elapsed()
    }

    /// Makes calls and prints their latencies.
    pub(crate) fn measure(&mut self, tool: &str, arguments: &str, calls: usize) {
        let took = (0..calls).map(|_| self.call(tool, arguments)).collect();
        print_times(&format!("{tool} {arguments}"), took);
    }

    /// Prints the latencies of pings: the share of two pipes and rmcp in every call.
    pub(crate) fn measure_ping(&mut self, calls: usize) {
        let ping = |client: &mut Self| {
            let started = Instant::now();
            client.send(r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#);
            client.receive();
            started.elapsed()
        };
        let took = (0..calls).map(|_| ping(self)).collect();
        print_times("ping", took);
    }

    /// Returns the number of threads of the process, and of its open files and sockets.
    pub(crate) fn threads_and_descriptors(&self) -> (usize, usize) {
        let entries =
            |name: &str| std::fs::read_dir(format!("/proc/{}/{name}", self.process.id())).unwrap().count();
        (entries("task"), entries("fd"))
    }

    /// Returns the text of the last answer.
    pub(crate) fn answer(&self) -> &str {
        &self.line
    }

    /// Returns the resident memory in MB.
    pub(crate) fn resident(&self) -> f64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap() / 1_024.0
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

pub(crate) fn print_times(what: &str, mut took: Vec<Duration>) {
    took.sort_unstable();
    let at = |percent: usize| ms(took[took.len() * percent / 100]);
    println!("{what:<38} p50 {:>8.3} ms   p99 {:>8.3} ms", at(50), at(99));
}

pub(crate) fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1_000.0
}
