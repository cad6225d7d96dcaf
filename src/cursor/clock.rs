//! A clock for the expiry of cursors that never goes back.
//!
//! A system clock that is set back would make an expired cursor valid again. So the time is the greater of the system
//! clock and of the latest time ever seen plus the time since then by the monotonic clock. The store of positions
//! keeps the latest time, so that it is known after a restart, too.

use std::str::FromStr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Offset of a clock, for tests of cursor expiry: `+601s`, `-1h`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Skew {
    millis: i64,
}

/// Error of parsing a skew.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it is not written like +601s, -90m or -1h")]
pub struct NotASkew;

impl FromStr for Skew {
    type Err = NotASkew;

    fn from_str(text: &str) -> Result<Self, NotASkew> {
        let units = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000)];
        let number = |unit: &str| text.strip_suffix(unit)?.parse::<i64>().ok();
        let millis = units.into_iter().find_map(|(unit, millis)| number(unit)?.checked_mul(millis));
        millis.map(|millis| Self { millis }).ok_or(NotASkew)
    }
}

/// Clock that never goes back.
#[derive(Debug)]
pub struct Clock {
    skew: Skew,
    /// Latest time, with the instant at which it was that time.
    anchor: Mutex<(Instant, Duration)>,
}

impl Clock {
    /// Creates the system's clock, offset by `skew`.
    #[must_use]
    pub fn new(skew: Skew) -> Self {
        Self { skew, anchor: Mutex::new((Instant::now(), Duration::ZERO)) }
    }

    /// Returns the time since 1970.
    #[must_use]
    pub fn now(&self) -> Duration {
        self.at(Instant::now(), self.wall())
    }

    /// Sets the time to `seen` if it is earlier.
    pub fn raise(&self, seen: Duration) {
        self.at(Instant::now(), seen);
    }

    fn at(&self, instant: Instant, wall: Duration) -> Duration {
        let mut anchor = self.anchor.lock().unwrap_or_else(PoisonError::into_inner);
        let steady = anchor.1.saturating_add(instant.saturating_duration_since(anchor.0));
        if wall > steady {
            *anchor = (instant, wall);
        }
        wall.max(steady)
    }

    fn wall(&self) -> Duration {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let skew = Duration::from_millis(self.skew.millis.unsigned_abs());
        if self.skew.millis < 0 { wall.saturating_sub(skew) } else { wall.saturating_add(skew) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_skew_has_a_sign_and_a_unit() {
        for (text, expect) in [
            ("+601s", Ok(601_000)),
            ("-1h", Ok(-3_600_000)),
            ("90m", Ok(5_400_000)),
            ("+0s", Ok(0)),
            ("250ms", Ok(250)),
            ("601", Err(NotASkew)),
            ("+s", Err(NotASkew)),
            ("", Err(NotASkew)),
            ("+1.5h", Err(NotASkew)),
            ("9223372036854775807h", Err(NotASkew)),
        ] {
            assert_eq!(text.parse().map(|skew: Skew| skew.millis), expect, "{text}");
        }
    }

    #[test]
    fn a_clock_that_is_set_back_goes_on() {
        let clock = Clock::new(Skew::default());
        let start = Instant::now();
        let seconds = Duration::from_secs;
        assert_eq!(clock.at(start, seconds(10_000)), seconds(10_000));
        // Set back an hour: the time advances by the monotonic clock.
        assert_eq!(clock.at(start + seconds(5), seconds(6_405)), seconds(10_005));
        // Set ahead: the time is accepted, and kept when the clock is set back.
        assert_eq!(clock.at(start + seconds(6), seconds(20_000)), seconds(20_000));
        assert_eq!(clock.at(start + seconds(7), seconds(10_007)), seconds(20_001));
    }

    #[test]
    fn a_time_that_was_seen_is_never_before() {
        let ahead = Clock::new("+1h".parse().unwrap());
        let clock = Clock::new(Skew::default());
        assert!(clock.now() < ahead.now());
        let seen = ahead.now();
        clock.raise(seen);
        assert!(clock.now() >= seen);
    }
}
