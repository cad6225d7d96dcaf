//! An in-memory store of single-use and session tokens.
//!
//! Only the SHA-256 of a token is stored. Each person has a quota, and a token beyond it evicts that person's oldest one,
//! never that of another person.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use fetchwell_core::lru::{LruCache, LruLimits};
use parking_lot::Mutex;
use sha2::{Digest, Sha256};

use crate::GrantId;

/// Random bytes of a token: 128 bits cannot be guessed.
const TOKEN_BYTES: usize = 16;

/// Maximum number of people with a quota.
const MAX_PEOPLE: u64 = 10_000;

/// The limits of a store.
#[derive(Debug, Clone, Copy)]
pub struct TokenLimits {
    /// Maximum number of tokens of all people.
    pub max_tokens: u64,
    /// Maximum number of tokens of one person.
    pub max_per_person: usize,
    /// Lifetime of a token.
    pub lifetime: Duration,
}

/// A store of tokens, each with a value. Clones share the tokens.
#[derive(Debug, Clone)]
pub struct TokenStore<Value: Clone + Send + Sync + 'static> {
    /// Person and value of each token.
    values: LruCache<TokenDigest, (GrantId, Value)>,
    issued: LruCache<GrantId, IssuedTokens>,
    max_per_person: usize,
}

type TokenDigest = [u8; 32];

/// Tokens of one person, the oldest first.
type IssuedTokens = Arc<Mutex<VecDeque<TokenDigest>>>;

impl<Value: Clone + Send + Sync + 'static> TokenStore<Value> {
    /// Creates an empty store.
    #[must_use]
    pub fn new(limits: TokenLimits) -> Self {
        let TokenLimits { max_tokens, max_per_person, lifetime } = limits;
        Self {
            values: LruCache::new(LruLimits::new(max_tokens).with_lifetime(lifetime)),
            issued: LruCache::new(LruLimits::new(MAX_PEOPLE).with_max_idle(lifetime)),
            max_per_person,
        }
    }

    /// Issues a token for a value of a person.
    ///
    /// # Errors
    ///
    /// The system provides no random bytes.
    pub fn issue(&self, person: GrantId, value: Value) -> Result<String, getrandom::Error> {
        let token = random_token()?;
        let digest = digest(&token);
        self.values.insert(digest, (person, value));
        let issued = self.issued.get_or_insert_with(person, Arc::default);
        let mut issued = issued.lock();
        issued.push_back(digest);
        if issued.len() > self.max_per_person
            && let Some(oldest) = issued.pop_front()
        {
            self.values.remove(&oldest);
        }
        Ok(token)
    }

    /// Returns the value of a token, which stays valid.
    #[must_use]
    pub fn get(&self, token: &str) -> Option<Value> {
        self.values.get(&digest(token)).map(|(_, value)| value)
    }

    /// Removes a token and returns its value.
    pub fn take(&self, token: &str) -> Option<Value> {
        let digest = digest(token);
        let (person, value) = self.values.remove(&digest)?;
        if let Some(issued) = self.issued.get(&person) {
            issued.lock().retain(|held| *held != digest);
        }
        Some(value)
    }
}

/// Returns a new token.
///
/// # Errors
///
/// The system provides no random bytes.
pub fn random_token() -> Result<String, getrandom::Error> {
    let mut token = [0; TOKEN_BYTES];
    getrandom::fill(&mut token)?;
    Ok(URL_SAFE_NO_PAD.encode(token))
}

fn digest(token: &str) -> TokenDigest {
    Sha256::digest(token).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Caller;

    fn store() -> TokenStore<u8> {
        TokenStore::new(TokenLimits { max_tokens: 100, max_per_person: 2, lifetime: Duration::from_secs(60) })
    }

    fn person(name: &str) -> GrantId {
        Caller::Token { name: name.to_owned() }.person_id()
    }

    #[test]
    fn a_token_is_valid_until_it_is_taken() {
        let store = store();
        let [one, other] = [1, 2].map(|what| store.issue(person("ann"), what).unwrap());
        assert!(one != other && one.len() == 22);
        assert_eq!((store.get(&one), store.get(&one)), (Some(1), Some(1)));
        assert_eq!((store.take(&one), store.take(&one), store.get(&one)), (Some(1), None, None));
        assert_eq!((store.get(&other), store.get("")), (Some(2), None));
    }

    #[test]
    fn the_oldest_token_of_a_person_is_evicted_beyond_the_quota() {
        let store = store();
        let of_bob = store.issue(person("bob"), 0).unwrap();
        let of_ann: Vec<String> = (1..6).map(|what| store.issue(person("ann"), what).unwrap()).collect();
        let kept: Vec<Option<u8>> = of_ann.iter().map(|key| store.get(key)).collect();
        assert_eq!(kept, [None, None, None, Some(4), Some(5)]);
        assert_eq!(store.get(&of_bob), Some(0));
    }

    #[test]
    fn a_taken_token_is_not_counted() {
        let store = store();
        let kept = store.issue(person("ann"), 0).unwrap();
        for what in 1..6 {
            let key = store.issue(person("ann"), what).unwrap();
            assert_eq!(store.take(&key), Some(what));
        }
        assert_eq!(store.get(&kept), Some(0));
    }
}
