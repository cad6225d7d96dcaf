//! The outcome of a call, as one of a fixed set of strings.
//!
//! An error code of a record server is free text of that server: it is counted as `source_error` and never logged.

use std::fmt;

/// Error codes of this program. A new error needs an entry here, or it counts as `source_error`.
const CODES: [&str; 42] = [
    "ambiguous_connection",
    "ambiguous_schema_detail",
    "authorization_unavailable",
    "busy",
    "conflicting_connection_id",
    "connection_not_found",
    "cursor_expired",
    "document_not_found",
    "embedding_error",
    "field_not_found",
    "field_not_text",
    "forbidden",
    "internal_error",
    "invalid_argument",
    "invalid_cursor",
    "invalid_expand",
    "invalid_field_path",
    "invalid_filter",
    "invalid_handle",
    "invalid_query",
    "invalid_request",
    "invalid_sort",
    "invalid_window",
    "method_not_allowed",
    "no_sources",
    "not_found",
    "not_supported",
    "project_not_found",
    "query_not_found",
    "rate_limited",
    "reauthorize",
    "response_too_large",
    "source_protocol",
    "source_rate_limited",
    "source_timeout",
    "source_unavailable",
    "state_unavailable",
    "stream_not_declared",
    "too_many_calls",
    "unauthorized",
    "unknown_field",
    "unknown_tool",
];

/// The outcome of a call: `ok`, `cancelled` or an error code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Outcome(&'static str);

impl Outcome {
    /// The call was answered.
    pub const OK: Self = Self("ok");
    /// The caller disconnected, or the server stopped, before the call was answered.
    pub const CANCELLED: Self = Self("cancelled");
    /// A record server returned an error with a code of its own.
    pub const SOURCE_ERROR: Self = Self("source_error");
    /// The cursor of the call was invalid or expired.
    pub const INVALID_CURSOR: Self = Self("invalid_cursor");

    /// Returns the outcome of an error code.
    #[must_use]
    pub fn of_code(code: &str) -> Self {
        CODES.into_iter().find(|known| *known == code).map_or(Self::SOURCE_ERROR, Self)
    }

    /// Returns the outcome as a string.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.0
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_in_the_table_of_errors_is_known() {
        let map = include_str!("../../../ARCHITECTURE.md");
        let rows = map.lines().skip_while(|line| *line != "## Errors").skip(1);
        let rows = rows.take_while(|line| !line.starts_with("## ")).filter(|line| line.starts_with("| `"));
        let cells = rows.filter_map(|line| line.split('|').nth(1));
        let codes: Vec<&str> = cells
            .flat_map(|cell| cell.split('`').skip(1).step_by(2))
            .filter(|code| *code != "reason")
            .collect();
        assert!(codes.len() > 20, "{codes:?}");
        for code in codes {
            assert_eq!(Outcome::of_code(code).as_str(), code);
        }
    }

    #[test]
    fn every_code_is_documented() {
        let documented = include_str!("../../../docs/monitoring.md");
        let codes = documented.split("\n## Codes\n").nth(1).unwrap();
        let missing: Vec<_> = CODES.iter().filter(|code| !codes.contains(&format!("`{code}`"))).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }

    #[test]
    fn a_code_of_a_record_server_is_not_recorded() {
        for code in ["grant_revoked", "Bob's secret", "", "cancelled", "ok"] {
            assert_eq!(Outcome::of_code(code), Outcome::SOURCE_ERROR, "{code}");
        }
    }
}
