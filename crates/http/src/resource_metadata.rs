//! URLs of the protected resource metadata (RFC 9728): `pages` serves the documents, and `middleware` names them in
//! challenges.

use super::public_url::PublicUrl;

/// Path of the server's document; that of a resource is appended.
pub(crate) const BASE: &str = "/.well-known/oauth-protected-resource";

/// Resources with a document of their own; others have that of the server. A client compares the resource with the
/// URL that it was configured with, which may end with a slash.
pub(crate) const RESOURCES: [&str; 6] =
    ["/mcp", "/mcp/", "/mcp/openai", "/mcp/openai/", "/mcp/docs", "/mcp/docs/"];

/// Returns the URL of the document about `path`, or `None` without a public URL.
pub(crate) fn metadata_url(public_url: Option<&PublicUrl>, path: &str) -> Option<String> {
    let resource = if RESOURCES.contains(&path) { path } else { "" };
    public_url.map(|url| url.at(&format!("{BASE}{resource}")))
}
