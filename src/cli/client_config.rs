//! `fetchwell client-config`: what to paste into a client.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use super::chatgpt_recipe::chatgpt_recipe;
use super::failure::Failure;
use super::print::{FAINT, Printer};
use super::remote_client::{ServerUrl, VariableName, remote_snippet};
use super::settings::{SourceArgs, remote};
use crate::config::{DEFAULT_CACHE_ROOT, FoundFile, read_text};
use crate::terminal::{Line, escape_line};

/// Print the configuration that makes a client use fetchwell.
#[derive(Debug, Args)]
pub(super) struct ClientConfig {
    /// The client.
    #[arg(value_enum)]
    client: Client,

    #[command(flatten)]
    source: SourceArgs,

    /// Where a server runs that this client is to use, such as `https://records.example.com/mcp`.
    #[arg(long, value_name = "URL", conflicts_with_all = ["store", "provider_url", "config", "found_config"])]
    url: Option<ServerUrl>,

    /// The environment variable that has the token for it; without one the client signs in.
    #[arg(long, value_name = "NAME", requires = "url")]
    token_env: Option<VariableName>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Client {
    /// Claude Desktop.
    Claude,
    /// Claude Code.
    ClaudeCode,
    /// Codex.
    Codex,
    /// Cursor.
    Cursor,
    /// Visual Studio Code.
    Vscode,
    /// ChatGPT.
    Chatgpt,
}

/// Where a snippet goes, and the snippet.
pub(super) struct Snippet {
    pub(super) goes: &'static str,
    pub(super) text: String,
}

impl ClientConfig {
    pub(super) fn run(self, printer: Printer) -> Result<(), Failure> {
        let snippet = match &self.url {
            Some(url) => remote_snippet(self.client, url, self.token_env.as_ref())?,
            None => {
                let arguments = self.source.serve_arguments()?;
                if !printer.json {
                    arguments.iter().try_for_each(|word| check_printable(word))?;
                }
                snippet(self.client, &program()?, &arguments)
            }
        };
        if printer.json {
            printer.value(&json!({ "goes": snippet.goes, "snippet": snippet.text }));
        } else {
            printer.styled(Line::default().styled(FAINT, snippet.goes));
            printer.lines(snippet.text);
        }
        Ok(())
    }
}

impl SourceArgs {
    /// The flags of `serve` for this source, with absolute paths: clients start programs anywhere.
    fn serve_arguments(&self) -> Result<Vec<String>, Failure> {
        let mut arguments = vec!["serve".to_owned()];
        let mut add = |flag: &str, value: String| arguments.extend([flag.to_owned(), value]);
        if let Some(path) = &self.place.store {
            add("--store", absolute(path)?);
        }
        if let Some(path) = &self.config {
            add("--config", absolute(path)?);
        } else if self.place.store.is_none() && self.place.provider_url.is_none() {
            // With its path it is the same wherever the client starts the program.
            let found = self.found_file()?;
            found.check_trust(&read_text(found.path())?)?;
            let flag = match &found {
                FoundFile::OfUser(_) => "--config",
                // A named file would be trusted after every change, too.
                FoundFile::Here(_) => "--found-config",
            };
            add(flag, absolute(found.path())?);
        }
        if let Some(url) = &self.place.provider_url {
            add("--provider-url", remote(url)?.to_string());
            let cache_root = if self.cache_root.as_os_str().is_empty() {
                Path::new(DEFAULT_CACHE_ROOT)
            } else {
                &self.cache_root
            };
            add("--cache-root", absolute(cache_root)?);
        }
        Ok(arguments)
    }
}

/// Refuses a path that the terminal would show in another spelling, which is the path of no file.
fn check_printable(word: &str) -> Result<(), Failure> {
    let shown: String = escape_line(word).into();
    if shown == word {
        return Ok(());
    }
    Err(Failure::new(format!(
        "{shown} has control characters, which a snippet cannot show; rename it, or run with --json"
    )))
}

/// This program's own path.
pub(super) fn program() -> Result<String, Failure> {
    let path = std::env::current_exe()
        .map_err(|error| Failure::new(format!("the program's own path is unknown ({error})")))?;
    Ok(path.to_string_lossy().into_owned())
}

/// A path as any process would find it.
pub(super) fn absolute(path: &Path) -> Result<String, Failure> {
    let absolute: PathBuf = std::path::absolute(path)
        .map_err(|error| Failure::new(format!("{} is not a path ({error})", path.display())))?;
    absolute.into_os_string().into_string().map_err(|path| {
        Failure::new(format!("{} is not UTF-8, which a configuration has to be; rename it", path.display()))
    })
}

/// The snippet for a client. `arguments` are those of `serve` without a transport.
pub(super) fn snippet(client: Client, program: &str, arguments: &[String]) -> Snippet {
    let stdio: Vec<String> = arguments.iter().cloned().chain(["--stdio".to_owned()]).collect();
    let server = json!({ "command": program, "args": stdio });
    let pretty = |value: &Value| serde_json::to_string_pretty(value).unwrap_or_default();
    let command_line =
        |words: &[String]| words.iter().map(|word| shell_word(word)).collect::<Vec<_>>().join(" ");
    match client {
        Client::Claude => Snippet {
            goes: "Claude Desktop: claude_desktop_config.json (Settings > Developer > Edit Config), then restart it",
            text: pretty(&json!({ "mcpServers": { "fetchwell": server } })),
        },
        Client::ClaudeCode => Snippet {
            goes: "Claude Code: run",
            text: format!("claude mcp add fetchwell -- {} {}", shell_word(program), command_line(&stdio)),
        },
        Client::Codex => Snippet {
            goes: "Codex: ~/.codex/config.toml",
            text: format!(
                "[mcp_servers.fetchwell]\ncommand = {}\nargs = {}",
                toml::Value::from(program),
                toml::Value::from(stdio)
            ),
        },
        Client::Cursor => Snippet {
            goes: "Cursor: .cursor/mcp.json in the project, or ~/.cursor/mcp.json",
            text: pretty(&json!({ "mcpServers": { "fetchwell": server } })),
        },
        Client::Vscode => Snippet {
            goes: "VS Code: .vscode/mcp.json in the project",
            text: pretty(&json!({ "servers": { "fetchwell": server } })),
        },
        Client::Chatgpt => Snippet {
            goes: "ChatGPT: follow these steps (any tunnel or reverse proxy will do)",
            text: chatgpt_recipe(program, arguments),
        },
    }
}

/// A word as a POSIX shell reads it.
pub(super) fn shell_word(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_client_gets_something_it_can_read() {
        let arguments = ["serve".to_owned(), "--store".to_owned(), "/home/ann/my notes.db".to_owned()];
        let text = |client| snippet(client, "/usr/local/bin/fetchwell", &arguments).text;
        let claude: Value = serde_json::from_str(&text(Client::Claude)).unwrap();
        assert_eq!(
            claude["mcpServers"]["fetchwell"]["args"],
            json!(["serve", "--store", "/home/ann/my notes.db", "--stdio"])
        );
        let vscode: Value = serde_json::from_str(&text(Client::Vscode)).unwrap();
        assert_eq!(vscode["servers"]["fetchwell"]["command"], "/usr/local/bin/fetchwell");
        let codex: toml::Table = toml::from_str(&text(Client::Codex)).unwrap();
        assert_eq!(codex["mcp_servers"]["fetchwell"]["command"].as_str(), Some("/usr/local/bin/fetchwell"));
        assert_eq!(
            text(Client::ClaudeCode),
            "claude mcp add fetchwell -- /usr/local/bin/fetchwell serve --store '/home/ann/my notes.db' --stdio"
        );
        assert!(text(Client::Chatgpt).contains("/usr/local/bin/fetchwell token new --name me\n"));
    }
}
