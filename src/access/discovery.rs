//! Where the keys of an issuer are, by its own metadata: RFC 8414 first, then OpenID Connect Discovery.

use serde::Deserialize;
use url::Url;

use super::AuthorityUrl;
use super::authority::{AuthorityClient, AuthorityFault};

/// The URL of an issuer's keys. When its first document says nothing useful the second is asked, and what is wrong
/// with that is told.
pub(super) async fn keys_of(
    client: &AuthorityClient,
    issuer: &AuthorityUrl,
) -> Result<AuthorityUrl, AuthorityFault> {
    let [first, second] = documents_of(issuer.url());
    if let Ok(keys) = keys_in(client, &first, issuer).await {
        return Ok(keys);
    }
    keys_in(client, &second, issuer).await
}

async fn keys_in(
    client: &AuthorityClient,
    document: &Url,
    issuer: &AuthorityUrl,
) -> Result<AuthorityUrl, AuthorityFault> {
    let body = client.get(document).await?;
    read(&body, issuer).map_err(|problem| AuthorityFault::Unusable(problem.to_owned()))
}

/// RFC 8414 puts its path between host and path of the issuer, OpenID Connect behind both.
fn documents_of(issuer: &Url) -> [Url; 2] {
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
    fn documents_are_where_the_two_rfcs_have_them() {
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
            let [first, second] = documents_of(issuer.parse::<AuthorityUrl>().unwrap().url());
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
