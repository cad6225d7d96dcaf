//! State store of the rate limiter (governor does the arithmetic), in bounded memory.
//!
//! A full bucket equals a missing one, so only full buckets are evicted. While none of the stored buckets is full,
//! additional clients share buckets by their larger networks. A client that changes its address can therefore reset
//! neither its own bucket nor that of another client.

use std::collections::{BTreeSet, HashMap};
use std::hash::{BuildHasher, RandomState};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use fetchwell_core::saturate::saturated;
use governor::clock::Clock;
use governor::nanos::Nanos;
use governor::state::StateStore;
use parking_lot::Mutex;

/// Maximum number of clients with a bucket of their own: about 1 MB.
const MAX_CLIENTS: usize = 10_000;

/// Number of buckets shared by the networks of additional clients.
const SHARED_BUCKETS: usize = 1_024;

/// Full buckets evicted per new client, so that memory shrinks again after many clients.
const EVICTIONS_PER_CLIENT: usize = 2;

/// Buckets by client.
#[derive(Debug)]
pub(super) struct Buckets<C> {
    clock: C,
    max_clients: usize,
    /// Random hash keys, so that clients cannot choose their shared bucket.
    hashes: RandomState,
    table: Mutex<Table>,
}

/// Table of buckets. A bucket is the time at which it is full again, in nanoseconds (the theoretical arrival time of
/// GCRA).
#[derive(Debug, Default)]
struct Table {
    full_at: HashMap<IpAddr, u64>,
    /// Buckets in the order in which they become full.
    order: BTreeSet<(u64, IpAddr)>,
    /// Shared buckets; allocated on first use.
    shared: Vec<u64>,
}

impl<C: Clock<Instant = Duration>> Buckets<C> {
    pub(super) fn new(clock: C) -> Self {
        Self { clock, max_clients: MAX_CLIENTS, hashes: RandomState::new(), table: Mutex::default() }
    }

    /// Returns the index of the shared bucket of a client's larger network: the /24 of IPv4, the /48 of IPv6.
    fn shared_bucket(&self, client: IpAddr) -> usize {
        let network: IpAddr = match client {
            IpAddr::V4(address) => Ipv4Addr::from_bits(address.to_bits() & !0xff).into(),
            IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 80 << 80).into(),
        };
        let buckets = u64::try_from(SHARED_BUCKETS).unwrap_or(1);
        usize::try_from(self.hashes.hash_one(network) % buckets).unwrap_or_default()
    }
}

impl Table {
    /// Evicts buckets that are full at `now`. Returns true if there is room for another one.
    fn has_room(&mut self, now: u64, max_clients: usize) -> bool {
        for _ in 0..EVICTIONS_PER_CLIENT {
            match self.order.first() {
                Some(&(full_at, client)) if full_at <= now => {
                    self.order.pop_first();
                    self.full_at.remove(&client);
                }
                _ => break,
            }
        }
        self.full_at.len() < max_clients
    }

    fn put(&mut self, client: IpAddr, full_at: u64) {
        if let Some(before) = self.full_at.insert(client, full_at) {
            self.order.remove(&(before, client));
        }
        self.order.insert((full_at, client));
    }
}

impl<C: Clock<Instant = Duration>> StateStore for Buckets<C> {
    type Key = IpAddr;

