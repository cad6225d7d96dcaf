//! A pseudo-random number generator (`SplitMix64`) with the same numbers on every machine and in every release.

/// A pseudo-random number generator.
#[derive(Debug, Clone)]
pub(crate) struct Random(u64);

impl Random {
    /// Creates a generator.
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns the next 64 bits.
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `end`, or 0 if `end` is 0.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        let wide = u128::from(self.next()) * u128::try_from(end).unwrap_or(u128::from(u64::MAX));
        usize::try_from(wide >> 64).unwrap_or_default()
    }

    /// Returns one of the items, or `None` if there are none.
    pub(crate) fn choose<'a, T>(&mut self, items: &'a [T]) -> Option<&'a T> {
        items.get(self.below(items.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_splitmix64() {
        // The first numbers of the reference implementation with seed 0.
        let mut random = Random::new(0);
        let numbers = [random.next(), random.next(), random.next()];
        assert_eq!(numbers, [0xe220_a839_7b1d_cdaf, 0x6e78_9e6a_a1b9_65f4, 0x06c4_5d18_8009_454f]);
    }

    #[test]
    fn numbers_stay_below_the_end() {
        let mut random = Random::new(1);
        let mut counts = [0_usize; 3];
        for _ in 0..3_000 {
            counts[random.below(3)] += 1;
        }
        assert!(counts.iter().all(|count| (900..1_100).contains(count)), "{counts:?}");
        assert_eq!(random.below(0), 0);
        assert_eq!(random.choose::<u8>(&[]), None);
    }
}
