//! Deterministic pseudo-random choices.
//!
//! Every record has its own generator, seeded with its kind and number, so that adding or removing a record changes
//! no other.

/// A pseudo-random number generator (`SplitMix64`).
#[derive(Debug, Clone)]
pub(super) struct Draw(u64);

impl Draw {
    /// Creates the generator of one record of an account. `what` is the kind of record.
    pub(super) fn new(what: &str, account: &str, index: u64) -> Self {
        // FNV-1a is enough, because the seed only has to differ.
        let bytes = what.bytes().chain([0]).chain(account.bytes());
        let seed = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        Self(seed.wrapping_add(index.wrapping_mul(0xd134_2543_de82_ef95)))
    }

    /// Returns the next number of `SplitMix64`.
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number from `min` to `max`, inclusive.
    pub(super) fn between(&mut self, min: u64, max: u64) -> u64 {
        min + self.next() % (max.saturating_sub(min) + 1)
    }

    /// Returns one of the items.
    pub(super) fn one_of<T: Copy + Default>(&mut self, items: &[T]) -> T {
        items.get(self.place_in(items.len())).copied().unwrap_or_default()
    }

    /// Returns several different items, consecutive from a random position.
    pub(super) fn some_of<T: Copy>(&mut self, items: &[T], how_many: usize) -> Vec<T> {
        let from = self.place_in(items.len());
        items.iter().cycle().skip(from).take(how_many.min(items.len())).copied().collect()
    }

    /// Returns true with a probability in percent.
    pub(super) fn chance(&mut self, percent: u64) -> bool {
        self.between(1, 100) <= percent
    }

    fn place_in(&mut self, len: usize) -> usize {
        let last = u64::try_from(len).unwrap_or(1).saturating_sub(1);
        usize::try_from(self.between(0, last)).unwrap_or_default()
    }
}
