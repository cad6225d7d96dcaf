//! What clients read to find out where to sign in (RFC 9728).

use serde::Serialize;

/// The metadata of a protected resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ResourceMetadata {
    /// The URL that a token is asked for: its audience.
    pub resource: String,
    /// Who gives tokens for it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub authorization_servers: Vec<String>,
    /// What a token needs in its scope.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scopes_supported: Vec<String>,
    /// How a token is sent: only as `Authorization` header.
    pub bearer_methods_supported: [&'static str; 1],
    /// How it searches, as record servers say it.
    pub capabilities: Capabilities,
    /// What a person knows it by.
    pub resource_name: &'static str,
    /// Where a person reads about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_documentation: Option<String>,
}

/// How a server searches: by words, and not by meaning, because there are no embeddings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Capabilities {
    /// `/v1/search`.
    pub lexical_retrieval: Retrieval,
    /// `/v1/search/semantic`.
    pub semantic_retrieval: Retrieval,
    /// `/v1/search/hybrid`.
    pub hybrid_retrieval: Retrieval,
}

/// One way to search.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Retrieval {
    /// Whether the server has it.
    pub supported: bool,
}

impl Capabilities {
    const NOW: Self = Self {
        lexical_retrieval: Retrieval { supported: true },
        semantic_retrieval: Retrieval { supported: false },
        hybrid_retrieval: Retrieval { supported: false },
    };
}

impl ResourceMetadata {
    /// Of a resource.
    pub(super) fn new(resource: &str, issuer: Option<String>, scopes: &[String]) -> Self {
        Self {
            resource: resource.to_owned(),
            authorization_servers: issuer.into_iter().collect(),
            scopes_supported: scopes.to_vec(),
            bearer_methods_supported: ["header"],
            capabilities: Capabilities::NOW,
            resource_name: "fetchwell",
            resource_documentation: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_written_as_the_rfc_has_it() {
        let check = |metadata: ResourceMetadata, expect: &str| {
            assert_eq!(serde_json::to_string(&metadata).unwrap(), expect);
        };
        let resource = "https://records.example.com/mcp";
        check(
            ResourceMetadata::new(
                resource,
                Some("https://login.example.com".into()),
                &["records.read".into()],
            ),
            concat!(
                r#"{"resource":"https://records.example.com/mcp","authorization_servers":["https://login.example.com"],"#,
                r#""scopes_supported":["records.read"],"bearer_methods_supported":["header"],"#,
                r#""capabilities":{"lexical_retrieval":{"supported":true},"semantic_retrieval":{"supported":false},"#,
                r#""hybrid_retrieval":{"supported":false}},"resource_name":"fetchwell"}"#
            ),
        );
        check(
            ResourceMetadata::new(resource, None, &[]),
            concat!(
                r#"{"resource":"https://records.example.com/mcp","bearer_methods_supported":["header"],"#,
                r#""capabilities":{"lexical_retrieval":{"supported":true},"semantic_retrieval":{"supported":false},"#,
                r#""hybrid_retrieval":{"supported":false}},"resource_name":"fetchwell"}"#
            ),
        );
    }
}
