//! The context of one call, which is passed to every read of a source.

use std::sync::Arc;

use secrecy::SecretString;

use super::{AuthenticatedCaller, Caller, GrantId};

/// The context of one call: the caller, if callers are authenticated. Created once for each request; clones are cheap.
///
/// Work that belongs to no call, such as reading schemas in the background, has the default context.
#[derive(Debug, Clone, Default)]
pub struct CallContext {
    caller: Option<Arc<AuthenticatedCaller>>,
    hops: u32,
}

/// Name of the member of `_meta` of a tool call with the number of servers of this kind that it has passed.
pub const HOPS: &str = "fetchwell/hops";

/// Name of the header with the same number.
pub const HOPS_HEADER: &str = "fetchwell-hops";

/// Maximum number of servers of this kind that a call passes. A call of more goes around in a circle.
pub const MAX_HOPS: u32 = 4;

impl CallContext {
    /// Creates the context of a call by a caller.
    #[must_use]
    pub fn new(caller: AuthenticatedCaller) -> Self {
        Self { caller: Some(Arc::new(caller)), hops: 0 }
    }

    /// Sets the number of servers of this kind that the call has passed, as its request says.
    #[must_use]
    pub fn after_hops(self, hops: u32) -> Self {
        Self { hops, ..self }
    }

    /// Returns the number of servers of this kind that the call has passed before this one.
    #[must_use]
    pub fn hops(&self) -> u32 {
        self.hops
    }

    /// Returns the token that the call came with, for record servers that are read with the token of the caller.
    #[must_use]
    pub fn token(&self) -> Option<&SecretString> {
        self.caller.as_ref().map(|caller| &caller.token)
    }

    /// Returns the id of the caller's grant, if callers are authenticated.
    #[must_use]
    pub fn grant_id(&self) -> Option<GrantId> {
        self.caller.as_ref().map(|caller| caller.caller.grant_id())
    }

    /// Returns the name of the caller's token, or the hash of its grant, if callers are authenticated.
    #[must_use]
    pub fn caller_name(&self) -> Option<String> {
        let caller = self.caller.as_ref()?;
        Some(match &caller.caller {
            Caller::Token { name } => name.clone(),
            Caller::Subject(_) => caller.caller.grant_id().to_string(),
        })
    }

    /// Returns true if the caller may clear caches and read the history of searches. Without authentication no caller may.
    #[must_use]
    pub fn is_admin(&self) -> bool {
        self.caller.as_ref().is_some_and(|caller| caller.is_admin)
    }
}
