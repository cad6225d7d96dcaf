//! Discovery of an issuer's key set URL: RFC 8414 metadata first, then OpenID Connect Discovery.

use serde::Deserialize;
use url::Url;

use super::AuthorityUrl;
use super::authority::{AuthorityClient, AuthorityFault};

/// Returns the URL of an issuer's key set. If the first document is unusable the second is tried, and an error is
/// that of the second.
pub(super) async fn discover_jwks_url(
    client: &AuthorityClient,
    issuer: &AuthorityUrl,
) -> Result<AuthorityUrl, AuthorityFault> {
    let [first, second] = document_urls(issuer.url());
    if let Ok(keys) = jwks_url_in(client, &first, issuer).await {
        return Ok(keys);
    }
    jwks_url_in(client, &second, issuer).await
}

async fn jwks_url_in(
    client: &AuthorityClient,
    document: &Url,
    issuer: &AuthorityUrl,
) -> Result<AuthorityUrl, AuthorityFault> {
    let body = client.get(document).await?;
    read(&body, issuer).map_err(|problem| AuthorityFault::Unusable(problem.to_owned()))
}

/// Returns the URLs of both documents. RFC 8414 inserts its path between host and path of the issuer, OpenID Connect
/// appends its path.
fn document_urls(issuer: &Url) -> [Url; 2] {
    let path = issuer.path().trim_end_matches('/');
    let at = |path: &str| {
        let mut url = issuer.clone();
        url.set_query(None);
        url.set_path(path);
        url
    };
    [
        at(&format!("/.well-known/oauth-authorization-server{path}")),
        at(&format!("{path}/.well-known/openid-configuration")),
    ]
}

fn read(document: &[u8], issuer: &AuthorityUrl) -> Result<AuthorityUrl, &'static str> {
    #[derive(Deserialize)]
    struct Metadata {
        issuer: String,
        jwks_uri: String,
    }
    let metadata: Metadata = serde_json::from_slice(document)
        .map_err(|_error| "its metadata is no JSON with an issuer and a jwks_uri")?;
    if metadata.issuer != issuer.as_str() {
        return Err("its metadata is of another issuer; write the issuer exactly as the server does");
    }
    metadata.jwks_uri.parse().map_err(|_invalid| "its jwks_uri is not https")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn document_urls_follow_both_standards() {
        for (issuer, rfc, openid) in [
            (
                "https://a.example",
                "/.well-known/oauth-authorization-server",
                "/.well-known/openid-configuration",
            ),
            (
                "https://a.example/",
                "/.well-known/oauth-authorization-server",
                "/.well-known/openid-configuration",
            ),
            (
                "https://a.example/realms/b/?x=1",
                "/.well-known/oauth-authorization-server/realms/b",
                "/realms/b/.well-known/openid-configuration",
            ),
        ] {
            let [first, second] = document_urls(issuer.parse::<AuthorityUrl>().unwrap().url());
            assert_eq!(
                [first.as_str(), second.as_str()],
                [rfc, openid].map(|path| format!("https://a.example{path}"))
            );
        }
    }

    #[test]
    fn metadata_is_of_exactly_this_issuer_and_its_keys_are_behind_https() {
        let issuer = "https://a.example".parse().unwrap();
        let check = |document: &str, expect: Result<&str, &str>| {
            let read = read(document.as_bytes(), &issuer);
            match expect {
                Ok(url) => assert_eq!(read.unwrap().as_str(), url, "{document}"),
                Err(part) => assert!(read.unwrap_err().contains(part), "{document}"),
            }
        };
        check(
            r#"{"issuer":"https://a.example","jwks_uri":"https://keys.example/a","x":[1]}"#,
            Ok("https://keys.example/a"),
        );
        for (document, part) in [
            ("", "no JSON"),
            ("[]", "no JSON"),
            (r#"{"jwks_uri":"https://a.example/k"}"#, "no JSON"),
            (r#"{"issuer":"https://a.example"}"#, "no JSON"),
            (r#"{"issuer":"https://a.example/","jwks_uri":"https://a.example/k"}"#, "another issuer"),
            (r#"{"issuer":"https://A.example","jwks_uri":"https://a.example/k"}"#, "another issuer"),
            (r#"{"issuer":"https://a.example","jwks_uri":"http://a.example/k"}"#, "not https"),
            (r#"{"issuer":"https://a.example","jwks_uri":"file:///etc/passwd"}"#, "not https"),
        ] {
            check(document, Err(part));
        }
    }
}
