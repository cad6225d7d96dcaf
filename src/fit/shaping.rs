//! How an answer came to its size, for whoever counts answers.

/// What was done to make an answer fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Shaping {
    /// Bytes of the body, or of the payload of a tool.
    pub bytes: usize,
    /// Records, results or groups in it; 1 for an answer that is no list.
    pub items: usize,
    /// Whether it is one of several.
    pub strategy: Strategy,
    /// Something in it was replaced by a preview.
    pub summarized: bool,
    /// Before it was shaped it was over its threshold.
    pub oversized: bool,
    /// Tokens of the answer, where they were counted.
    pub tokens: Option<usize>,
    /// Tokens of what it was made of, where they were counted or estimated; always there for one that is oversized.
    pub candidate_tokens: Option<usize>,
    /// Fields of the records it was made of, and how many of them it has.
    pub fields: Option<(usize, usize)>,
}

/// Whether an answer is one of several that make up a whole. A page whose records have long texts is a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub enum Strategy {
    /// It is the whole.
    #[default]
    Whole,
    /// It is a list of which there are no pages.
    List,
    /// It is a page of a list, the only one or the last one, too.
    Paginated,
    /// It is a piece of a text.
    Chunked,
}
