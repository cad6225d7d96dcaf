//! The contents and the actions of the set-up page as values. A command of the program implements them.

use std::collections::BTreeSet;
use std::fmt;

use fetchwell_core::hex::hexadecimal;
use serde::Serialize;
use sha2::{Digest, Sha256};

/// Finds and imports records, adds MCP servers as sources, and changes the files of clients.
pub trait SetupActions: Send + Sync + fmt::Debug {
    /// Returns the possible imports and changes of files. Changes nothing.
    ///
    /// # Errors
    ///
    /// Returns a message for the user.
    fn plan(&self) -> Result<SetupPlan, String>;

    /// Imports the chosen records, adds the chosen servers, and changes the files of the chosen clients. A part that fails is
    /// in the outcome.
    ///
    /// # Errors
    ///
    /// Returns a message for the user if nothing could be done.
    fn apply(&self, choice: &SetupChoice) -> Result<SetupOutcome, String>;
}

/// The possible imports and changes of client files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SetupPlan {
    /// Home folder that was searched.
    pub home: String,
    /// Store of the imports.
    pub store: String,
    /// Imports that are possible, or done already.
    pub imports: Vec<PlannedImport>,
    /// MCP servers that can be sources, or are.
    pub sources: Vec<PlannedSource>,
    /// Reasons for which other servers and files are left out.
    pub notes: Vec<String>,
    /// Files of clients.
    pub clients: Vec<PlannedClient>,
}

/// An MCP server in the file of a client that can be a source, or is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlannedSource {
    /// Name of the source.
    pub name: String,
    /// Clients that have it, for people.
    pub clients: String,
    /// URL or command line.
    pub place: String,
    /// Names of environment variables that the user sets.
    pub variables: Vec<String>,
    /// True if it is a source of the configuration.
    pub is_added: bool,
}

/// An import that is possible, or done already.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlannedImport {
    /// Kind of records for people, such as `mail`.
    pub group: String,
    /// Program that wrote the records.
    pub program: String,
    /// File or folder.
    pub path: String,
    /// Connection of the records in the store.
    pub connection: String,
    /// True if the store has the import.
    pub is_imported: bool,
    /// True if it is chosen unless the user removes it.
    pub is_default: bool,
    /// Description of the files of a folder. It changes with the time to count them, so it is not in the hash of the plan.
    #[serde(skip)]
    pub files: Option<String>,
}

/// The file of a client, before or after its change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlannedClient {
    /// Name of the client for people.
    pub name: String,
    /// Path of its file.
    pub file: String,
    /// State of the file.
    pub state: ClientFileState,
    /// Changes of the file, as lines that begin with `-` or `+`.
    pub diff: Vec<String>,
}

/// State of a client's file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum ClientFileState {
    /// The file already has the command line of fetchwell.
    Current,
    /// The file would be changed or created.
    Planned,
    /// The file was changed or created; with the path of the copy of the earlier file.
    Written(Option<String>),
    /// The file cannot be changed; with the reason, and the text that the user adds to it.
    Refused {
        /// Reason for people.
        reason: String,
        /// Text to add.
        snippet: String,
    },
}

/// A choice of the user: connections of imports, names of sources, and names of clients.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SetupChoice {
    /// Connections of the imports.
    pub imports: BTreeSet<String>,
    /// Names of the sources.
    pub sources: BTreeSet<String>,
    /// Names of the clients.
    pub clients: BTreeSet<String>,
}

/// The results of a choice.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SetupOutcome {
    /// A line for each import.
    pub imports: Vec<String>,
    /// A line for each import that failed.
    pub failed: Vec<String>,
    /// A line for each chosen MCP server.
    pub sources: Vec<String>,
    /// Files of the chosen clients.
    pub clients: Vec<PlannedClient>,
}

impl SetupPlan {
    /// Returns a hash of the plan, by which a form refers to what the user saw.
    pub(super) fn digest(&self) -> String {
        let json = serde_json::to_vec(self).unwrap_or_default();
        hexadecimal(&Sha256::digest(json))
    }

    /// Returns true if nothing can be done.
    pub(super) fn is_empty(&self) -> bool {
        self.imports.iter().all(|import| import.is_imported)
            && self.sources.iter().all(|source| source.is_added)
            && self.clients.iter().all(|client| client.state != ClientFileState::Planned)
    }
}
