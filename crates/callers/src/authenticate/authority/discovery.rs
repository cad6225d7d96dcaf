//! Discovery of an issuer's endpoints: RFC 8414 metadata first, then OpenID Connect Discovery.

use serde::Deserialize;
use url::Url;

use super::client::{AuthorityClient, AuthorityFault};
use super::url::AuthorityUrl;

/// The endpoints for signing in.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Endpoints {
    /// Authorization endpoint, for browsers.
    pub(crate) authorization: AuthorityUrl,
    /// Token endpoint, which exchanges a code for a token.
    pub(crate) token: AuthorityUrl,
    /// True if responses name their issuer (RFC 9207).
    pub(crate) sends_issuer: bool,
    /// True if the token endpoint accepts a client's secret by HTTP Basic.
    pub(crate) takes_basic: bool,
}

/// Returns the URL of an issuer's key set.
pub(crate) async fn discover_jwks_url(
    client: &AuthorityClient,
    issuer: &AuthorityUrl,
) -> Result<AuthorityUrl, AuthorityFault> {
    read_metadata(client, issuer, keys_in).await
}

/// Returns the endpoints of an issuer for signing in.
pub(crate) async fn discover_endpoints(
    client: &AuthorityClient,
    issuer: &AuthorityUrl,
) -> Result<Endpoints, AuthorityFault> {
    read_metadata(client, issuer, endpoints_in).await
}

/// Reads the metadata of an issuer. If the first document is unusable, the second is read, and its error is returned.
async fn read_metadata<Document>(
    client: &AuthorityClient,
    issuer: &AuthorityUrl,
    read: impl Fn(&[u8], &AuthorityUrl) -> Result<Document, &'static str>,
) -> Result<Document, AuthorityFault> {
    let [first, second] = document_urls(issuer.url());
    let found =
        |body: &[u8]| read(body, issuer).map_err(|problem| AuthorityFault::Unusable(problem.to_owned()));
    if let Ok(body) = client.get(&first).await
        && let Ok(found) = found(&body)
    {
        return Ok(found);
    }
    found(&client.get(&second).await?)
}

/// Returns the URLs of both metadata documents. RFC 8414 inserts `/.well-known/...` between host and path of the issuer;
/// OpenID Connect appends it to the path.
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

fn keys_in(document: &[u8], issuer: &AuthorityUrl) -> Result<AuthorityUrl, &'static str> {
    #[derive(Deserialize)]
    struct Metadata {
        issuer: String,
        jwks_uri: String,
    }
    let metadata: Metadata = serde_json::from_slice(document)
        .map_err(|_error| "its metadata is not JSON with an issuer and a jwks_uri")?;
    check_issuer(&metadata.issuer, issuer)?;
    endpoint(&metadata.jwks_uri, issuer).ok_or("its jwks_uri is not https")
}

fn endpoints_in(document: &[u8], issuer: &AuthorityUrl) -> Result<Endpoints, &'static str> {
    #[derive(Deserialize)]
    struct Metadata {
        issuer: String,
        authorization_endpoint: String,
        token_endpoint: String,
        code_challenge_methods_supported: Option<Vec<String>>,
        token_endpoint_auth_methods_supported: Option<Vec<String>>,
        #[serde(default)]
        authorization_response_iss_parameter_supported: bool,
    }
    let metadata: Metadata = serde_json::from_slice(document).map_err(
        |_error| "its metadata is not JSON with an issuer, an authorization_endpoint and a token_endpoint",
    )?;
    check_issuer(&metadata.issuer, issuer)?;
    // Some servers accept S256 without listing it.
    let methods = metadata.code_challenge_methods_supported;
    if methods.is_some_and(|methods| !methods.iter().any(|method| method == "S256")) {
        return Err("its metadata does not have S256 among the code_challenge_methods_supported");
    }
    let methods = metadata.token_endpoint_auth_methods_supported.unwrap_or_default();
    let takes = |known: &str| methods.iter().any(|method| method == known);
    Ok(Endpoints {
        authorization: endpoint(&metadata.authorization_endpoint, issuer)
            .ok_or("its authorization_endpoint is not https")?,
        token: endpoint(&metadata.token_endpoint, issuer).ok_or("its token_endpoint is not https")?,
        sends_issuer: metadata.authorization_response_iss_parameter_supported,
        takes_basic: takes("client_secret_basic") || !takes("client_secret_post"),
    })
}

