//! Statistics of fitting an answer.

/// Statistics of fitting one answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Shaping {
    /// Bytes of the body, or of the payload of a tool.
    pub bytes: usize,
    /// Number of records, results or groups; 1 for an answer that is no list.
    pub items: usize,
    /// Division of the answer.
    pub strategy: Strategy,
    /// True if a part was replaced by a preview.
    pub summarized: bool,
    /// True if the answer was over its threshold before it was fitted.
    pub oversized: bool,
    /// Tokens of the answer as `o200k` counts them; `None` if the answer is not JSON.
    pub tokens: Option<usize>,
    /// Tokens that the answer would have without shortening, as `o200k` counts or estimates them; `None` if nothing was
    /// shortened.
    pub candidate_tokens: Option<usize>,
    /// Number of fields in the records before fitting, and in the answer.
    pub fields: Option<(usize, usize)>,
}

/// Division of an answer into several. A page of records with long texts is a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub enum Strategy {
    /// The answer is complete.
    #[default]
    Whole,
    /// The answer is a list without pages.
    List,
    /// The answer is a page of a list, including an only or last page.
    Paginated,
    /// The answer is a piece of a text.
    Chunked,
}
