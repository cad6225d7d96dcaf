//! The entry of the server in the file of a client.

use crate::cli::client_config::Client;

/// Name of the server in the files of clients.
pub(super) const NAME: &str = "fetchwell";

/// The command line of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServerEntry {
    pub(crate) command: String,
    pub(crate) arguments: Vec<String>,
}

/// Format of a client's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    /// JSON, with comments where the client permits them.
    Json {
        /// Key of the object with the servers.
        servers: &'static str,
        /// Value of `type` in the entry.
        transport: Option<&'static str>,
    },
    /// TOML, with the table `mcp_servers`.
    Toml,
}

impl Format {
    pub(super) fn for_client(client: Client) -> Self {
        match client {
            Client::Codex => Self::Toml,
            Client::Vscode => Self::Json { servers: "servers", transport: Some("stdio") },
            Client::ClaudeCode => Self::Json { servers: "mcpServers", transport: Some("stdio") },
            _ => Self::Json { servers: "mcpServers", transport: None },
        }
    }
}

#[cfg(test)]
impl ServerEntry {
    /// Returns an entry with a path that needs quotes, for tests.
    pub(super) fn sample() -> Self {
        Self {
            command: "/opt/fetchwell".to_owned(),
            arguments: ["serve", "--store", "/h/a \"b\".db", "--stdio"].map(str::to_owned).to_vec(),
        }
    }
}
