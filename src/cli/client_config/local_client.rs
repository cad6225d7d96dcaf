//! Client configuration for a server that the client starts on this machine.
//!
//! It has the names of variables with credentials and never their values. A client that replaces references to variables
//! gets a reference, and the others a placeholder for the user to replace.

use serde_json::{Value, json};

use super::chatgpt_recipe::chatgpt_recipe;
use super::client::{Client, Snippet, shell_word};
use super::launch::Launch;
use super::yaml_entry::{ContinueServer, continue_entry};

/// Returns the snippet for a client.
pub(crate) fn snippet(client: Client, launch: &Launch) -> Snippet {
    let file = client.file().map_or("", |file| file.here());
    let under = |key: &str, entry: Value| pretty(&json!({ key: { "fetchwell": entry } }));
    let (goes, text) = match client {
        Client::Claude => (
            format!("Claude Desktop: {file} (Settings > Developer > Edit Config), then restart it"),
            under("mcpServers", launch.entry(placeholder)),
        ),
        Client::ClaudeCode => ("Claude Code: run".to_owned(), claude_code(launch)),
        Client::Codex => (format!("Codex: {file}"), codex(launch)),
        Client::Cursor => (
            format!("Cursor: .cursor/mcp.json in the project, or {file}"),
            under("mcpServers", launch.entry(placeholder)),
        ),
        Client::Vscode => (
            format!("VS Code: .vscode/mcp.json in the project, or {file} (MCP: Open User Configuration)"),
            vscode(launch),
        ),
        Client::Windsurf => (
            format!("Windsurf: {file}, then refresh its list of MCP servers"),
            under("mcpServers", launch.entry(|name| format!("${{env:{name}}}"))),
        ),
        Client::Zed => (
            format!("Zed: {file} (zed: open settings file)"),
            under("context_servers", launch.entry(placeholder)),
        ),
        Client::Gemini => (
            format!("Gemini CLI: .gemini/settings.json in the project, or {file}"),
            under("mcpServers", launch.entry(|name| format!("${name}"))),
        ),
        Client::Opencode => {
            (format!("opencode: opencode.json in the project, or {file}"), under("mcp", opencode(launch)))
        }
        Client::Copilot => (format!("Copilot CLI: {file}"), under("mcpServers", copilot(launch))),
        Client::Continue => (
            format!("Continue: {file}; if it has `mcpServers`, add the entry to that list"),
            continue_entry(&ContinueServer::Local(launch)),
        ),
        Client::Cline => (
            format!("Cline: {file} (MCP Servers > Configure > Configure MCP Servers)"),
            under("mcpServers", launch.entry(placeholder)),
        ),
        Client::Chatgpt => (
            "ChatGPT: follow these steps (any tunnel or reverse proxy will do)".to_owned(),
            chatgpt_recipe(&launch.program, &launch.arguments),
        ),
    };
    Snippet { goes, text }
}

