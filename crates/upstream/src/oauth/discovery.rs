//! Discovery of the authorization server of an MCP server (RFC 9728, RFC 8414), by rmcp.
//!
//! Many servers answer a GET without a challenge, so the challenge is that of an `initialize` request.

use std::sync::Arc;
use std::time::Duration;

use http::header::{ACCEPT, CONTENT_TYPE, WWW_AUTHENTICATE};
use http::{HeaderMap, Request, StatusCode};
use rmcp::transport::auth::{
    AuthError, AuthorizationManager, AuthorizationMetadata, AuthorizationMetadataSource, OAuthClientConfig,
    WWWAuthenticateParams,
};
use secrecy::ExposeSecret;
use serde_json::json;
use tokio::time::timeout;
use url::Url;

use super::account::{Account, origin};
use super::client::OutboundClient;
use super::fault::{OAuthError, OAuthFault};
use super::stored_login::RegisteredClient;

/// Protocol version of the request that asks for a challenge.
const PROTOCOL_VERSION: &str = "2025-06-18";

/// Timeout of all requests of a discovery. It is well below the lifetime of a lock of tokens, under which it may run.
const DISCOVERY_WITHIN: Duration = Duration::from_secs(25);

/// Answer of an MCP server to a request without a token.
#[derive(Debug, Default)]
pub(super) struct Challenge {
    /// True if the server answered 401.
    pub(super) is_unauthorized: bool,
    /// Value of `WWW-Authenticate` that says most.
    pub(super) header: Option<String>,
    /// URL of the protected resource metadata in that value.
    pub(super) resource_metadata: Option<Url>,
}

/// Authorization server that was found.
pub(super) struct Discovery {
    /// State machine of rmcp, with the metadata set.
    pub(super) manager: AuthorizationManager,
    /// Metadata of the authorization server.
    pub(super) metadata: AuthorizationMetadata,
    /// True if the server published the metadata; otherwise its endpoints follow from its URL, as in the MCP revision of
    /// March 2025.
    pub(super) is_published: bool,
}

/// Sends an `initialize` request without a token, and returns the challenge of the server.
async fn challenge(account: &Account, client: &OutboundClient) -> Result<Challenge, OAuthError> {
    let params = json!({
        "protocolVersion": PROTOCOL_VERSION,
        "capabilities": {},
        "clientInfo": {"name": "fetchwell", "version": env!("CARGO_PKG_VERSION")},
    });
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
    let request = Request::post(account.url().as_str())
        .header(CONTENT_TYPE, "application/json")
        .header(ACCEPT, "application/json, text/event-stream")
        .body(body.to_string().into_bytes());
    let problem = "the URL of the server cannot be requested";
    let request = request.map_err(|_invalid| account.error(OAuthFault::Metadata { problem }))?;
    let response = client.send(request).await.map_err(|fault| account.error(fault.into()))?;
    if let Some(fault @ (OAuthFault::Unreachable { .. } | OAuthFault::RateLimited { .. })) =
        client.last_fault().map(OAuthFault::from)
    {
        return Err(account.error(fault));
    }
    if response.status() != StatusCode::UNAUTHORIZED {
        return Ok(Challenge::default());
    }
    Ok(Challenge::read(response.headers(), account.url()))
}

impl Challenge {
    fn read(headers: &HeaderMap, base: &Url) -> Self {
        let values = headers.get_all(WWW_AUTHENTICATE).iter().filter_map(|value| value.to_str().ok());
        let values: Vec<&str> = values.collect();
        let parse = |value: &&str| WWWAuthenticateParams::parse(value, base);
        let best = values
            .iter()
            .find(|value| parse(value).resource_metadata_url.is_some())
            .or_else(|| values.iter().find(|value| parse(value).scope.is_some()));
        Self {
            is_unauthorized: true,
            header: best.map(ToString::to_string),
            resource_metadata: best.and_then(|value| parse(value).resource_metadata_url),
        }
    }

    /// Returns the challenge of a sign-in before, of which only the URL of the metadata is known.
    pub(super) fn from_resource_metadata(url: Option<&Url>) -> Self {
        Self {
            is_unauthorized: true,
            header: url.map(|url| format!("Bearer resource_metadata=\"{url}\"")),
            resource_metadata: url.cloned(),
        }
    }
}

