//! Client configuration for a server on another machine: its URL, and the source of the token.
//!
//! A token is never printed: clients read it from an environment variable or ask for it.

use std::str::FromStr;

use serde_json::{Value, json};

use super::snippet::{Client, Snippet, shell_word};
use crate::app::failure::Failure;
use crate::http::{PublicUrl, PublicUrlError};

/// URL of a server, with or without the path of the MCP endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ServerUrl(PublicUrl);

impl FromStr for ServerUrl {
    type Err = PublicUrlError;

    fn from_str(text: &str) -> Result<Self, PublicUrlError> {
        let text = text.trim().trim_end_matches('/');
        let origin = ["/mcp/openai", "/mcp"].into_iter().find_map(|path| text.strip_suffix(path));
        origin.unwrap_or(text).parse().map(Self)
    }
}

/// Name of an environment variable that every shell accepts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct VariableName(String);

/// Error of an invalid variable name.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the name of a variable has letters, digits and `_`, such as FETCHWELL_TOKEN; do not write the token itself"
)]
pub(super) struct InvalidVariableName;

impl FromStr for VariableName {
    type Err = InvalidVariableName;

    fn from_str(text: &str) -> Result<Self, InvalidVariableName> {
        let is_name =
            !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        // A token has the form of a name and would be printed.
        let is_ours = is_name && !text.starts_with("fwt_") && !text.starts_with(|c: char| c.is_ascii_digit());
        if is_ours { Ok(Self(text.to_owned())) } else { Err(InvalidVariableName) }
    }
}

/// Returns the configuration of a client for the server at `url`, with its token in a variable or with sign-in.
pub(super) fn remote_snippet(
    client: Client,
    ServerUrl(server): &ServerUrl,
    token: Option<&VariableName>,
) -> Result<Snippet, Failure> {
    let url = server.at("/mcp");
    let variable = token.map(|name| name.0.as_str());
    Ok(match (client, variable) {
        (Client::Claude | Client::Chatgpt, Some(_)) => {
            return Err(Failure::usage(
                &"this client signs in at the authorization server and accepts no token; remove --token-env",
            ));
        }
        (Client::Claude, None) => Snippet {
            goes: "Claude (claude.ai and Desktop): Settings > Connectors > Add custom connector; it signs in by OAuth",
            text: url,
        },
        (Client::Chatgpt, None) => Snippet {
            goes: "ChatGPT: Settings > Apps & Connectors > Create (in developer mode), with OAuth as authentication",
            text: server.at("/mcp/openai"),
        },
        (Client::ClaudeCode, None) => Snippet {
            goes: "Claude Code: run, then sign in with /mcp",
            text: format!("claude mcp add --transport http fetchwell {}", shell_word(&url)),
        },
        (Client::ClaudeCode, Some(name)) => Snippet {
            goes: "Claude Code: run, with the token in the variable; Claude Code keeps it in its settings",
            text: format!(
                "claude mcp add --transport http fetchwell {} --header \"Authorization: Bearer ${name}\"",
                shell_word(&url)
            ),
        },
        (Client::Codex, None) => Snippet {
            goes: "Codex: ~/.codex/config.toml, then run `codex mcp login fetchwell`",
            text: format!("[mcp_servers.fetchwell]\nurl = {}", toml::Value::from(url)),
        },
        (Client::Codex, Some(name)) => Snippet {
            goes: "Codex: ~/.codex/config.toml",
            text: format!(
                "[mcp_servers.fetchwell]\nurl = {}\nbearer_token_env_var = \"{name}\"",
                toml::Value::from(url)
            ),
        },
        (Client::Cursor, _) => Snippet {
            goes: "Cursor: .cursor/mcp.json in the project, or ~/.cursor/mcp.json",
            text: pretty(&json!({ "mcpServers": { "fetchwell": cursor(&url, variable) } })),
        },
        (Client::Vscode, _) => Snippet {
            goes: "VS Code: .vscode/mcp.json in the project",
            text: pretty(&vscode(&url, variable)),
        },
    })
}

fn cursor(url: &str, variable: Option<&str>) -> Value {
    match variable {
        None => json!({ "url": url }),
        Some(name) => {
            json!({ "url": url, "headers": { "Authorization": format!("Bearer ${{env:{name}}}") } })
        }
    }
}

/// VS Code asks for the token once and keeps it in the secret storage of the system.
fn vscode(url: &str, variable: Option<&str>) -> Value {
    let Some(name) = variable else {
        return json!({ "servers": { "fetchwell": { "type": "http", "url": url } } });
    };
    let headers = json!({ "Authorization": "Bearer ${input:fetchwell-token}" });
    let about = format!("Token of fetchwell ({name})");
    json!({
        "inputs": [{ "type": "promptString", "id": "fetchwell-token", "description": about, "password": true }],
        "servers": { "fetchwell": { "type": "http", "url": url, "headers": headers } },
    })
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(client: Client, token: Option<&str>) -> String {
        let url = "https://records.example.com/mcp".parse().unwrap();
        let token = token.map(|name| name.parse().unwrap());
        remote_snippet(client, &url, token.as_ref()).unwrap().text
    }

    #[test]
    fn every_client_gets_the_url_and_where_its_token_is() {
        assert_eq!(
            text(Client::ClaudeCode, Some("T")),
            "claude mcp add --transport http fetchwell https://records.example.com/mcp --header \"Authorization: Bearer $T\""
        );
        let codex: toml::Table = toml::from_str(&text(Client::Codex, Some("T"))).unwrap();
        let codex = &codex["mcp_servers"]["fetchwell"];
        assert_eq!(codex["url"].as_str(), Some("https://records.example.com/mcp"));
        assert_eq!(codex["bearer_token_env_var"].as_str(), Some("T"));
        let cursor: Value = serde_json::from_str(&text(Client::Cursor, Some("T"))).unwrap();
        assert_eq!(cursor["mcpServers"]["fetchwell"]["headers"]["Authorization"], "Bearer ${env:T}");
        let vscode: Value = serde_json::from_str(&text(Client::Vscode, Some("T"))).unwrap();
        assert_eq!(vscode["servers"]["fetchwell"]["type"], "http");
        assert_eq!(vscode["inputs"][0]["id"], "fetchwell-token");
        assert_eq!(text(Client::Chatgpt, None), "https://records.example.com/mcp/openai");
        assert_eq!(text(Client::Claude, None), "https://records.example.com/mcp");
        for client in [Client::ClaudeCode, Client::Codex, Client::Cursor, Client::Vscode] {
            assert!(!text(client, None).to_lowercase().contains("bearer"));
        }
    }

    #[test]
    fn clients_that_sign_in_take_no_token() {
        let url = "https://records.example.com".parse().unwrap();
        let token = "T".parse().unwrap();
        for client in [Client::Claude, Client::Chatgpt] {
            assert!(remote_snippet(client, &url, Some(&token)).is_err());
        }
    }

    #[test]
    fn a_url_leads_to_the_server_and_a_token_is_no_name() {
        let plain: ServerUrl = "https://records.example.com".parse().unwrap();
        for same in ["https://records.example.com/", "https://records.example.com/mcp/openai"] {
            assert_eq!(same.parse().as_ref(), Ok(&plain), "{same}");
        }
        for wrong in
            ["http://records.example.com/mcp", "https://a.example/other", "https://u:p@a.example", "x"]
        {
            assert!(wrong.parse::<ServerUrl>().is_err(), "{wrong}");
        }
        for wrong in ["", "a b", "$T", "1A", "fwt_abc", "a-b"] {
            assert!(wrong.parse::<VariableName>().is_err(), "{wrong}");
        }
    }
}