fn check_issuer(named: &str, issuer: &AuthorityUrl) -> Result<(), &'static str> {
    if named == issuer.as_str() {
        Ok(())
    } else {
        Err("its metadata names another issuer; copy the issuer exactly from the metadata")
    }
}

/// Parses the URL of an endpoint. Without https, only an issuer on this machine may have endpoints. The host may differ from that
/// of the issuer, since large providers have several.
fn endpoint(text: &str, issuer: &AuthorityUrl) -> Option<AuthorityUrl> {
    let endpoint: AuthorityUrl = text.parse().ok()?;
    (endpoint.url().scheme() == "https" || issuer.url().scheme() == "http").then_some(endpoint)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

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
    fn metadata_must_name_the_issuer_and_https_keys() {
        let issuer = "https://a.example".parse().unwrap();
        let check = |document: &str, expect: Result<&str, &str>| {
            let read = keys_in(document.as_bytes(), &issuer);
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
            ("", "not JSON"),
            ("[]", "not JSON"),
            (r#"{"jwks_uri":"https://a.example/k"}"#, "not JSON"),
            (r#"{"issuer":"https://a.example"}"#, "not JSON"),
            (r#"{"issuer":"https://a.example/","jwks_uri":"https://a.example/k"}"#, "another issuer"),
            (r#"{"issuer":"https://A.example","jwks_uri":"https://a.example/k"}"#, "another issuer"),
            (r#"{"issuer":"https://a.example","jwks_uri":"http://a.example/k"}"#, "not https"),
            (r#"{"issuer":"https://a.example","jwks_uri":"http://127.0.0.1/k"}"#, "not https"),
            (r#"{"issuer":"https://a.example","jwks_uri":"file:///etc/passwd"}"#, "not https"),
        ] {
            check(document, Err(part));
        }
    }

    #[test]
    fn endpoints_require_https_and_s256() {
        let good = json!({"issuer": "https://a.example", "authorization_endpoint": "https://a.example/auth?p=1",
            "token_endpoint": "https://tokens.example/t"});
        let read = |change: Value, issuer: &str| {
            let mut document = good.clone();
            let changes = change.as_object().unwrap().clone();
            document.as_object_mut().unwrap().extend(changes);
            endpoints_in(document.to_string().as_bytes(), &issuer.parse().unwrap())
        };
        let issuer = "https://a.example";
        let endpoints = read(json!({}), issuer).unwrap();
        assert_eq!(endpoints.authorization.as_str(), "https://a.example/auth?p=1");
        assert_eq!((endpoints.takes_basic, endpoints.sends_issuer), (true, false));
        let post = json!({"token_endpoint_auth_methods_supported": ["none", "client_secret_post"],
            "authorization_response_iss_parameter_supported": true, "code_challenge_methods_supported": ["plain", "S256"]});
        let endpoints = read(post, issuer).unwrap();
        assert_eq!((endpoints.takes_basic, endpoints.sends_issuer), (false, true));
        for (change, part) in [
            (json!({"issuer": "https://evil.example"}), "another issuer"),
            (json!({"token_endpoint": "http://a.example/t"}), "token_endpoint is not https"),
            // A remote issuer cannot direct secrets to a port of this machine.
            (json!({"token_endpoint": "http://127.0.0.1:22/t"}), "token_endpoint is not https"),
            (json!({"token_endpoint": "https://u:p@a.example/t"}), "token_endpoint is not https"),
            (
                json!({"authorization_endpoint": "http://a.example/auth"}),
                "authorization_endpoint is not https",
            ),
            (json!({"authorization_endpoint": "javascript:alert(1)"}), "authorization_endpoint is not https"),
            (
                json!({"authorization_endpoint": "https://a.example/#x"}),
                "authorization_endpoint is not https",
            ),
            (json!({"authorization_endpoint": null}), "not JSON"),
            (json!({"code_challenge_methods_supported": ["plain"]}), "S256"),
        ] {
            let problem = read(change.clone(), issuer).unwrap_err();
            assert!(problem.contains(part), "{change}: {problem}");
        }
        let local = "http://127.0.0.1:9000";
        let change = json!({"issuer": local, "token_endpoint": "http://127.0.0.1:9000/t"});
        assert!(read(change, local).is_ok());
    }
}
