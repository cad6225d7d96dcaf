//! The passage of a record that only its meaning found.

use fetchwell_core::fit::first_bytes;
use fetchwell_core::record::{Excerpt, RecordData, document_text};

use super::placements::Placement;

/// Maximum length of a passage that only its meaning matches, in bytes.
const PASSAGE_BYTES: usize = 800;

/// Returns the passage of a record that is nearest to the query, unless the record has become shorter.
pub fn passage_of(data: &RecordData, placed: &Placement) -> Option<Excerpt> {
    let text = document_text(data);
    let range = usize::try_from(placed.first_byte).ok()?..usize::try_from(placed.end_byte).ok()?;
    Some(passage_from(text.get(range)?))
}

/// Returns the beginning of a chunk of text as a passage.
pub fn passage_from(chunk: &str) -> Excerpt {
    Excerpt::new(first_bytes(chunk, PASSAGE_BYTES), 0..0)
}
