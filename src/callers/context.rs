//! The context of one call, which is passed to every read of a source.

use std::sync::Arc;

use secrecy::SecretString;

use super::AuthenticatedCaller;

/// The context of one call: the caller, if callers are authenticated. Created once for each request; clones are cheap.
///
/// Work that belongs to no call, such as reading schemas in the background, has the default context.
#[derive(Debug, Clone, Default)]
pub struct CallContext {
    caller: Option<Arc<AuthenticatedCaller>>,
}

impl CallContext {
    /// Creates the context of a call by a caller.
    #[must_use]
    pub fn new(caller: AuthenticatedCaller) -> Self {
        Self { caller: Some(Arc::new(caller)) }
    }

    /// Returns the token that the call came with, for record servers that are read with the token of the caller.
    #[must_use]
    pub fn token(&self) -> Option<&SecretString> {
        self.caller.as_ref().map(|caller| &caller.token)
    }
}
