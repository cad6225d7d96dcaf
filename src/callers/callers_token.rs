//! The token that a caller showed to get in, for a record server that is asked with it.
//!
//! A call is made with the very token that it came with. What goes on beside calls, as looking up which source has what, is
//! done with the latest token of the grant.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use jiff::Timestamp;
use secrecy::{ExposeSecret, SecretString};

tokio::task_local! {
    /// The token of the call that this task is about.
    static SHOWN: SecretString;
}

/// Does something for whoever showed `token`: record servers that are asked meanwhile, by this task, are asked with it.
pub async fn asking_with<Answer>(token: SecretString, call: impl Future<Output = Answer>) -> Answer {
    SHOWN.scope(token, call).await
}

/// The latest token of one grant; none where there is no caller. Clones hold the same.
#[derive(Debug, Clone, Default)]
pub struct CallersToken(Arc<ArcSwapOption<Latest>>);

#[derive(Debug)]
struct Latest {
    token: SecretString,
    expires_at: Option<Timestamp>,
}

impl CallersToken {
    /// Begins with this token, which is good until then as far as it says.
    #[must_use]
    pub fn new(token: SecretString, expires_at: Option<Timestamp>) -> Self {
        Self(Arc::new(ArcSwapOption::from_pointee(Latest { token, expires_at })))
    }

    /// The grant has this token, too. One that ends before the latest does not replace it.
    pub fn replace(&self, token: SecretString, expires_at: Option<Timestamp>) {
        let ends_before =
            |latest: &Latest| latest.expires_at.zip(expires_at).is_some_and(|(known, new)| new < known);
        if !self.0.load().as_deref().is_some_and(ends_before) {
            self.0.store(Some(Arc::new(Latest { token, expires_at })));
        }
    }

    /// The latest.
    #[must_use]
    pub fn latest(&self) -> Option<SecretString> {
        self.0.load().as_ref().map(|latest| latest.token.clone())
    }

    /// This token is not good any more, whenever it would have ended.
    pub fn forget(&self, token: &SecretString) {
        let latest = self.0.load();
        let is_it = |latest: &Arc<Latest>| latest.token.expose_secret() == token.expose_secret();
        if latest.as_ref().is_some_and(is_it) {
            // Unless another one has come meanwhile.
            self.0.compare_and_swap(&*latest, None);
        }
    }

    /// What a record server is asked with now.
    pub(crate) fn now(&self) -> Option<SecretString> {
        SHOWN.try_with(SecretString::clone).ok().or_else(|| self.latest())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Option<Timestamp> {
        Some(Timestamp::from_second(second).unwrap())
    }

    #[tokio::test]
    async fn a_call_is_made_with_the_token_it_came_with() {
        let cell = CallersToken::new("old".into(), at(10));
        let now = || cell.now().unwrap().expose_secret().to_owned();
        assert_eq!(now(), "old");
        cell.replace("new".into(), at(20));
        cell.replace("older".into(), at(5));
        assert_eq!(now(), "new");
        assert_eq!(asking_with("shown".into(), async { now() }).await, "shown");
        assert_eq!(now(), "new");
        assert!(CallersToken::default().now().is_none());
    }

    #[test]
    fn a_token_that_was_taken_back_makes_room_for_one_that_ends_sooner() {
        let cell = CallersToken::new("long".into(), at(20));
        let latest = || cell.latest().map(|token| token.expose_secret().to_owned());
        cell.forget(&"another".into());
        assert_eq!(latest().unwrap(), "long");
        cell.forget(&"long".into());
        assert_eq!(latest(), None);
        cell.replace("short".into(), at(10));
        assert_eq!(latest().unwrap(), "short");
    }
}
