//! Attempts to sign in at another server, from which the browser returns.
//!
//! The server keeps no state of an attempt: a cookie holds it, sealed with the keys of cursors and bound to its `state` and to
//! what else it is for. Requests therefore cannot exhaust memory, a reply is useless in another browser, several tabs can sign
//! in at a time, and each server with the same keys can finish what another one began.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::http::HeaderMap;
use axum::response::Response;
use fetchwell_core::lru::{LruCache, LruLimits};
use fetchwell_state::cursor::{Cursors, SharedValue};
use fetchwell_state::redis::{IfExists, OwnerLimits, RedisError};

use super::cookies::Cookies;
use super::responses::add_cookie;

/// Number of characters of the state in the name of its cookie.
const NAME_CHARS: usize = 8;

/// Maximum duration of an attempt.
const ATTEMPT_LIFE: Duration = Duration::from_secs(10 * 60);

/// Kind of the marks of used attempts in shared state.
const USED_ATTEMPT: &str = "sign-in";

/// Quota of these marks: more than people can sign in within the duration of an attempt.
const USED_LIMITS: OwnerLimits = OwnerLimits { max_bytes: 64 * 1024 * 1024, max_values: 100_000 };

/// Maximum number of these marks in memory, of a server that shares no state.
const MAX_USED: u64 = 100_000;

/// Prefixes of the names of the cookies of all kinds of attempts. They share one limit, because a browser sends all of them.
const PREFIXES: [&str; 2] = [PAGE_COOKIE, SOURCE_COOKIE];

/// Prefix of the cookies of attempts to sign in for a page.
pub(crate) const PAGE_COOKIE: &str = "fetchwell_sign_in_";

/// Prefix of the cookies of attempts to sign in at the server of a source.
pub(crate) const SOURCE_COOKIE: &str = "fetchwell_source_sign_in_";

/// Maximum number of concurrent attempts of one browser, of all kinds. A further attempt deletes the cookies of all others.
const MAX_ATTEMPTS: usize = 8;

/// Maximum total size of their cookies in bytes. With the cookie of one more attempt, the headers of a request stay below 8
/// KiB, the limit of many proxies.
const MAX_COOKIE_BYTES: usize = 4 * 1024;

/// Maximum size of the cookie of one attempt in bytes. Browsers keep cookies of at most 4,096 with their names.
const MAX_ATTEMPT_BYTES: usize = 3_500;

/// Attempts of one kind.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Attempts {
    /// Prefix of the names of their cookies. The first characters of the state follow.
    pub(crate) cookie: &'static str,
    /// Context that is sealed with an attempt, so that no other sealed text is accepted in its place.
    pub(crate) context: &'static str,
}

/// Cookies of a server, and the keys that seal them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AttemptKeys<'a> {
    /// Cookies of the server.
    pub(crate) cookies: Cookies,
    /// Keys of the server.
    pub(crate) cursors: &'a Cursors,
}

/// Identity of an attempt.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AttemptId<'a> {
    /// State that the browser returns with.
    pub(crate) state: &'a str,
    /// Issuer, or person, that the attempt is for.
    pub(crate) bound_to: &'a str,
}

/// Reason why an attempt cannot begin: it is too long for a cookie, or its state is not one that this server created.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AttemptError;

impl Attempts {
    /// Stores an attempt in a cookie of a response. Makes room among the other attempts of the browser.
    pub(crate) async fn keep(
        &self,
        keys: AttemptKeys<'_>,
        headers: &HeaderMap,
        response: &mut Response,
        id: AttemptId<'_>,
        text: &str,
    ) -> Result<(), AttemptError> {
        let AttemptKeys { cookies, cursors } = keys;
        let name = self.cookie_of(id.state).ok_or(AttemptError)?;
        let kept = format!("{}.{text}", cursors.now().as_secs());
        let sealed = cursors.seal_text(&[self.context, id.bound_to, id.state], &kept).await;
        if sealed.len() > MAX_ATTEMPT_BYTES {
            return Err(AttemptError);
        }
        for other in superseded(cookies, headers) {
            add_cookie(response, &cookies.set(&other, "", Duration::ZERO));
        }
        add_cookie(response, &cookies.set(&name, &sealed, ATTEMPT_LIFE));
        Ok(())
    }

