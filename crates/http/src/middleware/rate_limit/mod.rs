//! Rate limit per client.
//!
//! A client is identified by the address of its connection, or by the one that a trusted proxy reports. `buckets`
//! stores the bucket of each client. Servers that share a Redis count together; while it cannot be used, no request is
//! refused.

mod buckets;

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use arc_swap::ArcSwapOption;
use axum::extract::{ConnectInfo, Request, State};
use axum::http::StatusCode;
use axum::middleware::Next;
use axum::response::Response;
use fetchwell_state::redis::{RedisState, SharedPermit};
use governor::clock::Clock;
use governor::middleware::StateInformationMiddleware;
use governor::{Quota, RateLimiter as Governor};
use serde::Deserialize;

use self::buckets::Buckets;
use super::refusal::{ErrorResponder, Refusal, refused};
use crate::headers::{RATE_LIMIT, RATE_LIMIT_REMAINING, RATE_LIMIT_RESET};
use crate::server::forwarded::network_of;

/// Rate limit: a burst of `requests`, refilled within `per`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RateLimit {
    /// Number of requests.
    pub requests: NonZeroU32,
    /// Time in which the requests are refilled.
    pub per: Duration,
}

/// Current rate limit, replaceable at runtime. Without one, no request is refused.
#[derive(Debug, Clone, Default)]
pub struct RateLimiter {
    clients: Arc<ArcSwapOption<Clients>>,
    /// Redis in which all servers count.
    shared: Option<RedisState>,
    /// Number of requests that were not counted, because Redis could not be used.
    uncounted: Arc<AtomicU64>,
}

/// One limit, with the buckets of all clients.
struct Clients {
    limit: RateLimit,
    quota: Quota,
    governor: Governor<IpAddr, Buckets<Monotonic>, Monotonic, StateInformationMiddleware>,
}

/// Decision about a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Decision {
    limit: u32,
    remaining: u32,
    /// Seconds until the bucket is full.
    reset: u64,
    /// Seconds to wait, if the request is refused.
    retry_after: Option<u64>,
}

impl RateLimiter {
    /// Creates a limiter without a limit, which counts with other servers if there is a Redis.
    #[must_use]
    pub fn new(shared: Option<RedisState>) -> Self {
        Self { shared, ..Self::default() }
    }

    /// Replaces the limit. An equal limit keeps the buckets.
    pub fn replace(&self, limit: Option<RateLimit>) {
        if self.clients.load().as_ref().map(|clients| clients.limit) != limit {
            self.clients.store(limit.and_then(Clients::new).map(Arc::new));
        }
    }

    /// Returns the number of requests that were let through uncounted, because the shared Redis could not be used.
    #[must_use]
    pub fn uncounted(&self) -> u64 {
        self.uncounted.load(Ordering::Relaxed)
    }

    async fn decide(&self, address: IpAddr) -> Option<Decision> {
        let clients = self.clients.load_full()?;
        let client = client_at(address);
        let Some(redis) = &self.shared else { return Some(clients.decide(client)) };
        let RateLimit { requests, per } = clients.limit;
        match redis.take_permit(&client.to_string(), requests, per).await {
            Ok(SharedPermit { remaining, full_in, wait }) => Some(Decision {
                limit: requests.get(),
                remaining,
                reset: seconds(full_in),
                retry_after: wait.map(|wait| seconds(wait).max(1)),
            }),
            Err(_counted) => {
                self.uncounted.fetch_add(1, Ordering::Relaxed);
                None
            }
        }
    }
}

impl Clients {
    fn new(limit: RateLimit) -> Option<Self> {
        let quota = Quota::with_period(limit.per / limit.requests.get())?.allow_burst(limit.requests);
        let clock = Monotonic(Instant::now());
        let governor = Governor::new(quota, Buckets::new(clock), clock);
        Some(Self { limit, quota, governor })
    }

    fn decide(&self, client: IpAddr) -> Decision {
        let limit = self.limit.requests.get();
        let (remaining, retry_after) = match self.governor.check_key(&client) {
            Ok(left) => (left.remaining_burst_capacity(), None),
            Err(not_until) => {
                let wait = not_until.wait_time_from(self.governor.clock().now());
                (0, Some(seconds(wait).max(1)))
            }
        };
        let used = limit.saturating_sub(remaining);
        let reset = seconds(self.quota.replenish_interval() * used);
        Decision { limit, remaining, reset, retry_after }
    }
}

impl fmt::Debug for Clients {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Clients").field("limit", &self.limit).finish_non_exhaustive()
    }
}

/// Returns the address that identifies a client: its network, or one address for all local programs, since loopback
/// has many.
fn client_at(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        address if address.is_loopback() => Ipv4Addr::LOCALHOST.into(),
        address => network_of(address),
    }
}

/// Returns a duration in seconds, rounded up.
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

/// State of the middleware that limits rates.
#[derive(Debug, Clone)]
pub(crate) struct RateLimitCheck {
    pub(crate) limiter: RateLimiter,
    pub(crate) responder: ErrorResponder,
}

/// Middleware that limits the rate of requests per client.
pub(crate) async fn rate_limit(
    State(RateLimitCheck { limiter, responder }): State<RateLimitCheck>,
    request: Request,
    next: Next,
) -> Response {
    let peer = request.extensions().get::<ConnectInfo<SocketAddr>>().map(|peer| peer.0.ip());
    let decision = match peer {
        Some(address) => limiter.decide(address).await,
        None => None,
    };
    let Some(decision) = decision else { return next.run(request).await };
    let mut response = match decision.retry_after {
        None => next.run(request).await,
        Some(wait) => {
            let problem = format!("too many requests; retry after {wait} seconds");
            let status = StatusCode::TOO_MANY_REQUESTS;
            let refusal = Refusal::new(status, "rate_limited", RATE_LIMITED, problem).after(wait);
            refused(request, &refusal, &responder).await
        }
    };
    let headers = response.headers_mut();
    headers.insert(RATE_LIMIT, decision.limit.into());
    headers.insert(RATE_LIMIT_REMAINING, decision.remaining.into());
    headers.insert(RATE_LIMIT_RESET, decision.reset.into());
    response
}

/// JSON-RPC error code, from the range for implementation-defined server errors.
pub(crate) const RATE_LIMITED: i32 = -32029;

#[cfg(test)]
mod tests {
    use super::*;

    fn limiter(requests: u32) -> RateLimiter {
        let limiter = RateLimiter::default();
        // Long enough that nothing is refilled during the test.
        limiter.replace(Some(RateLimit { requests: NonZeroU32::new(requests).unwrap(), per: HOUR }));
        limiter
    }

    const HOUR: Duration = Duration::from_secs(3_600);

    fn decide(limiter: &RateLimiter, address: &str) -> Option<Decision> {
        let decided = limiter.decide(address.parse().unwrap());
        futures_util::FutureExt::now_or_never(decided).unwrap()
    }

    fn may(limiter: &RateLimiter, address: &str) -> bool {
        decide(limiter, address).is_none_or(|decision| decision.retry_after.is_none())
    }

    #[test]
    fn the_sixteenth_of_fifteen_is_refused() {
        let limiter = limiter(15);
        let decide = || decide(&limiter, "127.0.0.1").unwrap();
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
    fn new_limit_resets_buckets_and_equal_limit_keeps_them() {
        let limiter = limiter(1);
        assert!(may(&limiter, "::1") && !may(&limiter, "::1"));
        let limit = limiter.clients.load_full().unwrap().limit;
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