/// Asks a server for a challenge, and discovers the authorization server that people sign in at.
pub(super) async fn discover_sign_in(
    account: &Account,
    client: &Arc<OutboundClient>,
) -> Result<(Challenge, Discovery), OAuthError> {
    let challenge = challenge(account, client).await?;
    let found = discover(account, client, &challenge).await?;
    if !found.is_published && !challenge.is_unauthorized {
        return Err(account.error(OAuthFault::NoSignIn));
    }
    Ok((challenge, found))
}

/// Discovers the authorization server.
async fn discover(
    account: &Account,
    client: &Arc<OutboundClient>,
    challenge: &Challenge,
) -> Result<Discovery, OAuthError> {
    let failed = |error: AuthError| account.error(fault_of(&error, client));
    let http_client = Arc::clone(client);
    let manager = AuthorizationManager::new_with_oauth_http_client(account.url().clone(), http_client);
    let mut manager = manager.await.map_err(failed)?;
    let found = Box::pin(manager.resolve_metadata_from_challenge(challenge.header.as_deref()));
    let found = found.await.map_err(failed)?;
    let is_published = found.source != AuthorizationMetadataSource::LegacyEndpointFallback;
    let metadata = found.metadata;
    check_endpoints(account, &metadata)?;
    manager.set_metadata(metadata.clone());
    Ok(Discovery { manager, metadata, is_published })
}

/// Discovers the authorization server of a registered client again, so that an endpoint that has moved is followed. Its
/// issuer must be that of the sign-in: the MCP server must not choose who gets a code or a refresh token.
pub(super) async fn rediscover(
    account: &Account,
    client: &Arc<OutboundClient>,
    registered: &RegisteredClient,
    resource_metadata: Option<&Url>,
) -> Result<AuthorizationManager, OAuthError> {
    let challenge = Challenge::from_resource_metadata(resource_metadata);
    let found = timeout(DISCOVERY_WITHIN, discover(account, client, &challenge)).await;
    let late = |_late| {
        let problem = format!("its authorization server was not found within {DISCOVERY_WITHIN:?}");
        account.error(OAuthFault::Unreachable { origin: origin(account.url()), problem })
    };
    let found = found.map_err(late)??;
    let RegisteredClient { client_id, client_secret, issuer, redirect_uri } = registered;
    match (issuer, &found.metadata.issuer) {
        (known, found) if known == found => {}
        (Some(_), None) => {
            let problem = "its authorization server has no metadata";
            return Err(account.error(OAuthFault::Metadata { problem }));
        }
        _ => return Err(account.error(OAuthFault::OtherIssuer)),
    }
    let mut config = OAuthClientConfig::new(client_id, redirect_uri);
    if let Some(secret) = client_secret {
        config = config.with_client_secret(secret.expose_secret());
    }
    let mut manager = found.manager;
    let configured = manager.configure_client(config);
    configured.map_err(|error| account.error(fault_of(&error, client)))?;
    Ok(manager)
}

/// Checks that all endpoints may be requested, before a browser is sent to one of them.
fn check_endpoints(account: &Account, metadata: &AuthorizationMetadata) -> Result<(), OAuthError> {
    let AuthorizationMetadata { authorization_endpoint, token_endpoint, registration_endpoint, .. } =
        metadata;
    let endpoints = [Some(authorization_endpoint), Some(token_endpoint), registration_endpoint.as_ref()];
    for endpoint in endpoints.into_iter().flatten() {
        let Ok(url) = Url::parse(endpoint) else {
            let problem = "an endpoint in the metadata of its authorization server is not a URL";
            return Err(account.error(OAuthFault::Metadata { problem }));
        };
        account.check_url(&url).map_err(|forbidden| account.error(forbidden.fault(origin(&url))))?;
    }
    Ok(())
}

