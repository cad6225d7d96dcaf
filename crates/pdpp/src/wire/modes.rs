//! Parser of the search methods that a server declares in its metadata (RFC 9728).

use fetchwell_source::{SearchMode, SourceError};
use serde_json::Value;

use super::parse;

/// The search methods of a server, as far as it declares them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct DeclaredModes {
    semantic: Option<bool>,
    hybrid: Option<bool>,
}

impl DeclaredModes {
    /// Returns true if the server says that it does not support a mode.
    pub(crate) fn excludes(self, mode: SearchMode) -> bool {
        let declared = [(SearchMode::Semantic, self.semantic), (SearchMode::Hybrid, self.hybrid)];
        declared.contains(&(mode, Some(false)))
    }

    /// Returns the mode that finds hits by meaning, if the server declares one.
    pub(crate) fn with_meaning(self) -> Option<SearchMode> {
        match (self.hybrid, self.semantic) {
            (Some(true), _) => Some(SearchMode::Hybrid),
            (_, Some(true)) => Some(SearchMode::Semantic),
            _ => None,
        }
    }
}

/// Parses the metadata of a server.
pub(crate) fn declared_modes(body: &[u8]) -> Result<DeclaredModes, SourceError> {
    let metadata: Value = parse(body)?;
    let supported = |names: [&str; 2]| {
        let method = names.iter().find_map(|name| metadata.get("capabilities")?.get(name))?;
        method.get("supported").unwrap_or(method).as_bool()
    };
    Ok(DeclaredModes {
        semantic: supported(["semantic_retrieval", "semanticRetrieval"]),
        hybrid: supported(["hybrid_retrieval", "hybridRetrieval"]),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_clear_yes_or_no_counts() {
        for (body, semantic, hybrid, with_meaning) in [
            (
                r#"{"capabilities": {"semantic_retrieval": {"supported": true}, "hybrid_retrieval": {"supported": false}}}"#,
                false,
                true,
                Some(SearchMode::Semantic),
            ),
            (
                r#"{"capabilities": {"semanticRetrieval": false, "hybridRetrieval": true}}"#,
                true,
                false,
                Some(SearchMode::Hybrid),
            ),
            (r#"{"capabilities": {"semantic_retrieval": {"supported": "no"}}}"#, false, false, None),
            (r#"{"capabilities": [1]}"#, false, false, None),
            ("{}", false, false, None),
            ("[]", false, false, None),
        ] {
            let modes = declared_modes(body.as_bytes()).unwrap();
            let excluded = [SearchMode::Semantic, SearchMode::Hybrid].map(|mode| modes.excludes(mode));
            assert_eq!(excluded, [semantic, hybrid], "{body}");
            assert!(!modes.excludes(SearchMode::Lexical));
            assert_eq!(modes.with_meaning(), with_meaning, "{body}");
        }
        assert!(declared_modes(b"<html>").is_err());
    }
}
