//! The passage of a record that only its meaning found.

use fetchwell_core::fit::first_bytes;
use fetchwell_core::record::{Excerpt, RecordData, attachment_of_field, document_with_attachments};

use super::placements::Placement;
use crate::lexical::matching::attachment_label;

/// Maximum length of a passage that only its meaning matches, in bytes.
const PASSAGE_BYTES: usize = 800;

/// Returns the passage of a record that is nearest to the query, unless the record has become shorter. One of an attachment
/// has the name of that as its label.
pub fn passage_of(data: &RecordData, placed: &Placement) -> Option<Excerpt> {
    let document = document_with_attachments(data);
    let range = usize::try_from(placed.first_byte).ok()?..usize::try_from(placed.end_byte).ok()?;
    let passage = passage_from(document.text.get(range.clone())?);
    // The line above the text has the name already.
    let mut attachments = document.attachments.iter();
    let attachment =
        attachments.find(|place| place.range.start < range.start && range.start < place.range.end);
    let name = attachment.and_then(|place| attachment_of_field(data, &place.field));
    Some(name.map_or(passage.clone(), |name| passage.with_label(&attachment_label(name))))
}

/// Returns the beginning of a chunk of text as a passage.
pub fn passage_from(chunk: &str) -> Excerpt {
    Excerpt::new(first_bytes(chunk, PASSAGE_BYTES), 0..0)
}
