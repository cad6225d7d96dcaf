//! The protected resource metadata (RFC 9728), with which clients find the authorization server.

use serde::Serialize;

/// The metadata of a protected resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ResourceMetadata {
    /// URL of the resource, which is the audience of its tokens.
    pub resource: String,
    /// Issuers of tokens for the resource.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub authorization_servers: Vec<String>,
    /// Scopes that a token requires.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scopes_supported: Vec<String>,
    /// Methods of sending a token: only the `Authorization` header.
    pub bearer_methods_supported: [&'static str; 1],
    /// Supported search methods, in the format of record servers.
    pub capabilities: Capabilities,
    /// Display name of the resource.
    pub resource_name: &'static str,
    /// URL of the documentation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_documentation: Option<String>,
}

/// The supported search methods: by words, and by meaning if an embedding model is configured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Capabilities {
    /// Support for `/v1/search`.
    pub lexical_retrieval: Retrieval,
    /// Support for `/v1/search/semantic`.
    pub semantic_retrieval: Retrieval,
    /// Support for `/v1/search/hybrid`.
    pub hybrid_retrieval: Retrieval,
}

/// The support for one search method.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Retrieval {
    /// True if the server supports the method.
    pub supported: bool,
}

impl Capabilities {
    fn new(searches_meaning: bool) -> Self {
        Self {
            lexical_retrieval: Retrieval { supported: true },
            semantic_retrieval: Retrieval { supported: searches_meaning },
            hybrid_retrieval: Retrieval { supported: searches_meaning },
        }
    }
}

impl ResourceMetadata {
    /// Creates the metadata of a resource.
    pub(super) fn new(
        resource: &str,
        issuer: Option<String>,
        scopes: &[String],
        searches_meaning: bool,
    ) -> Self {
        Self {
            resource: resource.to_owned(),
            authorization_servers: issuer.into_iter().collect(),
            scopes_supported: scopes.to_vec(),
            bearer_methods_supported: ["header"],
            capabilities: Capabilities::new(searches_meaning),
            resource_name: "fetchwell",
            resource_documentation: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_serialized_as_in_rfc_9728() {
        let check = |metadata: ResourceMetadata, expect: &str| {
            assert_eq!(serde_json::to_string(&metadata).unwrap(), expect);
        };
        let resource = "https://records.example.com/mcp";
        check(
            ResourceMetadata::new(
                resource,
                Some("https://login.example.com".into()),
                &["records.read".into()],
                false,
            ),
            concat!(
                r#"{"resource":"https://records.example.com/mcp","authorization_servers":["https://login.example.com"],"#,
                r#""scopes_supported":["records.read"],"bearer_methods_supported":["header"],"#,
                r#""capabilities":{"lexical_retrieval":{"supported":true},"semantic_retrieval":{"supported":false},"#,
                r#""hybrid_retrieval":{"supported":false}},"resource_name":"fetchwell"}"#
            ),
        );
        check(
            ResourceMetadata::new(resource, None, &[], true),
            concat!(
                r#"{"resource":"https://records.example.com/mcp","bearer_methods_supported":["header"],"#,
                r#""capabilities":{"lexical_retrieval":{"supported":true},"semantic_retrieval":{"supported":true},"#,
                r#""hybrid_retrieval":{"supported":true}},"resource_name":"fetchwell"}"#
            ),
        );
    }
}
