//! Token responses of authorization servers as sign-ins.

use jiff::Timestamp;
use oauth2::TokenResponse;
use oauth2::basic::BasicTokenType;
use rmcp::transport::auth::OAuthTokenResponse;
use secrecy::SecretString;

use super::fault::OAuthFault;
use super::stored_login::{RegisteredClient, StoredLogin, expiry, is_token};

/// Returns the sign-in of a token response, without its id and scopes.
///
/// # Errors
///
/// `Metadata`, if it is not a bearer token or cannot be sent as one.
pub(super) fn login_of_response(
    response: &OAuthTokenResponse,
    client: RegisteredClient,
    received_at: Timestamp,
) -> Result<StoredLogin, OAuthFault> {
    let access = response.access_token().secret().as_str();
    let refresh = response.refresh_token().map(|token| token.secret().as_str());
    let is_bearer = matches!(response.token_type(), BasicTokenType::Bearer);
    if !is_bearer || !is_token(access) || !refresh.is_none_or(is_token) {
        let problem = "the token of its authorization server is not a bearer token";
        return Err(OAuthFault::Metadata { problem });
    }
    Ok(StoredLogin {
        id: String::new(),
        client,
        resource_metadata: None,
        scopes: Vec::new(),
        access_token: SecretString::from(access),
        refresh_token: refresh.map(SecretString::from),
        received_at,
        expires_at: expiry(received_at, response.expires_in().map(|lifetime| lifetime.as_secs())),
    })
}
