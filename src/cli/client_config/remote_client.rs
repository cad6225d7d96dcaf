//! Client configuration for a server on another machine: its URL, and the source of the token.
//!
//! A token is never printed: clients read it from an environment variable or ask for it.

use std::str::FromStr;

use fetchwell_http::{PublicUrl, PublicUrlError};
use serde_json::{Value, json};

use super::client::{Client, Snippet, shell_word};
use super::local_client::placeholder;
use super::yaml_entry::{ContinueServer, continue_entry};
use crate::app::failure::Failure;

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
    let file = client.file().map_or("", |file| file.here());
    let (goes, text) = match client {
        Client::Claude | Client::Chatgpt => return connector(client, server, variable),
        Client::ClaudeCode => claude_code(&url, variable),
        Client::Codex => codex(&url, variable),
        Client::Cursor => (
            format!("Cursor: .cursor/mcp.json in the project, or {file}"),
            entry(
                "mcpServers",
                &with_headers(json!({ "url": url }), variable, |name| format!("${{env:{name}}}")),
            ),
        ),
        Client::Vscode => (
            format!("VS Code: .vscode/mcp.json in the project, or {file} (MCP: Open User Configuration)"),
            pretty(&vscode(&url, variable)),
        ),
        Client::Windsurf => (
            format!("Windsurf: {file}, then refresh its list of MCP servers"),
            entry(
                "mcpServers",
                &with_headers(json!({ "serverUrl": url }), variable, |name| format!("${{env:{name}}}")),
            ),
        ),
        Client::Zed => (
            format!("Zed: {file} (zed: open settings file)"),
            entry("context_servers", &with_headers(json!({ "url": url }), variable, placeholder)),
        ),
        Client::Gemini => (
            format!("Gemini CLI: .gemini/settings.json in the project, or {file}"),
            entry(
                "mcpServers",
                &with_headers(json!({ "httpUrl": url }), variable, |name| format!("${name}")),
            ),
        ),
        Client::Opencode => {
            let server = json!({ "type": "remote", "url": url, "enabled": true });
            (
                format!("opencode: opencode.json in the project, or {file}"),
                entry("mcp", &with_headers(server, variable, |name| format!("{{env:{name}}}"))),
            )
        }
        Client::Copilot => {
            let server = json!({ "type": "http", "url": url, "tools": ["*"] });
            (
                format!("Copilot CLI: {file}"),
                entry("mcpServers", &with_headers(server, variable, |name| format!("${{{name}}}"))),
            )
        }
        Client::Continue => (
            format!("Continue: {file}; if it has `mcpServers`, add the entry to that list"),
            continue_entry(&ContinueServer::Remote { url: &url, variable }),
        ),
        Client::Cline => {
            let server = json!({ "type": "streamableHttp", "url": url });
            (
                format!("Cline: {file} (MCP Servers > Configure > Configure MCP Servers)"),
                entry("mcpServers", &with_headers(server, variable, placeholder)),
            )
        }
    };
    Ok(Snippet { goes, text })
}

/// Returns the URL for a client that is configured on a page of its own and signs in.
fn connector(client: Client, server: &PublicUrl, variable: Option<&str>) -> Result<Snippet, Failure> {
    if variable.is_some() {
        return Err(Failure::usage(
            &"this client signs in at the authorization server and accepts no token; remove --token-env",
        ));
    }
    let (goes, path) = match client {
        Client::Chatgpt => (
            "ChatGPT: Settings > Apps & Connectors > Create (in developer mode), with OAuth as authentication",
            "/mcp/openai",
        ),
        _ => (
            "Claude (claude.ai and Desktop): Settings > Connectors > Add custom connector; it signs in by OAuth",
            "/mcp",
        ),
    };
    Ok(Snippet { goes: goes.to_owned(), text: server.at(path) })
}

fn claude_code(url: &str, variable: Option<&str>) -> (String, String) {
    let (goes, header) = match variable {
        None => ("Claude Code: run, then sign in with /mcp", String::new()),
        Some(name) => (
            "Claude Code: run, with the token in the variable; Claude Code keeps it in its settings",
            format!(" --header \"Authorization: Bearer ${name}\""),
        ),
    };
    let text = format!("claude mcp add --scope user --transport http fetchwell {}{header}", shell_word(url));
    (goes.to_owned(), text)
}

fn codex(url: &str, variable: Option<&str>) -> (String, String) {
    let file = Client::Codex.file().map_or("", |file| file.here());
    let table = format!("[mcp_servers.fetchwell]\nurl = {}", toml::Value::from(url));
    match variable {
        None => (format!("Codex: {file}, then run `codex mcp login fetchwell`"), table),
        Some(name) => (format!("Codex: {file}"), format!("{table}\nbearer_token_env_var = \"{name}\"")),
    }
}

/// Returns the entry of a server under the key that a client has for them.
fn entry(key: &str, server: &Value) -> String {
    pretty(&json!({ key: { "fetchwell": server } }))
}

/// Adds the header of a token. `reference` is how the client takes the value of a variable.
fn with_headers(mut server: Value, variable: Option<&str>, reference: impl Fn(&str) -> String) -> Value {
    if let (Some(name), Some(fields)) = (variable, server.as_object_mut()) {
        let headers = json!({ "Authorization": format!("Bearer {}", reference(name)) });
        fields.insert("headers".to_owned(), headers);
    }
    server
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
    use clap::ValueEnum;

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
            "claude mcp add --scope user --transport http fetchwell https://records.example.com/mcp --header \"Authorization: Bearer $T\""
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
        for (client, pointer, bearer) in [
            (Client::Windsurf, "/mcpServers/fetchwell/serverUrl", "Bearer ${env:T}"),
            (Client::Zed, "/context_servers/fetchwell/url", "Bearer <the value of T>"),
            (Client::Gemini, "/mcpServers/fetchwell/httpUrl", "Bearer $T"),
            (Client::Opencode, "/mcp/fetchwell/url", "Bearer {env:T}"),
            (Client::Copilot, "/mcpServers/fetchwell/url", "Bearer ${T}"),
            (Client::Cline, "/mcpServers/fetchwell/url", "Bearer <the value of T>"),
        ] {
            let snippet: Value = serde_json::from_str(&text(client, Some("T"))).unwrap();
            assert_eq!(snippet.pointer(pointer).unwrap(), "https://records.example.com/mcp", "{client:?}");
            let (server, _url) = pointer.rsplit_once('/').unwrap();
            assert_eq!(snippet.pointer(server).unwrap()["headers"]["Authorization"], bearer, "{client:?}");
        }
        assert_eq!(text(Client::Chatgpt, None), "https://records.example.com/mcp/openai");
        assert_eq!(text(Client::Claude, None), "https://records.example.com/mcp");
        for client in Client::value_variants().iter().copied() {
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