/// Returns the fault of an error of rmcp. The last request says more than the text of an error.
pub(super) fn fault_of(error: &AuthError, client: &OutboundClient) -> OAuthFault {
    let last = client.last_fault().map(OAuthFault::from);
    let problem = match error {
        AuthError::PkceUnsupported => "its authorization server does not support PKCE with S256",
        AuthError::InvalidScope(_) => "its authorization server does not support authorization codes",
        AuthError::AuthorizationServerMissingIssuer { .. } => {
            "the metadata of its authorization server names no issuer"
        }
        AuthError::AuthorizationServerMismatch { .. } => {
            "the metadata of its authorization server names another issuer"
        }
        AuthError::ProtectedResourceMetadataInvalid { .. } => {
            "its resource metadata is not valid for its URL"
        }
        AuthError::AuthorizationServersUnavailable { .. } => match last {
            // Metadata is searched at several places, so a place without it is no fault.
            Some(OAuthFault::Malformed { .. } | OAuthFault::Refused { .. }) | None => {
                "its authorization server has no metadata"
            }
            Some(last) => return last,
        },
        AuthError::DiscoveryRequestFailed { .. } => match last {
            Some(last) => return last,
            None => "its metadata is redirected to another server",
        },
        AuthError::TokenExchangeFailed(_)
        | AuthError::TokenRefreshFailed(_)
        | AuthError::TokenRefreshRejected(_) => match last {
            Some(last) => return last,
            None => "the token response of its authorization server is not valid",
        },
        AuthError::RegistrationFailed(_) => match last {
            Some(last) => return last,
            None => "the registration response of its authorization server is not valid",
        },
        _ => "its authorization server is not usable",
    };
    OAuthFault::Metadata { problem }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn the_challenge_with_the_metadata_counts() {
        let base: Url = "https://a.example/mcp".parse().unwrap();
        let metadata = "https://a.example/.well-known/oauth-protected-resource/mcp";
        let with_metadata = format!("Bearer realm=\"x\", resource_metadata=\"{metadata}\"");
        for (headers, header, url) in [
            (vec![], None, None),
            (vec!["Basic realm=\"x\""], None, None),
            (vec!["Bearer scope=\"a b\""], Some("Bearer scope=\"a b\""), None),
            (vec!["Bearer scope=\"a\"", &with_metadata], Some(with_metadata.as_str()), Some(metadata)),
            (vec!["Bearer resource_metadata=\"http://10.0.0.1/x\""], None, None),
        ] {
            let values =
                headers.iter().map(|value| (WWW_AUTHENTICATE, HeaderValue::from_str(value).unwrap()));
            let challenge = Challenge::read(&values.collect(), &base);
            assert!(challenge.is_unauthorized);
            assert_eq!(challenge.header.as_deref(), header, "{headers:?}");
            assert_eq!(challenge.resource_metadata.as_ref().map(Url::as_str), url, "{headers:?}");
        }
    }

    #[test]
    fn endpoints_are_https_or_of_this_machine() {
        let account = |url: &str| Account::new("wiki".parse().unwrap(), url.parse().unwrap(), None).unwrap();
        let check = |server: &str, authorization: &str, token: &str| {
            let metadata = json!({"authorization_endpoint": authorization, "token_endpoint": token});
            let metadata = serde_json::from_value(metadata).unwrap();
            check_endpoints(&account(server), &metadata).map_err(|error| error.fault)
        };
        let (remote, local) = ("https://a.example/mcp", "http://127.0.0.1:1/mcp");
        assert_eq!(check(remote, "https://l.example/a", "https://l.example/t"), Ok(()));
        assert_eq!(check(local, "http://127.0.0.1:2/a", "http://localhost:2/t"), Ok(()));
        for (server, authorization, token) in [
            (remote, "javascript:alert(1)", "https://l.example/t"),
            (remote, "file:///etc/passwd", "https://l.example/t"),
            (remote, "https://l.example/a", "http://127.0.0.1/t"),
            (local, "https://l.example/a", "http://l.example/t"),
        ] {
            let fault = check(server, authorization, token).unwrap_err();
            assert!(matches!(fault, OAuthFault::Insecure { .. }), "{fault:?}");
        }
        let internal = check(remote, "https://l.example/a", "https://10.0.0.1/t").unwrap_err();
        assert!(matches!(internal, OAuthFault::Internal { .. }), "{internal:?}");
        assert!(matches!(check(remote, "/a", "https://l.example/t"), Err(OAuthFault::Metadata { .. })));
    }
}
