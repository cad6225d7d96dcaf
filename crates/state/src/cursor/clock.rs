//! A clock for the expiry of cursors that never goes back.
//!
//! A system clock that is set back would make an expired cursor valid again. So the time is the greater of the system
//! clock and of the latest time ever seen plus the time since then by the monotonic clock. The store of positions
//! keeps the latest time, so that it is known after a restart, too. Servers that share a Redis follow its clock instead.

use std::str::FromStr;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;

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
    anchor: Mutex<Anchor>,
}

/// Latest time, with the instant at which it was that time.
#[derive(Debug)]
struct Anchor {
    instant: Instant,
    time: Duration,
    /// True if the time is that of a shared clock. The system clock of this machine is then not used.
    is_shared: bool,
}

/// Time by which a shared clock may correct this one backwards: monotonic clocks drift, and a cursor that is valid
/// for seconds longer does no harm.
const MAX_DRIFT: Duration = Duration::from_secs(5);

impl Clock {
    /// Creates the system's clock, offset by `skew`.
    #[must_use]
    pub fn new(skew: Skew) -> Self {
        let anchor = Anchor { instant: Instant::now(), time: Duration::ZERO, is_shared: false };
        Self { skew, anchor: Mutex::new(anchor) }
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

    /// Sets the time to that of a clock which several servers share. From the first time on, the system clock of this
    /// machine is not used, so that servers with different clocks agree on the age of a cursor.
    pub fn follow(&self, shared: Duration) {
        self.follow_at(Instant::now(), shared);
    }

    fn follow_at(&self, instant: Instant, shared: Duration) {
        let mut anchor = self.anchor.lock();
        if !anchor.is_shared || shared.saturating_add(MAX_DRIFT) > anchor.at(instant) {
            *anchor = Anchor { instant, time: shared, is_shared: true };
        }
    }

    fn at(&self, instant: Instant, wall: Duration) -> Duration {
        let mut anchor = self.anchor.lock();
        let steady = anchor.at(instant);
        if anchor.is_shared || wall <= steady {
            return steady;
        }
        *anchor = Anchor { instant, time: wall, is_shared: false };
        wall
    }

    fn wall(&self) -> Duration {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let skew = Duration::from_millis(self.skew.millis.unsigned_abs());
        if self.skew.millis < 0 { wall.saturating_sub(skew) } else { wall.saturating_add(skew) }
    }
}

impl Anchor {
    fn at(&self, instant: Instant) -> Duration {
        self.time.saturating_add(instant.saturating_duration_since(self.instant))
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
    fn shared_clock_replaces_the_system_clock() {
        let clock = Clock::new(Skew::default());
        let start = Instant::now();
        let seconds = Duration::from_secs;
        // This machine is an hour ahead of the shared clock, or an hour behind.
        for wall in [13_600, 6_400] {
            assert!(clock.at(start, seconds(wall)) >= seconds(wall));
            clock.follow_at(start, seconds(10_000));
            assert_eq!(clock.at(start + seconds(5), seconds(wall + 5)), seconds(10_005));
        }
        // Drift is corrected in both directions; a shared clock that is set back is not followed.
        clock.follow_at(start + seconds(10), seconds(10_008));
        assert_eq!(clock.at(start + seconds(11), Duration::ZERO), seconds(10_009));
        clock.follow_at(start + seconds(11), seconds(9_000));
        assert_eq!(clock.at(start + seconds(12), Duration::ZERO), seconds(10_010));
        clock.follow_at(start + seconds(12), seconds(10_600));
        assert_eq!(clock.at(start + seconds(12), Duration::ZERO), seconds(10_600));
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
