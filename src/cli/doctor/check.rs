//! The result of one check.

use serde::Serialize;

use crate::config::SourceSettings;

/// Result of one check.
#[derive(Debug, Serialize)]
pub(super) struct Check {
    /// Source that was checked; `None` for a check across sources.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) source: Option<String>,
    pub(super) name: &'static str,
    pub(super) ok: bool,
    pub(super) found: String,
    /// Warning about something that works and should be improved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) warning: Option<String>,
}

impl Check {
    pub(super) fn for_source(
        source: &SourceSettings,
        name: &'static str,
        outcome: Result<String, String>,
    ) -> Self {
        Self { source: Some(source.name.to_string()), ..Self::for_all(name, outcome) }
    }

    pub(super) fn for_all(name: &'static str, outcome: Result<String, String>) -> Self {
        let ok = outcome.is_ok();
        Self { source: None, name, ok, found: outcome.unwrap_or_else(|problem| problem), warning: None }
    }

    pub(super) fn warning(self, warning: Option<String>) -> Self {
        Self { warning, ..self }
    }
}
