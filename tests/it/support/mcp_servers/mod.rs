//! MCP servers that are sources in tests: two of other vendors, and two with awkward answers. `tests/mcp/run` installs
//! them, and `tests/mcp/serve` starts them. `tests/mcp/awkward.py` and `tests/mcp/awkward.mjs` describe their settings.

mod events;

use std::io::{BufRead, BufReader};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use super::{fixture, wait_until};
pub(crate) use events::EventLog;

/// A server that `tests/mcp/serve` starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum McpServer {
    /// OpenAI's sample for deep research: `search` and `fetch`, orders of cupcakes.
    OpenAiSample,
    /// The package basic-memory, with the notes of `tests/mcp/notes`.
    BasicMemory,
    /// `tests/mcp/awkward.py`, made with `FastMCP`.
    AwkwardPython,
    /// `tests/mcp/awkward.mjs`, made with the TypeScript SDK.
    AwkwardTypescript,
}

impl McpServer {
    fn name(self) -> &'static str {
        match self {
            Self::OpenAiSample => "openai-sample",
            Self::BasicMemory => "basic-memory",
            Self::AwkwardPython => "awkward-python",
            Self::AwkwardTypescript => "awkward-typescript",
        }
    }

    /// Returns true if the server was installed. Only basic-memory may be missing, without a Python of 3.12 or newer.
    pub(crate) fn is_installed(self) -> bool {
        variable("FETCHWELL_TEST_MCP").split(' ').any(|name| name == self.name())
    }

    /// Returns the command line of the server over stdio, with settings such as `("AWKWARD_LIMIT", "5")`. It needs no
    /// environment.
    pub(crate) fn stdio_command(self, settings: &[(&str, &str)]) -> Vec<String> {
        assert!(self.is_installed(), "{} is not installed", self.name());
        let home = format!("FETCHWELL_TEST_MCP_HOME={}", variable("FETCHWELL_TEST_MCP_HOME"));
        let settings = settings.iter().map(|(name, value)| format!("{name}={value}"));
        let serve = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mcp/serve");
        ["/usr/bin/env".to_owned(), home]
            .into_iter()
            .chain(settings)
            .chain([serve.to_owned(), self.name().to_owned()])
            .collect()
    }

    /// Starts the server at a free port, and waits until it accepts connections.
    pub(crate) fn start(self, settings: &[(&str, &str)]) -> HttpMcpServer {
        let is_awkward = matches!(self, Self::AwkwardPython | Self::AwkwardTypescript);
        let port = if is_awkward { 0 } else { free_port() };
        let words = self.stdio_command(settings);
        let (program, arguments) = words.split_first().unwrap();
        let mut command = Command::new(program);
        command.args(arguments).arg(port.to_string());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        // The drop kills the processes that the server starts, too.
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut process = command.spawn().unwrap();
        let mut output = BufReader::new(process.stdout.take().unwrap());
        let mut server = HttpMcpServer { process, url: format!("http://127.0.0.1:{port}/mcp") };
        if is_awkward {
            let mut line = String::new();
            output.read_line(&mut line).unwrap();
            let url = line.strip_prefix("listening ").unwrap_or_else(|| panic!("{self:?} printed {line:?}"));
            server.url = url.trim_end().to_owned();
        } else {
            wait_until(self.name(), || {
                assert!(server.process.try_wait().unwrap().is_none(), "{self:?} ended");
                TcpStream::connect(("127.0.0.1", port)).is_ok()
            });
        }
        // A server that prints must not wait for a reader.
        std::thread::spawn(move || std::io::copy(&mut output, &mut std::io::sink()));
        server
    }
}

/// A server over Streamable HTTP. Dropping it kills its process group.
pub(crate) struct HttpMcpServer {
    process: Child,
    /// The MCP endpoint. The awkward servers read settings of its query, such as `?limit=5`.
    pub(crate) url: String,
}

impl Drop for HttpMcpServer {
    fn drop(&mut self) {
        let group = format!("-{}", self.process.id());
        let _ = Command::new("kill").args(["-KILL", "--", &group]).status();
        let _ = self.process.wait();
    }
}

/// Returns the JSON-RPC message in a recording of `fixtures/mcp-servers`, such as `basic-memory/search`.
pub(crate) fn recorded_reply(name: &str) -> Value {
    let recording: Value = serde_json::from_str(&fixture(&format!("mcp-servers/{name}.json"))).unwrap();
    recording["response"].clone()
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn variable(name: &str) -> String {
    #[expect(clippy::disallowed_methods, reason = "tests/mcp/run sets it for the tests")]
    let value = std::env::var(name);
    value.unwrap_or_else(|_| {
        panic!("{name} is not set; run these tests with `tests/mcp/run cargo test --test it -- --ignored upstream`")
    })
}
