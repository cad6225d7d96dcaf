//! What whoever shows a random text gets, and nobody else.
//!
//! Of the text its hash is kept: whoever sees this memory can show none of them. Each person has a share of it; beyond that
//! their own oldest ends, and not that of another.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use moka::policy::EvictionPolicy;
use moka::sync::Cache;
use sha2::{Digest, Sha256};

use crate::callers::GrantId;

/// Bytes of a text, before they are base64: nobody guesses one.
const KEY_BYTES: usize = 16;

/// People whose shares are known.
const MAX_PEOPLE: u64 = 10_000;

/// How much is kept, and for how long.
#[derive(Debug, Clone, Copy)]
pub struct TicketLimits {
    /// Of all people.
    pub most: u64,
    /// Of one.
    pub of_one_most: usize,
    /// Each.
    pub life: Duration,
}

/// What is given for texts. Clones are the same memory.
#[derive(Debug, Clone)]
pub struct Tickets<What: Clone + Send + Sync + 'static> {
    /// Whose each is, and what.
    given: Cache<KeyDigest, (GrantId, What)>,
    shares: Cache<GrantId, Share>,
    of_one_most: usize,
}

type KeyDigest = [u8; 32];

/// What one has, the oldest first.
type Share = Arc<Mutex<VecDeque<KeyDigest>>>;

impl<What: Clone + Send + Sync + 'static> Tickets<What> {
    /// Within these limits.
    #[must_use]
    pub fn new(limits: TicketLimits) -> Self {
        let TicketLimits { most, of_one_most, life } = limits;
        let given = Cache::builder().max_capacity(most).time_to_live(life);
        let shares = Cache::builder().max_capacity(MAX_PEOPLE).time_to_idle(life);
        Self {
            given: given.eviction_policy(EvictionPolicy::lru()).build(),
            shares: shares.eviction_policy(EvictionPolicy::lru()).build(),
            of_one_most,
        }
    }

    /// A text for something that a person may have. `None` when the system gives no random bytes.
    #[must_use]
    pub fn issue(&self, person: GrantId, what: What) -> Option<String> {
        let mut key = [0; KEY_BYTES];
        getrandom::fill(&mut key).ok()?;
        let key = URL_SAFE_NO_PAD.encode(key);
        let digest = digest(&key);
        self.given.insert(digest, (person, what));
        let share = self.shares.get_with(person, Arc::default);
        let mut share = share.lock().unwrap_or_else(PoisonError::into_inner);
        share.push_back(digest);
        if share.len() > self.of_one_most
            && let Some(oldest) = share.pop_front()
        {
            self.given.invalidate(&oldest);
        }
        Some(key)
    }

    /// What a text is good for, which it goes on to be.
    #[must_use]
    pub fn look(&self, key: &str) -> Option<What> {
        self.given.get(&digest(key)).map(|(_, what)| what)
    }

    /// What a text was good for until now.
    pub fn redeem(&self, key: &str) -> Option<What> {
        let digest = digest(key);
        let (person, what) = self.given.remove(&digest)?;
        if let Some(share) = self.shares.get(&person) {
            share.lock().unwrap_or_else(PoisonError::into_inner).retain(|held| *held != digest);
        }
        Some(what)
    }
}

fn digest(key: &str) -> KeyDigest {
    Sha256::digest(key).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::callers::Caller;

    fn tickets() -> Tickets<u8> {
        Tickets::new(TicketLimits { most: 100, of_one_most: 2, life: Duration::from_secs(60) })
    }

    fn person(name: &str) -> GrantId {
        Caller::Token { name: name.to_owned() }.person_id()
    }

    #[test]
    fn a_text_is_good_until_it_is_redeemed() {
        let tickets = tickets();
        let [one, other] = [1, 2].map(|what| tickets.issue(person("ann"), what).unwrap());
        assert!(one != other && one.len() == 22);
        assert_eq!((tickets.look(&one), tickets.look(&one)), (Some(1), Some(1)));
        assert_eq!((tickets.redeem(&one), tickets.redeem(&one), tickets.look(&one)), (Some(1), None, None));
        assert_eq!((tickets.look(&other), tickets.look("")), (Some(2), None));
    }

    #[test]
    fn what_is_too_much_ends_the_oldest_of_whoever_has_it() {
        let tickets = tickets();
        let of_bob = tickets.issue(person("bob"), 0).unwrap();
        let of_ann: Vec<String> = (1..6).map(|what| tickets.issue(person("ann"), what).unwrap()).collect();
        let kept: Vec<Option<u8>> = of_ann.iter().map(|key| tickets.look(key)).collect();
        assert_eq!(kept, [None, None, None, Some(4), Some(5)]);
        assert_eq!(tickets.look(&of_bob), Some(0));
    }

    #[test]
    fn what_is_redeemed_takes_nobodys_place() {
        let tickets = tickets();
        let kept = tickets.issue(person("ann"), 0).unwrap();
        for what in 1..6 {
            let key = tickets.issue(person("ann"), what).unwrap();
            assert_eq!(tickets.redeem(&key), Some(what));
        }
        assert_eq!(tickets.look(&kept), Some(0));
    }
}
