//! The token that a caller showed to get in, for a record server that is asked with it.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use secrecy::SecretString;

/// The latest token of one grant; none where there is no caller. Clones hold the same.
#[derive(Debug, Clone, Default)]
pub struct CallersToken(Arc<ArcSwapOption<SecretString>>);

impl CallersToken {
    /// Begins with this token.
    #[must_use]
    pub fn new(token: SecretString) -> Self {
        Self(Arc::new(ArcSwapOption::from_pointee(token)))
    }

    /// Whether both are of one grant: whatever replaces one replaces the other.
    #[must_use]
    pub fn is_of(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// The grant has another token now.
    pub fn replace(&self, token: SecretString) {
        self.0.store(Some(Arc::new(token)));
    }

    /// The latest.
    #[must_use]
    pub fn now(&self) -> Option<SecretString> {
        self.0.load().as_deref().cloned()
    }
}
