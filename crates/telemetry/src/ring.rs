//! A bounded list that evicts its oldest items.

use std::collections::VecDeque;

/// The newest items, up to a maximum.
#[derive(Debug)]
pub(crate) struct Ring<Item> {
    capacity: usize,
    items: VecDeque<Item>,
}

impl<Item> Ring<Item> {
    pub(crate) fn new(capacity: usize) -> Self {
        Self { capacity, items: VecDeque::new() }
    }

    /// Appends an item. Returns the oldest item if it was evicted.
    pub(crate) fn push(&mut self, item: Item) -> Option<Item> {
        self.items.push_back(item);
        if self.items.len() > self.capacity { self.items.pop_front() } else { None }
    }

    /// Iterates over the items, the oldest first.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &Item> {
        self.items.iter()
    }

    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Returns true if the next push evicts an item.
    pub(crate) fn is_full(&self) -> bool {
        self.items.len() >= self.capacity
    }

    pub(crate) fn clear(&mut self) {
        self.items.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_items_are_evicted() {
        let mut ring = Ring::new(3);
        let gone: Vec<Option<u8>> = (0..5).map(|item| ring.push(item)).collect();
        assert_eq!(gone, [None, None, None, Some(0), Some(1)]);
        assert_eq!(ring.iter().copied().collect::<Vec<u8>>(), [2, 3, 4]);
        assert!(ring.is_full());
        ring.clear();
        assert!(!ring.is_full());
        assert_eq!(Ring::new(0).push(7), Some(7));
    }
}
