//! All budgets with their arithmetic.
//!
//! A budget is bytes of the compact JSON of one payload unless its name says otherwise. The payload is sent twice, as
//! `structuredContent` and as text, and some clients show both to a model: the budget applies to each.

/// `tools` array of the standard profile with its six tools. Two of them take far less.
pub const TOOLS_LIST: usize = 9_216;

/// `tools` array of the `openai` profile.
pub const TOOLS_LIST_OPENAI: usize = 2_048;

/// `tools` array of the `docs` profile.
pub const TOOLS_LIST_DOCS: usize = 3_072;

/// Description of a tool, in characters.
pub const TOOL_DESCRIPTION_CHARS: usize = 1_000;

/// Input schema of a tool.
pub const TOOL_INPUT_SCHEMA: usize = 4_096;

/// The server's `instructions`; their first [`INSTRUCTIONS_HEAD_CHARS`] characters are complete without the rest.
pub const INSTRUCTIONS: usize = 1_024;

/// Characters of the instructions that every client reads.
pub const INSTRUCTIONS_HEAD_CHARS: usize = 512;

/// `search` without a `limit`.
pub const SEARCH: usize = 1_800;

/// `search` in the `openai` profile, which cannot page.
pub const SEARCH_OPENAI: usize = 8_192;

/// Maximum of a `search` with any `limit`.
const MAX_SEARCH: usize = 16_384;

/// Bytes that each requested hit adds to a `search` with a `limit`: a handle, a title and a sentence.
const SEARCH_PER_HIT: usize = 256;

/// A document, page of records or field window, in `o200k` tokens: the maximum of any tool's answer, whatever is
/// configured.
pub const DOCUMENT_TOKENS: usize = 12_000;

/// Bytes of JSON per token, by assumption.
pub const BYTES_PER_TOKEN: usize = 4;

/// A document, page of records or field window.
pub const DOCUMENT: usize = DOCUMENT_TOKENS * BYTES_PER_TOKEN;

/// An overview of 24 streams, or a stream of 30 fields. Larger ones may take as much as a document.
pub const SCHEMA: usize = 3_000;

/// A page of records without a requested number, in `o200k` tokens: the threshold above which an answer is
/// summarized.
pub const RECORDS_TOKENS: usize = 4_000;

/// [`RECORDS_TOKENS`] in bytes.
pub const RECORDS: usize = RECORDS_TOKENS * BYTES_PER_TOKEN;

/// An error message with its hint.
pub const ERROR: usize = 2_048;

/// Returns the budget of a `search` with a `limit`: `min(16,384, max(1,800, 256 n))`.
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