/// Returns what the user replaces by the value of a variable.
pub(super) fn placeholder(variable: &str) -> String {
    format!("<the value of {variable}>")
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

/// Returns the command for Claude Code, in which the shell replaces the variables. It is for all projects, as the entry of
/// `fetchwell setup` is.
fn claude_code(launch: &Launch) -> String {
    let variables: String = launch.variables.iter().map(|name| format!(" -e {name}=\"${name}\"")).collect();
    let words: Vec<String> = launch.stdio_arguments().iter().map(|word| shell_word(word)).collect();
    let program = shell_word(&launch.program);
    format!("claude mcp add --scope user fetchwell{variables} -- {program} {}", words.join(" "))
}

/// Returns the snippet for Codex.
fn codex(launch: &Launch) -> String {
    let command = toml::Value::from(launch.program.as_str());
    let arguments = toml::Value::from(launch.stdio_arguments());
    let mut text = format!("[mcp_servers.fetchwell]\ncommand = {command}\nargs = {arguments}");
    if !launch.variables.is_empty() {
        text.push_str("\n\n[mcp_servers.fetchwell.env]");
        for name in &launch.variables {
            text.push_str(&format!("\n{name} = {}", toml::Value::from(placeholder(name))));
        }
    }
    text
}

/// Returns the snippet for VS Code, which asks for each value once.
fn vscode(launch: &Launch) -> String {
    let servers = json!({ "fetchwell": launch.entry(|name| format!("${{input:{name}}}")) });
    let input =
        |name: &String| json!({ "type": "promptString", "id": name, "description": name, "password": true });
    let inputs: Vec<Value> = launch.variables.iter().map(input).collect();
    pretty(&if inputs.is_empty() {
        json!({ "servers": servers })
    } else {
        json!({ "servers": servers, "inputs": inputs })
    })
}

/// Returns the entry for opencode, which has `command` as a list.
fn opencode(launch: &Launch) -> Value {
    let mut command = vec![launch.program.clone()];
    command.extend(launch.stdio_arguments());
    let mut entry = json!({ "type": "local", "command": command, "enabled": true });
    if !launch.variables.is_empty()
        && let Some(fields) = entry.as_object_mut()
    {
        let environment = launch.environment(|name| format!("{{env:{name}}}"));
        fields.insert("environment".to_owned(), environment.into());
    }
    entry
}

/// Returns the entry for Copilot CLI, which uses only the tools that it lists.
fn copilot(launch: &Launch) -> Value {
    let mut entry = json!({ "type": "local" });
    if let (Some(fields), Value::Object(shared)) =
        (entry.as_object_mut(), launch.entry(|name| format!("${{{name}}}")))
    {
        fields.extend(shared);
        fields.insert("tools".to_owned(), json!(["*"]));
    }
    entry
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::*;

    fn launch(variables: &[&str]) -> Launch {
        let arguments = ["serve", "--store", "/home/ann/my notes.db"];
        Launch {
            program: "/usr/local/bin/fetchwell".to_owned(),
            arguments: arguments.map(str::to_owned).to_vec(),
            variables: variables.iter().map(|name| (*name).to_owned()).collect(),
        }
    }

    fn json_of(client: Client, launch: &Launch) -> Value {
        serde_json::from_str(&snippet(client, launch).text).unwrap()
    }

    /// Returns the key of the servers of clients with JSON files.
    const JSON_CLIENTS: [(Client, &str); 9] = [
        (Client::Claude, "mcpServers"),
        (Client::Cursor, "mcpServers"),
        (Client::Vscode, "servers"),
        (Client::Windsurf, "mcpServers"),
        (Client::Zed, "context_servers"),
        (Client::Gemini, "mcpServers"),
        (Client::Opencode, "mcp"),
        (Client::Copilot, "mcpServers"),
        (Client::Cline, "mcpServers"),
    ];

    #[test]
    fn every_client_gets_something_it_can_read() {
        let launch = launch(&[]);
        let arguments = json!(["serve", "--store", "/home/ann/my notes.db", "--stdio"]);
        for (client, key) in JSON_CLIENTS {
            let entry = &json_of(client, &launch)[key]["fetchwell"];
            if client == Client::Opencode {
                assert_eq!(entry["command"][0], "/usr/local/bin/fetchwell");
                assert_eq!(entry["command"].as_array().unwrap()[1..], *arguments.as_array().unwrap());
                continue;
            }
            assert_eq!(entry["command"], "/usr/local/bin/fetchwell", "{client:?}");
            assert_eq!(entry["args"], arguments, "{client:?}");
            assert!(entry.get("env").is_none(), "{client:?}");
        }
        assert_eq!(json_of(Client::Copilot, &launch)["mcpServers"]["fetchwell"]["tools"], json!(["*"]));
        let codex: toml::Table = toml::from_str(&snippet(Client::Codex, &launch).text).unwrap();
        assert_eq!(codex["mcp_servers"]["fetchwell"]["command"].as_str(), Some("/usr/local/bin/fetchwell"));
        assert_eq!(
            snippet(Client::ClaudeCode, &launch).text,
            "claude mcp add --scope user fetchwell -- /usr/local/bin/fetchwell serve --store '/home/ann/my notes.db' --stdio"
        );
        let recipe = snippet(Client::Chatgpt, &launch).text;
        assert!(recipe.contains("/usr/local/bin/fetchwell token new --name me\n"));
    }

    #[test]
    fn the_place_of_a_snippet_names_the_file_of_this_system() {
        let launch = launch(&[]);
        for client in Client::value_variants() {
            let goes = snippet(*client, &launch).goes;
            assert!(goes.starts_with(client.title()), "{goes}");
            // Claude Code writes its file itself.
            let file = client.file().filter(|_| *client != Client::ClaudeCode);
            assert!(file.is_none_or(|file| goes.contains(file.here())), "{goes}");
        }
    }

    #[test]
    fn variables_of_credentials_are_in_every_snippet() {
        let launch = launch(&["WORK_TOKEN"]);
        let placeholder = "<the value of WORK_TOKEN>";
        for (client, key) in JSON_CLIENTS {
            let entry = &json_of(client, &launch)[key]["fetchwell"];
            let (variables, value) = match client {
                Client::Vscode => ("env", "${input:WORK_TOKEN}"),
                Client::Windsurf => ("env", "${env:WORK_TOKEN}"),
                Client::Gemini => ("env", "$WORK_TOKEN"),
                Client::Copilot => ("env", "${WORK_TOKEN}"),
                Client::Opencode => ("environment", "{env:WORK_TOKEN}"),
                _ => ("env", placeholder),
            };
            assert_eq!(entry[variables], json!({ "WORK_TOKEN": value }), "{client:?}");
        }
        assert_eq!(json_of(Client::Vscode, &launch)["inputs"][0]["id"], "WORK_TOKEN");
        let codex: toml::Table = toml::from_str(&snippet(Client::Codex, &launch).text).unwrap();
        let environment = codex["mcp_servers"]["fetchwell"]["env"].as_table().unwrap();
        assert_eq!(environment["WORK_TOKEN"].as_str(), Some(placeholder));
        let command = snippet(Client::ClaudeCode, &launch).text;
        assert!(
            command
                .starts_with("claude mcp add --scope user fetchwell -e WORK_TOKEN=\"$WORK_TOKEN\" -- /usr"),
            "{command}"
        );
    }
}
