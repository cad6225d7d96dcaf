//! `fetchwell client-config`: the configuration to paste into a client.
//!
//! * `snippet`: the clients, and snippets of their configuration
//! * `remote_client`: the configuration for a server at a URL
//! * `chatgpt_recipe`: the steps for ChatGPT
//! * `bundle`: `fetchwell bundle`, a file that Claude Desktop installs

mod bundle;
mod chatgpt_recipe;
mod remote_client;
mod snippet;

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Value, json};

pub(super) use self::bundle::Bundle;
use self::chatgpt_recipe::chatgpt_recipe;
use self::remote_client::{ServerUrl, VariableName, remote_snippet};
pub(super) use self::snippet::{Client, Snippet, shell_word};
use crate::app::default_store::existing_default_store;
use crate::app::failure::Failure;
use crate::app::settings::{SourceArgs, remote};
use crate::cli::print::{FAINT, Printer};
use crate::config::{
    CredentialSettings, DEFAULT_CACHE_ROOT, Environment, FoundFile, SecretPlace, SourcePlace, check_text,
    read_text,
};
use crate::source::is_database;
use crate::terminal::{Line, escape_line};

/// Print the configuration that makes a client use fetchwell.
#[derive(Debug, Args)]
pub(super) struct ClientConfig {
    /// The client.
    #[arg(value_enum)]
    client: Client,

    #[command(flatten)]
    source: SourceArgs,

    /// The URL of the server for this client, such as `https://records.example.com/mcp`.
    #[arg(long, value_name = "URL", conflicts_with_all = ["store", "provider_url", "config", "found_config"])]
    url: Option<ServerUrl>,

    /// The environment variable with the token for the server; without it the client signs in.
    #[arg(long, value_name = "NAME", requires = "url")]
    token_env: Option<VariableName>,
}

/// Command line with which a client starts a server.
pub(super) struct Launch {
    pub(super) program: String,
    /// The arguments of `serve` without a transport, `serve` included.
    pub(super) arguments: Vec<String>,
    /// Environment variables that sources take their credentials from. Programs that a desktop application starts have no
    /// environment of a shell.
    pub(super) variables: Vec<String>,
}

