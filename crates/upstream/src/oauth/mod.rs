//! Sign-in at the authorization server of an MCP server, and the tokens that are kept.
//!
//! rmcp's state machine discovers, registers, signs in and refreshes; this module gives it our HTTP client and our storage,
//! and decides when a refresh is needed. `Login` signs a person in, `Bearer` has the access token of calls, and `Tokens` is
//! the storage of one account.
//!
//! **Invariants:** tokens are sent only to the server and the issuer that they are for; a refresh token is used by one
//! refresh at a time; no token, code or secret is in an error, in `Debug` output or in a log.
//!
//! * `account`: the account that tokens are kept for
//! * `fault`: errors with their remedies
//! * `stored_login`: a sign-in as a text; `storage`: of sign-ins and registered clients
//! * `client`: the HTTP client of rmcp's state machine
//! * `discovery`: metadata of the authorization server
//! * `pending_login`, `registration`: sign-in that waits for its browser, and the client of a sign-in
//! * `sign_in_server`: what is known of the authorization server without a sign-in
//! * `login`, `redirect`: sign-in of the person at this machine, and the port that the browser returns to
//! * `bearer`, `refresh_store`: refreshes, and rmcp's view of the storage
//! * `token_response`: token responses as sign-ins

mod account;
mod bearer;
mod client;
mod discovery;
mod fault;
mod login;
mod pending_login;
mod redirect;
mod refresh_store;
mod registration;
mod sign_in_server;
mod storage;
mod stored_login;
#[cfg(test)]
mod tests;
mod token_response;

pub use self::account::{Account, CallerAccount};
pub use self::bearer::Bearer;
pub use self::fault::{OAuthError, OAuthFault};
pub use self::login::Login;
pub use self::pending_login::{CodeExchange, PendingLogin};
pub use self::registration::{ClientKind, LoginSettings};
pub use self::sign_in_server::SignInServer;
pub use self::storage::{LockGuard, Registrations, SharedTokens, TokenLock, TokenStore, Tokens};
pub use self::stored_login::{LoginTextFault, RegisteredClient, StoredLogin};
