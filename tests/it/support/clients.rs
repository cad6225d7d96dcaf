//! The binary as clients run it, and a model that sees only the output of clients.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use rmcp::model::{CallToolRequestParams, CallToolResult, Tool};
use rmcp::service::RunningService;
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::{ClientLifecycleMode, ClientServiceExt, RoleClient};
use serde_json::Value;

use super::binary;
use super::wait_until_or;

/// A connected client that reads results as a model does: by their text alone.
pub(crate) struct Model {
    client: RunningService<RoleClient, ()>,
    /// The process of a server over stdio. Dropping it kills the process.
    _process: Option<tokio::process::Child>,
}

impl Model {
    /// Starts `fetchwell serve --stdio` with these arguments, and connects a client to it.
    pub(crate) async fn over_stdio<const N: usize>(arguments: [&str; N]) -> Self {
        Self::over_stdio_with(arguments, ClientLifecycleMode::Initialize).await
    }

    pub(crate) async fn over_stdio_with<const N: usize>(
        arguments: [&str; N],
        lifecycle: ClientLifecycleMode,
    ) -> Self {
        let mut command = binary();
        command.args(["serve", "--stdio", "--log", "error"]).args(arguments);
        Self::over_process(command, lifecycle).await
    }

    /// Starts a server by a command line, such as that of a client's file.
    pub(crate) async fn over_command(command: Command) -> Self {
        Self::over_process(command, ClientLifecycleMode::Initialize).await
    }

    async fn over_process(command: Command, lifecycle: ClientLifecycleMode) -> Self {
        let mut command = tokio::process::Command::from(command);
        let mut process =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
        let streams = (process.stdout.take().unwrap(), process.stdin.take().unwrap());
        let client = ().serve_with_lifecycle(streams, lifecycle).await.unwrap();
        Self { client, _process: Some(process) }
    }

    /// Connects a client to a URL.
    pub(crate) async fn over_http(url: String, lifecycle: ClientLifecycleMode) -> Self {
        // The HTTP library of the client needs a default provider; a second installation has no effect.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let transport = StreamableHttpClientTransport::from_uri(url);
        Self { client: ().serve_with_lifecycle(transport, lifecycle).await.unwrap(), _process: None }
    }

    pub(crate) fn client(&self) -> &RunningService<RoleClient, ()> {
        &self.client
    }

    pub(crate) async fn tools(&self) -> Vec<Tool> {
        self.client.list_all_tools().await.unwrap()
    }

    /// Returns the payload of a successful call, read from its text.
    #[track_caller]
    pub(crate) fn call(&self, tool: &'static str, arguments: Value) -> impl Future<Output = Value> {
        let called = self.call_raw(tool, arguments);
        async move {
            let result = called.await;
            let (text, structured) = channels(&result);
            assert_ne!(result.is_error, Some(true), "{text}");
            // Both channels have the same JSON, byte for byte.
            assert_eq!(text, structured.to_string());
            serde_json::from_str(&text).unwrap()
        }
    }

    /// Returns the error of a failed call, read from its text.
    #[track_caller]
    pub(crate) fn refusal(&self, tool: &'static str, arguments: Value) -> impl Future<Output = Value> {
        let called = self.call_raw(tool, arguments);
        async move {
            let result = called.await;
            let (text, structured) = channels(&result);
            assert_eq!(result.is_error, Some(true), "{text}");
            assert_eq!(text, structured.to_string());
            assert!(text.len() <= 2_048, "{text}");
            serde_json::from_str::<Value>(&text).unwrap()["error"].take()
        }
    }

    pub(crate) fn call_raw(
        &self,
        tool: &'static str,
        arguments: Value,
    ) -> impl Future<Output = CallToolResult> {
        let peer = self.client.peer().clone();
        async move {
            let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
            peer.call_tool(CallToolRequestParams::new(tool).with_arguments(arguments)).await.unwrap()
        }
    }
}

fn channels(result: &CallToolResult) -> (String, Value) {
    let [only] = result.content.as_slice() else { panic!("one content item, not {:?}", result.content) };
    let text = only.as_text().unwrap().text.clone();
    (text, result.structured_content.clone().unwrap())
}

/// `fetchwell serve` over HTTP at a free port.
pub(crate) struct HttpServer {
    pub(crate) process: Child,
    pub(crate) address: String,
    log: Arc<Mutex<String>>,
    reader: Option<std::thread::JoinHandle<()>>,
    /// The state directory, unless the arguments name another one.
    _state: tempfile::TempDir,
}

impl HttpServer {
    pub(crate) fn start<const N: usize>(arguments: [&str; N]) -> Self {
        Self::start_at("127.0.0.1:0", arguments)
    }

