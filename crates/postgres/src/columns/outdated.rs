//! Outdated records of a segment: those whose keys have changed since.

use std::collections::HashSet;

use super::block::{BlockReader, Numbers};
use super::rows::SegmentRow;

/// Marks the records of a segment whose keys have one of some hashes. `block` has the hashes of the segment. Returns `None` if the
/// block is damaged.
pub(super) fn mark_outdated(segment: &mut SegmentRow, block: &[u8], changed: &HashSet<i64>) -> Option<()> {
    let hashes = Numbers::read(&mut BlockReader::new(block))?;
    if hashes.len() != segment.records || !segment.is_intact() {
        return None;
    }
    if changed.is_empty() {
        return Some(());
    }
    for doc in 0..segment.records {
        if changed.contains(&hashes.get(doc)?) {
            segment.outdated.set(u32::try_from(doc).ok()?);
        }
    }
    Some(())
}