impl ClientConfig {
    pub(super) fn run(self, printer: Printer, environment: &Environment) -> Result<(), Failure> {
        let snippet = match &self.url {
            Some(url) => remote_snippet(self.client, url, self.token_env.as_ref())?,
            None => {
                let launch = self.source.launch(environment)?;
                if !printer.json {
                    launch.arguments.iter().try_for_each(|word| check_printable(word))?;
                }
                snippet(self.client, &launch)
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
    /// Returns how a client starts a server of this source: with absolute paths, because clients start programs anywhere.
    fn launch(&self, environment: &Environment) -> Result<Launch, Failure> {
        let mut arguments = vec!["serve".to_owned()];
        let mut variables = Vec::new();
        let mut add = |flag: &str, value: String| arguments.extend([flag.to_owned(), value]);
        if let Some(path) = &self.place.store {
            add("--store", absolute(path)?);
        }
        if let Some(path) = &self.config {
            variables = credential_variables(path, &read_text(path)?)?;
            add("--config", absolute(path)?);
        } else if self.place.store.is_some() || self.place.provider_url.is_some() {
            // The flag names the only source.
        } else if let Some(found) = self.found_file() {
            // With its path it is the same wherever the client starts the program.
            let text = read_text(found.path())?;
            found.check_trust(&text)?;
            variables = credential_variables(found.path(), &text)?;
            let flag = match &found {
                FoundFile::OfUser(_) => "--config",
                // A named file would be trusted after every change, too.
                FoundFile::Here(_) => "--found-config",
            };
            add(flag, absolute(found.path())?);
        } else {
            // With its path, because a client starts programs without the variables of a shell.
            add("--store", absolute(&existing_default_store(environment)?)?);
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
        Ok(Launch { program: program()?, arguments, variables })
    }
}

/// Returns the environment variables that a configuration takes credentials and keys of services from, each once.
fn credential_variables(path: &Path, text: &str) -> Result<Vec<String>, Failure> {
    let settings = check_text(text, path)?;
    let variable = |place: &SourcePlace| match place {
        SourcePlace::Provider { credential: CredentialSettings::Variable(name), .. } => Some(name.clone()),
        SourcePlace::Provider { .. } | SourcePlace::Postgres { .. } | SourcePlace::Store { .. } => None,
    };
    let of_sources = settings.sources.iter().filter_map(|source| variable(&source.place));
    let keys = [
        settings.embedding.and_then(|embedding| embedding.api_key),
        settings.rerank.and_then(|rerank| rerank.api_key),
    ];
    let of_services = keys.into_iter().flatten().filter_map(|key| match key {
        SecretPlace::Variable(name) => Some(name),
        SecretPlace::File(_) => None,
    });
    let mut variables: Vec<String> = of_sources.chain(of_services).collect();
    variables.sort();
    variables.dedup();
    Ok(variables)
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
    if is_database(path) {
        return Err(Failure::usage(
            &"name the database in a configuration file and that file with --config, so that no password gets into the \
              configuration of the client",
        ));
    }
    let absolute: PathBuf = std::path::absolute(path)
        .map_err(|error| Failure::new(format!("{} is not a path ({error})", path.display())))?;
    absolute.into_os_string().into_string().map_err(|path| {
        Failure::new(format!("{} is not UTF-8, which a configuration has to be; rename it", path.display()))
    })
}

/// Returns the snippet for a client. It has the names of variables and never their values.
pub(super) fn snippet(client: Client, launch: &Launch) -> Snippet {
    let Launch { program, arguments, variables } = launch;
    let stdio: Vec<String> = arguments.iter().cloned().chain(["--stdio".to_owned()]).collect();
    let environment = |value: fn(&str) -> String| {
        let entries = variables.iter().map(|name| (name.clone(), Value::from(value(name))));
        serde_json::Map::from_iter(entries)
    };
    let server = |value: fn(&str) -> String| {
        if variables.is_empty() {
            json!({ "command": program, "args": stdio })
        } else {
            json!({ "command": program, "args": stdio, "env": environment(value) })
        }
    };
    let pretty = |value: &Value| serde_json::to_string_pretty(value).unwrap_or_default();
    let command_line =
        |words: &[String]| words.iter().map(|word| shell_word(word)).collect::<Vec<_>>().join(" ");
    match client {
        Client::Claude => Snippet {
            goes: "Claude Desktop: claude_desktop_config.json (Settings > Developer > Edit Config), then restart it",
            text: pretty(&json!({ "mcpServers": { "fetchwell": server(placeholder) } })),
        },
        Client::ClaudeCode => Snippet {
            goes: "Claude Code: run",
            text: format!(
                "claude mcp add fetchwell{} -- {} {}",
                // The shell puts the values in.
                variables.iter().map(|name| format!(" -e {name}=\"${name}\"")).collect::<String>(),
                shell_word(program),
                command_line(&stdio)
            ),
        },
        Client::Codex => Snippet { goes: "Codex: ~/.codex/config.toml", text: codex(launch, stdio) },
        Client::Cursor => Snippet {
            goes: "Cursor: .cursor/mcp.json in the project, or ~/.cursor/mcp.json",
            text: pretty(&json!({ "mcpServers": { "fetchwell": server(placeholder) } })),
        },
        Client::Vscode => {
            let servers = json!({ "fetchwell": server(|name| format!("${{input:{name}}}")) });
            let input = |name: &String| json!({ "type": "promptString", "id": name, "description": name, "password": true });
            let inputs: Vec<Value> = variables.iter().map(input).collect();
            let configuration = if inputs.is_empty() {
                json!({ "servers": servers })
            } else {
                json!({ "servers": servers, "inputs": inputs })
            };
            Snippet { goes: "VS Code: .vscode/mcp.json in the project", text: pretty(&configuration) }
        }
        Client::Chatgpt => Snippet {
            goes: "ChatGPT: follow these steps (any tunnel or reverse proxy will do)",
            text: chatgpt_recipe(program, arguments),
        },
    }
}

/// Returns what the user replaces by the value of a variable.
fn placeholder(variable: &str) -> String {
    format!("<the value of {variable}>")
}

/// Returns the snippet for Codex.
fn codex(launch: &Launch, stdio: Vec<String>) -> String {
    let command = toml::Value::from(launch.program.as_str());
    let mut text =
        format!("[mcp_servers.fetchwell]\ncommand = {command}\nargs = {}", toml::Value::from(stdio));
    if !launch.variables.is_empty() {
        text.push_str("\n\n[mcp_servers.fetchwell.env]");
        for name in &launch.variables {
            text.push_str(&format!("\n{name} = {}", toml::Value::from(placeholder(name))));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_client_gets_something_it_can_read() {
        let arguments = ["serve".to_owned(), "--store".to_owned(), "/home/ann/my notes.db".to_owned()];
        let launch = Launch {
            program: "/usr/local/bin/fetchwell".to_owned(),
            arguments: arguments.to_vec(),
            variables: Vec::new(),
        };
        let text = |client| snippet(client, &launch).text;
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

    #[test]
    fn variables_of_credentials_are_in_every_snippet() {
        let launch = Launch {
            program: "fetchwell".to_owned(),
            arguments: vec!["serve".to_owned()],
            variables: vec!["WORK_TOKEN".to_owned()],
        };
        let text = |client| snippet(client, &launch).text;
        for client in [Client::Claude, Client::Cursor] {
            let snippet: Value = serde_json::from_str(&text(client)).unwrap();
            let environment = &snippet["mcpServers"]["fetchwell"]["env"];
            assert_eq!(*environment, json!({"WORK_TOKEN": "<the value of WORK_TOKEN>"}));
        }
        let vscode: Value = serde_json::from_str(&text(Client::Vscode)).unwrap();
        assert_eq!(vscode["servers"]["fetchwell"]["env"], json!({"WORK_TOKEN": "${input:WORK_TOKEN}"}));
        assert_eq!(vscode["inputs"][0]["id"], "WORK_TOKEN");
        let codex: toml::Table = toml::from_str(&text(Client::Codex)).unwrap();
        let environment = codex["mcp_servers"]["fetchwell"]["env"].as_table().unwrap();
        assert_eq!(environment["WORK_TOKEN"].as_str(), Some("<the value of WORK_TOKEN>"));
        assert_eq!(
            text(Client::ClaudeCode),
            "claude mcp add fetchwell -e WORK_TOKEN=\"$WORK_TOKEN\" -- fetchwell serve --stdio"
        );
    }
}
