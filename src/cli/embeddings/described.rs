//! Descriptions of stored vectors in the output of commands.

use fetchwell_source::contract::GenerationStatus;

use crate::cli::print::grouped;

/// Note about stored vectors of another model than the configured one.
pub(super) const OTHER_MODEL: &str =
    "searches are by words: the configured model is another one; run `fetchwell embeddings build`";

/// Describes a generation for people.
pub(super) fn described(generation: &GenerationStatus) -> String {
    let GenerationStatus { model, dimensions, chunks, missing_records, omitted_bytes } = generation;
    let mut text = format!("{} chunks of {dimensions} dimensions by {model}", grouped(*chunks));
    match missing_records {
        0 => text.push_str(", complete"),
        missing => text.push_str(&format!(", {} changed records are missing", grouped(*missing))),
    }
    if *omitted_bytes > 0 {
        text.push_str(&format!(", {} bytes of very long texts are left out", grouped(*omitted_bytes)));
    }
    text
}
