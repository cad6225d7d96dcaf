//! How often each client may ask. A client is the address of its connection, or the one that a trusted proxy asks for:
//! what any other header says of it is its own word.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arc_swap::ArcSwapOption;
use axum::extract::{ConnectInfo, Request, State};
use axum::http::{HeaderName, StatusCode};
use axum::middleware::Next;
use axum::response::Response;
use governor::clock::Clock;
use governor::middleware::StateInformationMiddleware;
use governor::state::{InMemoryState, NotKeyed};
use governor::{Quota, RateLimiter as Governor};
use moka::policy::EvictionPolicy;
use moka::sync::Cache;

use super::refusal::{Refusal, refused};
use crate::telemetry::Telemetry;

/// Clients that are told apart at a time; the one that asked longest ago is forgotten first.
const CLIENTS_MOST: u64 = 10_000;

/// How many requests a client may make at once.
pub(super) const LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");

/// How many more it may make now.
pub(super) const REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");

/// Seconds until it may make all of them again.
pub(super) const RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");

/// How often a client may ask: so many at once, and as many again over each `per`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateLimit {
    /// Requests.
    pub requests: NonZeroU32,
    /// The time they come back in.
    pub per: Duration,
}

/// The limit of now, which can be replaced while requests are answered. Without one, everybody may ask as often as
/// they like.
#[derive(Debug, Clone, Default)]
pub struct RateLimiter(Arc<ArcSwapOption<Buckets>>);

#[derive(Debug)]
struct Buckets {
    limit: RateLimit,
    quota: Quota,
    /// A client that did not ask for `per` has a full bucket, as one that was never seen.
    clients: Cache<Client, Arc<Bucket>>,
    clock: Monotonic,
}

type Bucket = Governor<NotKeyed, InMemoryState, Monotonic, StateInformationMiddleware>;

/// An address; of IPv6 its network, since whoever has one address there has all of them. So it is with the loopback
/// addresses of a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Client(IpAddr);

/// What becomes of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Decision {
    limit: u32,
    remaining: u32,
    /// Seconds until the bucket is full.
    reset: u64,
    /// Seconds to wait, when it is refused.
    retry_after: Option<u64>,
}

impl RateLimiter {
    /// Another limit from now on; with the same one, what clients have used stays used.
    pub fn replace(&self, limit: Option<RateLimit>) {
        if self.0.load().as_ref().map(|buckets| buckets.limit) != limit {
            self.0.store(limit.and_then(Buckets::new).map(Arc::new));
        }
    }

    fn decide(&self, address: IpAddr) -> Option<Decision> {
        self.0.load().as_ref().map(|buckets| buckets.decide(Client::at(address)))
    }
}

impl Buckets {
    fn new(limit: RateLimit) -> Option<Self> {
        let quota = Quota::with_period(limit.per / limit.requests.get())?.allow_burst(limit.requests);
        let clients = Cache::builder()
            .max_capacity(CLIENTS_MOST)
            .time_to_idle(limit.per)
            .eviction_policy(EvictionPolicy::lru())
            .build();
        Some(Self { limit, quota, clients, clock: Monotonic(Instant::now()) })
    }

    fn decide(&self, client: Client) -> Decision {
        let new = || {
            let bucket = Governor::direct_with_clock(self.quota, self.clock);
            Arc::new(bucket.with_middleware::<StateInformationMiddleware>())
        };
        let bucket = self.clients.get_with(client, new);
        let limit = self.limit.requests.get();
        let (remaining, retry_after) = match bucket.check() {
            Ok(left) => (left.remaining_burst_capacity(), None),
            Err(not_until) => (0, Some(seconds(not_until.wait_time_from(self.clock.now())).max(1))),
        };
        let used = limit.saturating_sub(remaining);
        let reset = seconds(self.quota.replenish_interval() * used);
        Decision { limit, remaining, reset, retry_after }
    }
}

impl Client {
    fn at(address: IpAddr) -> Self {
        match address.to_canonical() {
            address if address.is_loopback() => Self(Ipv4Addr::LOCALHOST.into()),
            IpAddr::V4(address) => Self(address.into()),
            IpAddr::V6(address) => {
                let network = address.to_bits() & !u128::from(u64::MAX);
                Self(Ipv6Addr::from_bits(network).into())
            }
        }
    }
}

/// Whole seconds, up.
fn seconds(duration: Duration) -> u64 {
    duration.as_secs() + u64::from(duration.subsec_nanos() > 0)
}

/// Time since the limit was set.
#[derive(Debug, Clone, Copy)]
struct Monotonic(Instant);

impl Clock for Monotonic {
    type Instant = Duration;

