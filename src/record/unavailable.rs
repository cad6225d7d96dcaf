//! A source that did not answer although others did.

use serde::{Deserialize, Serialize};

use crate::handle::SourceName;

/// A source whose part of an answer is missing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unavailable {
    /// Which source.
    pub source: SourceName,
    /// The stable code of what went wrong, such as `source_timeout`.
    pub code: String,
    /// What mends it, when waiting does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}
