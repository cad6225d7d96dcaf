//! Positions in the write-ahead log, and the lag of a replica.
//!
//! A replica knows the time of its last transaction, but not whether the primary had others since. So the positions of the
//! primary are remembered with their times: a replica that has replayed one of them is at most as old as that.

use std::collections::VecDeque;
use std::str::FromStr;
use std::time::Duration;

use tokio::time::Instant;

/// Maximum number of remembered positions. They are as far apart as the maximum lag needs.
const MAX_POSITIONS: u32 = 128;

/// Position in the write-ahead log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct WalPosition(u64);

impl FromStr for WalPosition {
    type Err = ();

    /// Parses a position as the server writes it, such as `16/B374D848`.
    fn from_str(text: &str) -> Result<Self, ()> {
        let (high, low) = text.split_once('/').ok_or(())?;
        let half = |text| u32::from_str_radix(text, 16).map(u64::from).map_err(|_no_number| ());
        Ok(Self((half(high)? << 32) | half(low)?))
    }
}

/// Positions that the primary had, the newest last.
#[derive(Debug, Default)]
pub(super) struct PrimaryPositions(VecDeque<(Instant, WalPosition)>);

impl PrimaryPositions {
    /// Remembers a position, and forgets those that only show a lag above the maximum.
    pub(super) fn add(&mut self, position: WalPosition, at: Instant, max_lag: Duration) {
        // A primary that was restored or failed over may be at an earlier position: nothing is known of its replicas.
        if self.0.back().is_some_and(|(_, newest)| *newest > position) {
            self.0.clear();
        }
        let is_near =
            |(newest, _): &(Instant, WalPosition)| at.duration_since(*newest) < max_lag / MAX_POSITIONS;
        if !self.0.back().is_some_and(is_near) {
            self.0.push_back((at, position));
        }
        let is_old = |(earlier, _): &(Instant, WalPosition)| at.duration_since(*earlier) > max_lag;
        while self.0.front().is_some_and(is_old) {
            self.0.pop_front();
        }
    }

    /// Returns the time by which a replica at a position is behind the primary, at most. `None` if it is more than the maximum,
    /// or nothing is known of the primary.
    pub(super) fn lag(&self, replica: WalPosition, now: Instant) -> Option<Duration> {
        let (at, _) = self.0.iter().rev().find(|(_, position)| *position <= replica)?;
        Some(now.duration_since(*at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn position(text: &str) -> WalPosition {
        text.parse().unwrap()
    }

    #[test]
    fn positions_are_read_and_ordered() {
        assert!(
            position("0/FFFFFFFF") < position("1/0") && position("16/B374D848") > position("16/B374D847")
        );
        for text in ["", "1", "1/", "x/1", "1/100000000"] {
            assert!(text.parse::<WalPosition>().is_err(), "{text}");
        }
    }

    #[test]
    fn lag_is_the_age_of_the_newest_replayed_position() {
        let start = Instant::now();
        let (second, max_lag) = (Duration::from_secs(1), Duration::from_secs(5));
        let mut primary = PrimaryPositions::default();
        assert_eq!(primary.lag(position("0/1"), start), None);
        for at in 0..4 {
            primary.add(WalPosition(100 + u64::from(at)), start + second * at, max_lag);
        }
        let now = start + second * 3;
        let lag = |replica| primary.lag(WalPosition(replica), now);
        assert_eq!(
            (lag(103), lag(500), lag(101)),
            (Some(Duration::ZERO), Some(Duration::ZERO), Some(second * 2))
        );
        assert_eq!(lag(99), None);
        // The primary is silent, so nothing newer is known.
        assert_eq!(primary.lag(WalPosition(103), now + second * 7), Some(second * 7));
        primary.add(WalPosition(7), now, max_lag);
        assert_eq!(primary.lag(WalPosition(6), now), None);
    }

    #[test]
    fn old_positions_are_forgotten() {
        let (start, second) = (Instant::now(), Duration::from_secs(1));
        let mut primary = PrimaryPositions::default();
        for at in 0..20 {
            primary.add(WalPosition(u64::from(at)), start + second * at, second * 5);
        }
        assert_eq!(primary.lag(WalPosition(13), start + second * 19), None);
        assert!(primary.lag(WalPosition(14), start + second * 19).is_some());
    }
}
