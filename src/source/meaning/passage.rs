//! The passage of a record that only its meaning found.

use super::placements::Placement;
use crate::record::{Excerpt, RecordData, document_text};

/// Maximum length of a passage that only its meaning matches, in bytes.
const PASSAGE_BYTES: usize = 800;

/// Returns the passage of a record that is nearest to the query, unless the record has become shorter.
pub(in crate::source) fn passage_of(data: &RecordData, placed: &Placement) -> Option<Excerpt> {
    let text = document_text(data);
    let range = usize::try_from(placed.first_byte).ok()?..usize::try_from(placed.end_byte).ok()?;
    let passage = text.get(range)?;
    let passage = passage.get(..passage.floor_char_boundary(PASSAGE_BYTES))?;
    Some(Excerpt::new(passage, 0..0))
}
