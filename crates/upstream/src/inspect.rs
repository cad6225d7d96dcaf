//! The tools of a server, for people who configure it.

use fetchwell_source::{ProtocolFault, SourceError};

use crate::mapping::Mapping;
use crate::presets::recognized;
use crate::server::McpServer;
pub use crate::tool_info::InspectedTool;
use crate::tool_info::ToolInfo;
use crate::tools::propose;

/// A server as it presents itself, and what was recognized.
#[derive(Debug, Clone, PartialEq)]
pub struct Inspection {
    /// Name and version that the server gives itself.
    pub server: String,
    /// Tools of the server, each name once.
    pub tools: Vec<InspectedTool>,
    /// Number of entries of the tool list that cannot be read.
    pub unread: usize,
    /// Names of several tools, of which the first one is used.
    pub repeated: Vec<String>,
    /// The tools that are called, with their arguments, if they are known.
    pub used: Option<Mapping>,
    /// The reason why none is called, with the command that shows what to write.
    pub problem: Option<String>,
    /// The same reason with what to write, for the output of that command.
    pub correction: Option<String>,
    /// A mapping that may be right, if none is known.
    pub proposed: Option<Mapping>,
    /// The preset of the server.
    pub preset: Option<&'static str>,
}

/// Returns the message of an error with the setting to write, in place of the command that shows it.
#[must_use]
pub fn correction(error: &SourceError) -> String {
    match error {
        SourceError::Protocol(ProtocolFault::UnknownTools { problem, setting, .. }) => {
            format!("{problem}; {setting}")
        }
        error => error.to_string(),
    }
}

impl McpServer {
    /// Opens a session and lists the tools. Waits for a slow start up to [`OPENING_TIMEOUT`](crate::OPENING_TIMEOUT), as calls
    /// one after the other do.
    ///
    /// # Errors
    ///
    /// See [`SourceError`].
    pub async fn inspect(&self) -> Result<Inspection, SourceError> {
        let list = self.tool_list().await.map_err(|problem| self.error(problem))?;
        let server = self.server_name().await?;
        let used = list.used.as_ref().ok().map(|tools| Mapping {
            search: Some(tools.search.clone()),
            fetch: Some(tools.fetch.clone()),
            stream: None,
        });
        let problem = list.used.clone().err().map(|problem| self.error(problem));
        Ok(Inspection {
            preset: server.rsplit_once(' ').and_then(|(name, _version)| recognized(name)),
            server,
            tools: list.all.iter().map(ToolInfo::inspected).collect(),
            unread: list.unread,
            repeated: list.repeated.iter().cloned().collect(),
            proposed: if used.is_none() { propose(&list.all) } else { None },
            used,
            correction: problem.as_ref().map(correction),
            problem: problem.map(|problem| problem.to_string()),
        })
    }
}
