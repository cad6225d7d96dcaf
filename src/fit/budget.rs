//! Every budget, with its arithmetic.
//!
//! A budget is bytes of the compact JSON of one payload unless its name says otherwise. The payload
//! goes out twice, as `structuredContent` and as text, and some clients show a model both: the budget
//! holds for each.

/// `tools` array of the standard profile, once all six tools exist. Two of them take far less.
pub const TOOLS_LIST: usize = 9_216;

/// `tools` array of the `openai` profile.
pub const TOOLS_LIST_OPENAI: usize = 2_048;

/// A tool's description, in characters.
pub const TOOL_DESCRIPTION_CHARS: usize = 1_000;

/// A tool's input schema.
pub const TOOL_INPUT_SCHEMA: usize = 4_096;

/// The server's `instructions`; their first [`INSTRUCTIONS_HEAD_CHARS`] characters stand alone.
pub const INSTRUCTIONS: usize = 1_024;

/// How much of the instructions every client reads, in characters.
pub const INSTRUCTIONS_HEAD_CHARS: usize = 512;

/// `search` without a `limit`.
pub const SEARCH: usize = 1_800;

/// `search` in the `openai` profile, which cannot page.
pub const SEARCH_OPENAI: usize = 8_192;

/// The most a `search` with any `limit` takes.
const MAX_SEARCH: usize = 16_384;

/// What each asked hit adds to a `search` with a `limit`: a handle, a title and a sentence.
const SEARCH_PER_HIT: usize = 256;

/// A document, page of records or field window, in `o200k` tokens: the most any tool answers, whatever is configured.
pub const DOCUMENT_TOKENS: usize = 12_000;

/// Bytes of JSON that a token is taken for.
pub const BYTES_PER_TOKEN: usize = 4;

/// A document, page of records or field window.
pub const DOCUMENT: usize = DOCUMENT_TOKENS * BYTES_PER_TOKEN;

/// What an overview of 24 streams, or a stream of 30 fields, takes at most. Larger ones may take a document's.
pub const SCHEMA: usize = 3_000;

/// A page of records when no number of them was asked, in `o200k` tokens: the threshold above which an answer is
/// summarised.
pub const RECORDS_TOKENS: usize = 4_000;

/// The same in bytes.
pub const RECORDS: usize = RECORDS_TOKENS * BYTES_PER_TOKEN;

/// An error.
pub const ERROR: usize = 2_048;

/// `search` with `limit` hits asked: `min(16,384, max(1,800, 256 n))`.
#[must_use]
pub fn search_with_limit(limit: usize) -> usize {
    limit.saturating_mul(SEARCH_PER_HIT).clamp(SEARCH, MAX_SEARCH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_budget_grows_with_its_limit_between_its_bounds() {
        for (limit, expect) in [(1, 1_800), (7, 1_800), (8, 2_048), (20, 5_120), (64, 16_384), (100, 16_384)]
        {
            assert_eq!(search_with_limit(limit), expect, "limit {limit}");
        }
    }
}
