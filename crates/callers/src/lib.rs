//! Callers: who sends a request, and what belongs to one caller.
//!
//! A caller is authenticated by the bearer token of its request. A `Caller` has a grant, which is the unit of isolation:
//! caches, cursors and links are kept for each grant. Limits count for each person, who can have several grants.
//!
//! * `authenticate/`: authentication of bearer tokens
//! * `authorize`: the sources that each caller may read
//! * `context`: the context of one call
//! * `limits`: the limit of concurrent calls of each person, which `toolboxes` of the crate `tools` applies
//! * `grant_token`: the latest token of a grant, for record servers that are read with it
//! * `tokens/`: session tokens and links to record pages
//!
//!
//! Uses `core` and `outbound`.
//!
//! **Invariant:** no tool, no source and no HTTP server is known here.

mod authenticate;
mod authorize;
mod context;
mod grant_token;
mod limits;
mod tokens;

pub use self::authenticate::{
    Algorithm, Attempt, AuthenticatedCaller, Authenticator, AuthenticatorSettings, AuthorityUrl,
    AuthorizationReply, Caller, Capabilities, Denial, GrantId, HeaderFault, IntrospectionSettings,
    InvalidAuthorityUrl, IssuerSettings, NewToken, ResourceMetadata, Retrieval, SignIn, SignInFault,
    SignInSettings, StaticToken, Subject, TokenFault, UnknownAlgorithm, authorization,
};
pub use self::authorize::{AuthorizationPolicy, SourceCredential, SourceGrant};
pub use self::context::{CallContext, HOPS, HOPS_HEADER, MAX_HOPS};
pub use self::grant_token::{GrantToken, GrantTokens};
pub use self::limits::{AdmissionError, CallLimiter};
pub use self::tokens::{
    LINK, MAX_LINK_LIFE, Reader, RecordPages, Session, TokenLimits, TokenStore, random_token,
};