    /// Returns the text of an attempt that this browser began, unless it took too long.
    pub(crate) async fn open(
        &self,
        keys: AttemptKeys<'_>,
        headers: &HeaderMap,
        id: AttemptId<'_>,
    ) -> Option<String> {
        let AttemptKeys { cookies, cursors } = keys;
        let sealed = cookies.value(headers, &self.cookie_of(id.state)?)?;
        let kept = cursors.open_text(&[self.context, id.bound_to, id.state], sealed).await.ok()?;
        let (begun_at, text) = kept.split_once('.')?;
        let begun_at = Duration::from_secs(begun_at.parse().ok()?);
        (cursors.now().saturating_sub(begun_at) < ATTEMPT_LIFE).then(|| text.to_owned())
    }

    /// Deletes the cookie of an attempt: each is used once.
    pub(crate) fn forget(&self, cookies: Cookies, response: &mut Response, state: &str) {
        if let Some(name) = self.cookie_of(state) {
            add_cookie(response, &cookies.set(&name, "", Duration::ZERO));
        }
    }

    /// Returns the name of the cookie of an attempt, or `None` if the text is not a state that this server created.
    fn cookie_of(&self, state: &str) -> Option<String> {
        let name = state.get(..NAME_CHARS).filter(|_| is_base64url(state))?;
        Some(format!("{}{name}", self.cookie))
    }
}

/// Returns the names of the cookies to delete before one more is set: none, or those of all attempts.
fn superseded(cookies: Cookies, headers: &HeaderMap) -> Vec<String> {
    let of_kind = |prefix: &'static str| {
        cookies.beginning_with(headers, prefix).map(move |(rest, sealed)| (prefix, rest, sealed))
    };
    let others: Vec<(&str, &str, &str)> = PREFIXES.into_iter().flat_map(of_kind).collect();
    let bytes: usize = others.iter().map(|(_, _, sealed)| sealed.len()).sum();
    if others.len() < MAX_ATTEMPTS && bytes <= MAX_COOKIE_BYTES {
        return Vec::new();
    }
    let named = others.into_iter().filter(|(_, rest, _)| is_base64url(rest));
    named.map(|(prefix, rest, _)| format!("{prefix}{rest}")).collect()
}

/// Marks of used attempts. Clones share them.
#[derive(Clone)]
pub(crate) struct UsedAttempts(LruCache<String, Arc<AtomicBool>>);

impl Default for UsedAttempts {
    fn default() -> Self {
        Self(LruCache::new(LruLimits::new(MAX_USED).with_lifetime(ATTEMPT_LIFE)))
    }
}

impl fmt::Debug for UsedAttempts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("UsedAttempts")
    }
}

impl UsedAttempts {
    /// Marks an attempt as used, in the state that servers share if there is one. Returns true the first time.
    ///
    /// # Errors
    ///
    /// The shared state cannot be used.
    pub(crate) async fn is_first_use(&self, cursors: &Cursors, state: &str) -> Result<bool, RedisError> {
        let Some(shared) = cursors.shared_values() else {
            return Ok(!self
                .0
                .get_or_insert_with(state.to_owned(), Arc::default)
                .swap(true, Ordering::AcqRel));
        };
        let used = SharedValue {
            kind: USED_ATTEMPT,
            name: state,
            owner: "",
            text: "used",
            lifetime: ATTEMPT_LIFE,
            limits: USED_LIMITS,
            if_exists: IfExists::Keep,
        };
        shared.put(used).await
    }
}

fn is_base64url(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}

#[cfg(test)]
mod tests {
    use axum::http::header;

    use super::*;

    #[test]
    fn attempts_of_all_kinds_share_one_limit() {
        let check = |pages: usize, sources: usize, bytes: usize, is_full: bool| {
            let of_kind = |prefix: &str, count: usize| {
                (0..count)
                    .map(|number| format!("{prefix}{number}={}; ", "x".repeat(bytes)))
                    .collect::<String>()
            };
            let text = format!("a=b; {}{}", of_kind(PAGE_COOKIE, pages), of_kind(SOURCE_COOKIE, sources));
            let headers = HeaderMap::from_iter([(header::COOKIE, text.parse().unwrap())]);
            let deleted = superseded(Cookies { is_secure: false }, &headers);
            assert_eq!(deleted.len(), if is_full { pages + sources } else { 0 }, "{deleted:?}");
        };
        check(0, 0, 10, false);
        check(4, 3, 10, false);
        check(4, 4, 10, true);
        check(0, MAX_ATTEMPTS, 10, true);
        check(1, 1, MAX_COOKIE_BYTES / 2, false);
        check(1, 1, MAX_COOKIE_BYTES / 2 + 1, true);
    }
}
