//! The client of a sign-in: the configured one, or described by a metadata document, or registered (RFC 7591), in this order.
//! One that was registered is used again.

use rmcp::transport::auth::{AuthorizationManager, AuthorizationMetadata, OAuthClientConfig};
use secrecy::SecretString;
use url::Url;

use super::account::Account;
use super::client::OutboundClient;
use super::discovery::fault_of;
use super::fault::{OAuthError, OAuthFault};
use super::storage::{ClientKey, Registrations};
use super::stored_login::RegisteredClient;

/// Name with which this program registers.
const CLIENT_NAME: &str = "fetchwell";

/// Type of a client that is a server.
const WEB: &str = "web";

/// Settings of a sign-in.
#[derive(Debug, Clone, Default)]
pub struct LoginSettings {
    /// Client id of a client that the operator has registered.
    pub client_id: Option<String>,
    /// Secret of that client, if it is confidential.
    pub client_secret: Option<SecretString>,
    /// URL of a client id metadata document, for servers that accept one.
    pub client_metadata_url: Option<Url>,
    /// Scopes to request; empty for those that the server asks for.
    pub scopes: Vec<String>,
    /// Port of the redirect URI, for a client that is registered with one; any free port otherwise.
    pub redirect_port: Option<u16>,
}

/// The client of a sign-in, by what the authorization server knows it from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClientKind {
    /// The operator has registered it.
    Configured {
        /// Id of the client.
        client_id: String,
    },
    /// A metadata document describes it.
    Described {
        /// URL of the document.
        url: Url,
    },
    /// This program registers it.
    Registered,
}

impl ClientKind {
    /// Chooses the client for an authorization server with this metadata.
    pub(super) fn new(
        settings: &LoginSettings,
        metadata: &AuthorizationMetadata,
    ) -> Result<Self, OAuthFault> {
        if let Some(client_id) = settings.client_id.clone() {
            return Ok(Self::Configured { client_id });
        }
        let accepts_documents = metadata.additional_fields.get("client_id_metadata_document_supported");
        let accepts_documents = accepts_documents.and_then(serde_json::Value::as_bool).unwrap_or_default();
        if let Some(url) = settings.client_metadata_url.clone().filter(|_| accepts_documents) {
            return Ok(Self::Described { url });
        }
        if metadata.registration_endpoint.is_none() {
            let problem = "it has no registration endpoint".to_owned();
            return Err(OAuthFault::NoRegistration { problem });
        }
        Ok(Self::Registered)
    }
}

/// Parts of the registration of a client.
pub(super) struct Registration<'a> {
    /// Settings of the sign-in.
    pub(super) settings: &'a LoginSettings,
    /// Redirect URI of the sign-in.
    pub(super) redirect_uri: String,
    /// Scopes that are requested.
    pub(super) scopes: &'a [String],
    /// Clients that were registered before, if they are kept.
    pub(super) registrations: Option<&'a Registrations>,
}

/// Returns the client of a sign-in. Registers one if none is configured or kept and the server accepts no metadata document.
pub(super) async fn register(
    account: &Account,
    client: &OutboundClient,
    manager: &mut AuthorizationManager,
    metadata: &AuthorizationMetadata,
    registration: Registration<'_>,
) -> Result<RegisteredClient, OAuthError> {
    let Registration { settings, redirect_uri, scopes, registrations } = registration;
    let issuer = metadata.issuer.clone();
    match ClientKind::new(settings, metadata).map_err(|fault| account.error(fault))? {
        ClientKind::Configured { client_id } => {
            let client_secret = settings.client_secret.clone();
            return Ok(RegisteredClient { client_id, client_secret, issuer, redirect_uri });
        }
        ClientKind::Described { url } => {
            let client_id = url.to_string();
            return Ok(RegisteredClient { client_id, client_secret: None, issuer, redirect_uri });
        }
        ClientKind::Registered => {}
    }
    let key = ClientKey { issuer: issuer.as_deref(), redirect_uri: &redirect_uri, scopes };
    let new = Box::pin(register_new(account, client, manager, key));
    match registrations {
        Some(registrations) => registrations.get_or_register(key, new).await,
        None => new.await,
    }
}

async fn register_new(
    account: &Account,
    client: &OutboundClient,
    manager: &mut AuthorizationManager,
    ClientKey { issuer, redirect_uri, scopes }: ClientKey<'_>,
) -> Result<RegisteredClient, OAuthError> {
    // rmcp registers a native application, and a redirect URI with https is that of a web application (OpenID Connect
    // Dynamic Client Registration 1.0, 2).
    if redirect_uri.starts_with("https:") {
        let web = OAuthClientConfig::new(CLIENT_NAME, redirect_uri).with_application_type(WEB);
        manager.configure_client(web).map_err(|error| account.error(fault_of(&error, client)))?;
    }
    let scopes: Vec<&str> = scopes.iter().map(String::as_str).collect();
    let config = manager.register_client(CLIENT_NAME, redirect_uri, &scopes).await.map_err(|error| {
        account.error(match fault_of(&error, client) {
            OAuthFault::Malformed { problem, .. } => OAuthFault::NoRegistration { problem },
            OAuthFault::Refused { code } => OAuthFault::NoRegistration { problem: code },
            fault => fault,
        })
    })?;
    Ok(RegisteredClient {
        client_id: config.client_id,
        client_secret: config.client_secret.map(SecretString::from),
        issuer: issuer.map(str::to_owned),
        redirect_uri: redirect_uri.to_owned(),
    })
}
