//! A source that failed although others answered.

use serde::{Deserialize, Serialize};

use crate::handle::SourceName;

/// A source that failed, so that its part of a response is missing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unavailable {
    /// Name of the source.
    pub source: SourceName,
    /// Stable error code, such as `source_timeout`.
    pub code: String,
    /// Remedy, if waiting does not help.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}
