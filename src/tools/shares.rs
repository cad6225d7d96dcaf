//! What one grant may have of a memory that all share: beyond it, its own oldest ends and not that of another.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use moka::policy::EvictionPolicy;
use moka::sync::Cache;

use crate::access::GrantId;

/// Grants whose shares are known.
const GRANTS_MOST: u64 = 10_000;

/// The hash of something that is kept.
pub type KeyDigest = [u8; 32];

/// Who has what, by the hashes of it.
#[derive(Debug, Clone)]
pub struct Shares {
    most: usize,
    held: Cache<GrantId, Arc<Mutex<VecDeque<KeyDigest>>>>,
}

impl Shares {
    /// Of each grant, so many.
    #[must_use]
    pub fn of(most: usize) -> Self {
        let held = Cache::builder().max_capacity(GRANTS_MOST).eviction_policy(EvictionPolicy::lru()).build();
        Self { most, held }
    }

    /// Another one of a grant. Gives the one that has to go for it, if one has to.
    #[must_use]
    pub fn add(&self, grant: GrantId, key: KeyDigest) -> Option<KeyDigest> {
        let held = self.held.get_with(grant, Arc::default);
        let mut held = held.lock().unwrap_or_else(PoisonError::into_inner);
        held.push_back(key);
        if held.len() > self.most { held.pop_front() } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::Caller;

    #[test]
    fn what_is_too_much_ends_the_oldest_of_whoever_has_it() {
        let grant = |name: &str| Caller::Token { name: name.to_owned() }.grant_id();
        let shares = Shares::of(2);
        assert_eq!(shares.add(grant("bob"), [0; 32]), None);
        let ended: Vec<_> = (1..6).filter_map(|key| shares.add(grant("ann"), [key; 32])).collect();
        assert_eq!(ended, [[1; 32], [2; 32], [3; 32]]);
        assert_eq!(shares.add(grant("bob"), [6; 32]), None);
    }
}
