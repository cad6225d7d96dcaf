//! Cycle detection for the cursors of a server.
//!
//! Uses Brent's algorithm: one of the cursors seen is kept as a mark and replaced by the newest after 1, 2, 4, 8 ...
//! steps. A cycle of any length meets its mark within three rounds, in constant memory.

use serde::{Deserialize, Serialize};

use super::seen::{Key, digest};

/// State of the cycle detection.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CycleDetector {
    mark: Key,
    steps: u32,
}

impl CycleDetector {
    /// Advances to a cursor. Returns true if it closes a cycle.
    pub(crate) fn visit(&mut self, cursor: &str) -> bool {
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
    fn cycles_of_any_length_are_detected() {
        for length in 1..50 {
            for before in [0, 1, 7] {
                let mut detector = CycleDetector::default();
                let cursors = (0..before).map(|n| format!("before {n}"));
                let circle = (0..length).map(|n| format!("circle {n}")).cycle();
                let met = cursors.chain(circle).take(1_000).position(|cursor| detector.visit(&cursor));
                assert!(met.is_some_and(|steps| steps <= 4 * (before + length)), "{length} {met:?}");
            }
        }
    }

    #[test]
    fn distinct_cursors_are_no_cycle() {
        let mut detector = CycleDetector::default();
        assert!((0..10_000).all(|n| !detector.visit(&format!("page {n}"))));
    }
}