    pub(crate) fn start_at<const N: usize>(address: &str, arguments: [&str; N]) -> Self {
        Self::start_with(binary(), address, arguments)
    }

    /// Starts a server with additional environment variables.
    pub(crate) fn start_with<const N: usize>(
        mut command: Command,
        address: &str,
        arguments: [&str; N],
    ) -> Self {
        let state = tempfile::tempdir().unwrap();
        command.args(["serve", "--listen", address]).args(arguments);
        if !arguments.contains(&"--state-dir") {
            command.arg("--state-dir").arg(state.path());
        }
        let mut process =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(process.stderr.take().unwrap()).lines();
        // Warnings come before the line with the address, and may contain URLs of sources.
        let mut first = lines.next().unwrap().unwrap();
        let address = loop {
            let announced =
                first.lines().last().and_then(|line| line.strip_prefix("fetchwell serves MCP at "));
            if let Some(announced) = announced {
                break announced.split("://").nth(1).unwrap().split('/').next().unwrap().to_owned();
            }
            first = format!("{first}\n{}", lines.next().unwrap_or_else(|| panic!("{first}")).unwrap());
        };
        let log = Arc::new(Mutex::new(first));
        let rest = Arc::clone(&log);
        let reader = std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                rest.lock().unwrap().push_str(&format!("\n{line}"));
            }
        });
        Self { process, address, log, reader: Some(reader), _state: state }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Returns the output on standard error so far.
    pub(crate) fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    /// Waits for an event that is not visible in responses.
    #[track_caller]
    pub(crate) fn wait_until(&self, what: &str, done: impl Fn() -> bool) {
        wait_until_or(|| format!("{what}: {}", self.log()), done);
    }

    /// Sends the signal to stop, as a service manager does.
    #[cfg(unix)]
    pub(crate) fn ask_to_stop(&self) {
        let id = self.process.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    }

    /// Stops the server, and returns its output on standard error.
    #[cfg(unix)]
    #[track_caller]
    pub(crate) fn stop(mut self) -> String {
        self.ask_to_stop();
        assert!(self.process.wait().unwrap().success());
        self.end()
    }

    /// Kills the server, and returns its output on standard error. A line that was written before a response may be
    /// read after it.
    pub(crate) fn end(mut self) -> String {
        let _ = self.process.kill();
        self.reader.take().unwrap().join().unwrap();
        self.log.lock().unwrap().clone()
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// `fetchwell serve --stdio` with access to its streams, for messages that a correct client would not send.
pub(crate) struct StdioServer {
    pub(crate) process: Child,
    pub(crate) output: BufReader<std::process::ChildStdout>,
}

impl StdioServer {
    pub(crate) fn start<const N: usize>(arguments: [&str; N]) -> Self {
        Self::start_with(binary(), arguments)
    }

    /// Starts a server with additional environment variables, or in a namespace.
    pub(crate) fn start_with<const N: usize>(mut command: Command, arguments: [&str; N]) -> Self {
        command.args(["serve", "--stdio"]).args(arguments);
        let mut process =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        Self { process, output }
    }

    /// Sends a line.
    pub(crate) fn send(&mut self, line: &str) {
        use std::io::Write;
        let input = self.process.stdin.as_mut().unwrap();
        input.write_all(line.as_bytes()).unwrap();
        input.write_all(b"\n").unwrap();
        input.flush().unwrap();
    }

    /// Returns the next line of output, which must be a JSON-RPC message.
    pub(crate) fn receive(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        let message: Value =
            serde_json::from_str(&line).unwrap_or_else(|_| panic!("not a message: {line:?}"));
        assert_eq!(message["jsonrpc"], "2.0");
        message
    }

    /// Performs the handshake of the revisions before 2026-07-28.
    pub(crate) fn initialize(&mut self, revision: &str) -> Value {
        self.send(&format!(
            r#"{{"jsonrpc":"2.0","id":0,"method":"initialize","params":{{"protocolVersion":"{revision}","capabilities":{{}},"clientInfo":{{"name":"test","version":"0"}}}}}}"#
        ));
        let answer = self.receive();
        self.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        answer
    }

    /// Closes the input and waits for the end. Returns the rest of the output, which must be messages, the exit status,
    /// and standard error.
    pub(crate) fn end(mut self) -> (Vec<Value>, std::process::ExitStatus, String) {
        drop(self.process.stdin.take());
        let mut rest = Vec::new();
        let mut line = String::new();
        while self.output.read_line(&mut line).unwrap() > 0 {
            rest.push(serde_json::from_str(&line).unwrap_or_else(|_| panic!("not a message: {line:?}")));
            line.clear();
        }
        let mut log = String::new();
        std::io::Read::read_to_string(&mut self.process.stderr.take().unwrap(), &mut log).unwrap();
        (rest, self.process.wait().unwrap(), log)
    }
}
