//! Numbers of records that are missing at an origin, and the limits above which they are kept.

/// Number of missing items or records up to which they are deleted, whatever their share.
const MAX_UNCONDITIONAL: u64 = 20;

/// Numbers of items and records that are missing at an origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MissingCounts {
    /// Number of missing items that gave records, with content that is nowhere else.
    pub items: u64,
    /// Number of items that gave records before.
    pub of_items: u64,
    /// Number of records that no item gives any more.
    pub records: u64,
    /// Number of records that the import gave before.
    pub of_records: u64,
    /// True if the import gives no record any more.
    pub is_all: bool,
}

impl MissingCounts {
    /// Returns true if more than 20 items or records are missing.
    #[must_use]
    pub fn is_many(&self) -> bool {
        self.items > MAX_UNCONDITIONAL || self.records > MAX_UNCONDITIONAL
    }

    /// Returns true if more than half, and more than 20, of the items or records are missing.
    #[must_use]
    pub fn is_suspicious(&self) -> bool {
        let is_majority =
            |missing: u64, of: u64| missing > MAX_UNCONDITIONAL && missing.saturating_mul(2) > of;
        is_majority(self.items, self.of_items) || is_majority(self.records, self.of_records)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_half_and_more_than_twenty_are_suspicious() {
        let items =
            |items, of_items| MissingCounts { items, of_items, ..MissingCounts::default() }.is_suspicious();
        let records = |records, of_records| {
            MissingCounts { records, of_records, ..MissingCounts::default() }.is_suspicious()
        };
        for (missing, of, expect) in [
            (20, 20, false),
            (21, 21, true),
            (21, 41, true),
            (21, 42, false),
            (500, 1_000, false),
            (501, 1_000, true),
        ] {
            assert_eq!(items(missing, of), expect, "{missing} of {of}");
            assert_eq!(records(missing, of), expect, "{missing} of {of}");
        }
    }
}
