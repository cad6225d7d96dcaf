//! Sets of row ids.

/// Set of row ids: bits from the least to the greatest id, or a sorted list if that takes less memory.
#[derive(Debug)]
pub(in super::super) enum RowSet {
    Bits { first: i64, words: Vec<u64> },
    Sorted(Vec<i64>),
}

impl RowSet {
    /// Creates the set of some row ids.
    pub(in super::super) fn new(rows: &[i64]) -> Self {
        let (first, last) = (rows.iter().copied().min(), rows.iter().copied().max());
        let (Some(first), Some(last)) = (first, last) else { return Self::Sorted(Vec::new()) };
        let count = usize::try_from(last.abs_diff(first) / 64).unwrap_or(usize::MAX);
        if count >= rows.len() {
            let mut sorted = rows.to_vec();
            sorted.sort_unstable();
            return Self::Sorted(sorted);
        }
        let mut words = vec![0_u64; count + 1];
        for row in rows {
            if let Some((word, bit)) = place(first, *row)
                && let Some(word) = words.get_mut(word)
            {
                *word |= bit;
            }
        }
        Self::Bits { first, words }
    }

    /// Returns true if the set has a row id.
    pub(in super::super) fn has(&self, row: i64) -> bool {
        match self {
            Self::Sorted(rows) => rows.binary_search(&row).is_ok(),
            Self::Bits { first, words } => place(*first, row)
                .and_then(|(word, bit)| words.get(word).map(|word| word & bit != 0))
                .unwrap_or(false),
        }
    }
}

/// Returns the number of the word of a row id, and its bit; `None` for one before the first.
fn place(first: i64, row: i64) -> Option<(usize, u64)> {
    let distance = u64::try_from(row.checked_sub(first)?).ok()?;
    Some((usize::try_from(distance / 64).ok()?, 1 << (distance % 64)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_set_has_the_rows_it_was_made_of(
            rows in prop::collection::vec(any::<i64>(), 0..40), shift in 0..64_u32, others in prop::collection::vec(any::<i64>(), 40),
        ) {
            let rows: Vec<i64> = rows.iter().map(|row| row >> shift).collect();
            let set = RowSet::new(&rows);
            for row in rows.iter().copied().chain(others.iter().map(|row| row >> shift)).chain([i64::MIN, i64::MAX]) {
                prop_assert_eq!(set.has(row), rows.contains(&row));
            }
        }
    }
}
