//! The authorization server of an MCP server, as far as it is known before any person signs in.

use std::sync::Arc;

use super::account::Account;
use super::client::{OutboundClient, REQUEST_WITHIN};
use super::discovery::discover_sign_in;
use super::fault::OAuthError;
use super::registration::{ClientKind, LoginSettings};

/// Authorization server at which people sign in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignInServer {
    /// Issuer in its metadata, or the origin of its authorization endpoint.
    pub name: String,
    /// Client of the sign-ins.
    pub client: ClientKind,
}

impl SignInServer {
    /// Discovers the authorization server of an MCP server. Registers nothing.
    ///
    /// # Errors
    ///
    /// The server offers no sign-in that can be used, or a request failed.
    pub async fn discover(account: &Account, settings: &LoginSettings) -> Result<Self, OAuthError> {
        let client = Arc::new(OutboundClient::new(account.clone(), REQUEST_WITHIN));
        let (_challenge, found) = discover_sign_in(account, &client).await?;
        let chosen = ClientKind::new(settings, &found.metadata).map_err(|fault| account.error(fault))?;
        let name = found.metadata.issuer.unwrap_or(found.metadata.authorization_endpoint);
        Ok(Self { name, client: chosen })
    }
}
