//! Whether a server's cursors lead in a circle.
//!
//! Brent's way: one cursor of those met is kept as a mark, and moved to the newest after 1, 2, 4, 8 ... steps.
//! A circle of any length meets its mark within three rounds, and nothing else has to be remembered.

use serde::{Deserialize, Serialize};

use super::seen::{Key, digest};

/// The cursors met so far, as far as has to be known of them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::source) struct Trail {
    mark: Key,
    steps: u32,
}

impl Trail {
    /// Goes on to a cursor, and says whether it was met before.
    pub(in crate::source) fn comes_back_to(&mut self, cursor: &str) -> bool {
        let met = digest([cursor.as_bytes()]);
        if self.steps > 0 && met == self.mark {
            return true;
        }
        self.steps = self.steps.saturating_add(1);
        if self.steps.is_power_of_two() {
            self.mark = met;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_circle_of_any_length_is_noticed() {
        for length in 1..50 {
            for before in [0, 1, 7] {
                let mut trail = Trail::default();
                let cursors = (0..before).map(|n| format!("before {n}"));
                let circle = (0..length).map(|n| format!("circle {n}")).cycle();
                let met = cursors.chain(circle).take(1_000).position(|cursor| trail.comes_back_to(&cursor));
                assert!(met.is_some_and(|steps| steps <= 4 * (before + length)), "{length} {met:?}");
            }
        }
    }

    #[test]
    fn what_goes_on_is_left_alone() {
        let mut trail = Trail::default();
        assert!((0..10_000).all(|n| !trail.comes_back_to(&format!("page {n}"))));
    }
}
