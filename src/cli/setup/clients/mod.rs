//! The clients on this machine, the changes of their files that make them use fetchwell, and the servers in these files.
//!
//! * `entry`: the entry of the server
//! * `json_file`, `toml_file`: edits of the text of a file, which keep everything else
//! * `change`: reads a file, and writes it with a copy of the earlier one beside it
//! * `excerpt`: the changes of a text, for people
//! * `redact`: the text of a file with placeholders for the values of other servers
//! * `servers`: the MCP servers in a file
//! * `error`: the reasons for which a file is left as it is

mod change;
mod entry;
mod error;
mod excerpt;
mod json_file;
mod redact;
mod servers;
mod toml_file;

pub(super) use self::change::{FileChange, FilePlan};
pub(super) use self::entry::ServerEntry;
pub(super) use self::error::ClientFileError;
pub(super) use self::json_file::URL_KEYS;
pub(super) use self::servers::{ListedServer, read_servers};
use super::find::Home;
use crate::cli::client_config::Client;

/// Clients with files that are changed. `client-config` prints a snippet for the others.
pub(super) const CLIENTS: [Client; 5] =
    [Client::Claude, Client::ClaudeCode, Client::Codex, Client::Cursor, Client::Vscode];

/// Returns the clients that this machine has: those with their file, or its folder.
pub(super) fn find_clients(home: &Home) -> Vec<Client> {
    let is_present = |client: &Client| {
        let Some(file) = client.file() else { return false };
        let path = file.resolve(home.folders());
        match client {
            // Its file is in the home folder itself.
            Client::ClaudeCode => path.is_file() || home.inside(".claude").is_some(),
            _ => path.parent().is_some_and(|folder| home.inside(folder).is_some()),
        }
    };
    CLIENTS.into_iter().filter(is_present).collect()
}