    fn now(&self) -> Duration {
        self.0.elapsed()
    }
}

/// Passes on what a client may ask, and refuses the rest before anything is done for it.
pub(super) async fn limited(
    State((limiter, telemetry)): State<(RateLimiter, Telemetry)>,
    request: Request,
    next: Next,
) -> Response {
    let peer = request.extensions().get::<ConnectInfo<SocketAddr>>().map(|peer| peer.0.ip());
    let decision = match peer {
        Some(address) => limiter.decide(address),
        None => None,
    };
    let Some(decision) = decision else { return next.run(request).await };
    let mut response = match decision.retry_after {
        None => next.run(request).await,
        Some(wait) => {
            let problem =
                format!("this client asks too often; ask again after {wait} seconds, and less often");
            let status = StatusCode::TOO_MANY_REQUESTS;
            let refusal = Refusal::new(status, "rate_limited", RATE_LIMITED, problem).after(wait);
            refused(request, &refusal, &telemetry).await
        }
    };
    let headers = response.headers_mut();
    headers.insert(LIMIT, decision.limit.into());
    headers.insert(REMAINING, decision.remaining.into());
    headers.insert(RESET, decision.reset.into());
    response
}

/// The JSON-RPC code, from the range that servers may use as they like.
pub(super) const RATE_LIMITED: i32 = -32029;

#[cfg(test)]
mod tests {
    use super::*;

    fn limiter(requests: u32) -> RateLimiter {
        let limiter = RateLimiter::default();
        // Long enough that nothing comes back while the test runs.
        limiter.replace(Some(RateLimit { requests: NonZeroU32::new(requests).unwrap(), per: HOUR }));
        limiter
    }

    const HOUR: Duration = Duration::from_secs(3_600);

    fn may(limiter: &RateLimiter, address: &str) -> bool {
        limiter.decide(address.parse().unwrap()).is_none_or(|decision| decision.retry_after.is_none())
    }

    #[test]
    fn the_sixteenth_of_fifteen_is_refused() {
        let limiter = limiter(15);
        let decide = || limiter.decide("127.0.0.1".parse().unwrap()).unwrap();
        for remaining in (0..15).rev() {
            let decision = decide();
            assert_eq!((decision.limit, decision.remaining, decision.retry_after), (15, remaining, None));
        }
        let refused = decide();
        assert_eq!((refused.remaining, refused.reset), (0, 3_600));
        assert!((1..=240).contains(&refused.retry_after.unwrap()), "{refused:?}");
        assert!(may(&limiter, "192.0.2.1"));
    }

    #[test]
    fn a_client_is_an_address_or_a_network() {
        for (one, other, is_same) in [
            ("127.0.0.1", "127.0.0.1", true),
            ("127.0.0.1", "127.0.0.2", true),
            ("127.255.255.254", "::1", true),
            ("::1", "::ffff:127.3.2.1", true),
            ("::1", "::2", false),
            ("127.0.0.1", "128.0.0.1", false),
            ("192.0.2.1", "192.0.2.2", false),
            ("127.0.0.1", "::ffff:127.0.0.1", true),
            ("2001:db8::1", "2001:db8::ffff:1:2:3", true),
            ("2001:db8::1", "2001:db8:0:1::1", false),
        ] {
            let limiter = limiter(1);
            assert!(may(&limiter, one));
            assert_eq!(!may(&limiter, other), is_same, "{one} {other}");
        }
    }

    #[test]
    fn many_clients_take_bounded_memory() {
        let limiter = limiter(1);
        for number in 0..30_000_u32 {
            assert!(limiter.decide(IpAddr::V4(number.into())).is_some());
        }
        let buckets = limiter.0.load_full().unwrap();
        buckets.clients.run_pending_tasks();
        assert!(buckets.clients.entry_count() <= CLIENTS_MOST);
    }

    #[test]
    fn another_limit_begins_anew_and_the_same_does_not() {
        let limiter = limiter(1);
        assert!(may(&limiter, "::1") && !may(&limiter, "::1"));
        let limit = limiter.0.load_full().unwrap().limit;
        limiter.replace(Some(limit));
        assert!(!may(&limiter, "::1"));
        limiter.replace(Some(RateLimit { requests: NonZeroU32::new(2).unwrap(), per: HOUR }));
        assert!(may(&limiter, "::1"));
        limiter.replace(None);
        assert!((0..9).all(|_| may(&limiter, "::1")));
    }

    #[test]
    fn no_wait_is_shorter_than_a_second() {
        for (millis, expect) in [(0, 0), (1, 1), (1_000, 1), (1_001, 2)] {
            assert_eq!(seconds(Duration::from_millis(millis)), expect);
        }
    }
}
