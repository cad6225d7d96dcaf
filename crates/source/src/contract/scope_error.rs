//! Errors of scopes that name nothing. Each message lists what exists.

use super::store_error::StoreError;

/// Maximum number of names that an error lists.
const MAX_CHOICES: usize = 12;

/// Reason why a scope cannot be used. The message lists what exists.
#[derive(Debug, thiserror::Error)]
pub enum ScopeError {
    /// The store has no such connection.
    #[error("there is no connection `{asked}`; {}", choices(.known, "connections"))]
    ConnectionNotFound {
        /// Id of the connection in the command.
        asked: String,
        /// Connections that exist.
        known: Vec<String>,
    },
    /// The connection has no such stream.
    #[error("the connection `{connection}` has no stream `{asked}`; {}", choices(.known, "streams"))]
    StreamNotFound {
        /// Id of the connection.
        connection: String,
        /// Name of the stream in the command.
        asked: String,
        /// Streams that exist.
        known: Vec<String>,
    },
    /// The stream has no such record.
    #[error("there is no record `{0}`; copy its id from `fetchwell search`")]
    RecordNotFound(String),
    /// The store cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
}

fn choices(known: &[String], what: &str) -> String {
    let shown: Vec<&str> = known.iter().take(MAX_CHOICES).map(String::as_str).collect();
    match known.len().saturating_sub(shown.len()) {
        _ if shown.is_empty() => format!("there are no {what}"),
        0 => format!("existing {what}: {}", shown.join(", ")),
        more => format!("existing {what}: {} and {more} more", shown.join(", ")),
    }
}
