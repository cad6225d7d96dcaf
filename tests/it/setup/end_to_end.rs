//! From a home folder with mail, notes and two clients to a client that answers.

use std::process::Command;

use serde_json::{Value, json};

use super::{Home, backup_of};
use crate::support::{Model, stderr, stdout, text};

const CURSOR: &str = "{\n  // mine\n  \"mcpServers\": {\n    \"github\": { \"command\": \"gh\", \"env\": { \"TOKEN\": \"s3cret\" } }\n  }\n}\n";

/// Connects a client as the command line in a file says. Clients on a desktop have no environment of a shell.
async fn connect(home: &Home, command: &str, arguments: &[String]) -> Model {
    let mut program = Command::new(command);
    program.args(arguments).env_clear().env("HOME", home.path(""));
    Model::over_command(program).await
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_home_folder_becomes_clients_that_answer() {
    let home = Home::with_records();
    home.write(".cursor/mcp.json", CURSOR);
    let first = home.setup(&["--yes"]);
    let shown = stdout(&first);
    assert!(stderr(&first).contains("looking in ") && stderr(&first).contains("nothing is sent anywhere"));
    for part in ["Thunderbird", "Obsidian", "Markdown", "Claude", "imap-x-test: 1 added", "vault: 1 added"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    // The records of a source tree are no notes, and other servers' tokens are not shown.
    assert!(!shown.contains("tool") && !shown.contains("s3cret"), "{shown}");

    // The file of Cursor keeps its comment and its other server, and has a copy.
    let cursor = home.read(".cursor/mcp.json");
    assert!(cursor.contains("// mine") && cursor.contains("\"TOKEN\": \"s3cret\""), "{cursor}");
    assert_eq!(std::fs::read_to_string(backup_of(&home.path(".cursor/mcp.json"))).unwrap(), CURSOR);
    let cursor: Value = serde_json::from_str(&cursor.replace("// mine", "")).unwrap();
    let entry = &cursor["mcpServers"]["fetchwell"];
    let arguments: Vec<String> = serde_json::from_value(entry["args"].clone()).unwrap();
    assert_eq!(arguments, ["serve", "--store", text(&home.store()), "--stdio"]);
    let codex: toml::Table = home.read(".codex/config.toml").parse().unwrap();
    let codex = &codex["mcp_servers"]["fetchwell"];
    assert_eq!(codex["args"].clone().try_into::<Vec<String>>().unwrap(), arguments);

    let command = entry["command"].as_str().unwrap();
    assert_eq!(codex["command"].as_str(), Some(command));
    let client = connect(&home, command, &arguments).await;
    for (query, connection) in
        [("walrus", "imap-x-test/"), ("ferry", "vault/"), ("gouda", "claude/"), ("leek", "recipes/")]
    {
        let found = client.call("search", json!({ "query": query })).await;
        let id = found["results"][0]["id"].as_str().unwrap_or_else(|| panic!("{query}: {found}"));
        assert!(id.starts_with(connection), "{id}");
        assert!(
            client.call("fetch", json!({ "id": id })).await["text"]
                .to_string()
                .to_lowercase()
                .contains(query)
        );
    }
    drop(client);

    // A second run changes nothing.
    let files = home.files();
    let second = home.setup(&["--yes", "--json"]);
    let answer: Value = serde_json::from_str(&stdout(&second)).unwrap();
    assert_eq!(answer["imports"], json!([]), "{answer}");
    // Folders of documents are imported only by name.
    let found = answer["found"].as_array().unwrap().iter().filter(|found| found["group"] != "folder");
    assert!(
        found.clone().count() > 0 && found.into_iter().all(|found| found["is_imported"] == true),
        "{answer}"
    );
    let states = answer["clients"].as_array().unwrap().iter().map(|client| &client["state"]);
    assert_eq!(states.collect::<Vec<_>>(), ["current", "current"], "{answer}");
    assert_eq!(home.files(), files);
}