    fn measure_and_replace<T, F, E>(&self, client: &IpAddr, decide: F) -> Result<T, E>
    where
        F: Fn(Option<Nanos>) -> Result<(T, Nanos), E>,
    {
        let now = saturated::<u64>(self.clock.now().as_nanos());
        let mut table = self.table.lock();
        let known = table.full_at.get(client).copied();
        if known.is_some() || table.has_room(now, self.max_clients) {
            let (decision, full_at) = decide(known.map(Nanos::from))?;
            table.put(*client, full_at.into());
            return Ok(decision);
        }
        table.shared.resize(SHARED_BUCKETS, 0);
        let Some(bucket) = table.shared.get_mut(self.shared_bucket(*client)) else {
            return decide(None).map(|(decision, _)| decision);
        };
        let (decision, full_at) = decide((*bucket > 0).then(|| Nanos::from(*bucket)))?;
        *bucket = full_at.into();
        Ok(decision)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    use proptest::prelude::*;

    use super::*;

    /// Time in milliseconds.
    #[derive(Debug, Clone, Default)]
    struct SetClock(Arc<AtomicU64>);

    impl Clock for SetClock {
        type Instant = Duration;

        fn now(&self) -> Duration {
            Duration::from_millis(self.0.load(Ordering::SeqCst))
        }
    }

    /// Creates buckets with a burst of three requests and one more request per second.
    struct Limiter {
        buckets: Buckets<SetClock>,
        clock: SetClock,
    }

    impl Limiter {
        fn new(max_clients: usize) -> Self {
            let clock = SetClock::default();
            Self { buckets: Buckets { max_clients, ..Buckets::new(clock.clone()) }, clock }
        }

        fn pass(&self, milliseconds: u64) {
            self.clock.0.fetch_add(milliseconds, Ordering::SeqCst);
        }

        fn now(&self) -> u64 {
            u64::try_from(self.clock.now().as_nanos()).unwrap()
        }

        /// Returns true if governor allows one more request of a client.
        fn may(&self, client: IpAddr) -> bool {
            let (now, second) = (self.now(), 1_000_000_000);
            let decide = |full_at: Option<Nanos>| {
                let full_at = full_at.map_or(now, u64::from);
                let is_allowed = now >= full_at.saturating_sub(2 * second);
                if is_allowed { Ok(((), Nanos::from(full_at.max(now) + second))) } else { Err(()) }
            };
            self.buckets.measure_and_replace(&client, decide).is_ok()
        }

        fn full_at(&self) -> HashMap<IpAddr, u64> {
            let table = self.buckets.table.lock();
            assert_eq!(table.full_at.len(), table.order.len());
            table.full_at.clone()
        }
    }

    /// Returns the nth /64 of a /32.
    fn network(number: u32) -> IpAddr {
        Ipv6Addr::from_bits((0x2001_0db8_u128 << 96) | (u128::from(number) << 64)).into()
    }

    #[test]
    fn client_without_tokens_is_not_evicted() {
        let limiter = Limiter::new(100);
        let victim = "2001:db8:ffff::".parse().unwrap();
        assert!((0..3).all(|_| limiter.may(victim)));
        for number in 0..10_000 {
            limiter.may(network(number));
        }
        assert!(!limiter.may(victim));
        limiter.pass(1_000);
        assert!(limiter.may(victim) && !limiter.may(victim));
    }

    #[test]
    fn further_clients_share_the_bucket_of_their_network() {
        let limiter = Limiter::new(2);
        let may = |address: &str| limiter.may(address.parse().unwrap());
        assert!(may("192.0.2.1") && may("192.0.2.2"));
        // Clients of one /48 have three requests in all.
        assert!(may("2001:db8:1::") && may("2001:db8:1:1::") && may("2001:db8:1:2::"));
        assert!(!may("2001:db8:1:3::") && !may("2001:db8:1::"));
        // One other network may get the same of 1,024 buckets, but not all five.
        assert!((2..7).any(|network| may(&format!("2001:db8:{network}::"))));
        assert!((2..7).any(|network| may(&format!("198.51.{network}.1"))));
        // Known clients have buckets of their own.
        assert!(may("192.0.2.1") && may("192.0.2.1") && !may("192.0.2.1") && may("192.0.2.2"));
        // Full buckets are evicted to make room.
        limiter.pass(10_000);
        assert!((0..3).all(|_| may("2001:db8:1::")) && !may("2001:db8:1::"));
        assert_eq!(limiter.full_at().len(), 1);
    }

    proptest! {
        #[test]
        fn only_full_buckets_are_evicted(
            steps in proptest::collection::vec((0_u32..12, 0_u64..1_500), 1..300),
            max_clients in 1_usize..8,
        ) {
            let limiter = Limiter::new(max_clients);
            for (client, passed) in steps {
                limiter.pass(passed);
                let (now, before) = (limiter.now(), limiter.full_at());
                limiter.may(network(client));
                let after = limiter.full_at();
                prop_assert!(after.len() <= max_clients);
                for (known, full_at) in before {
                    prop_assert!(full_at <= now || after.get(&known) >= Some(&full_at));
                }
            }
        }
    }
}
