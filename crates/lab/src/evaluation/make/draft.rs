//! A question before its records are counted.

/// A question with the numbers of the records that answer it.
#[derive(Debug)]
pub(super) struct Draft {
    pub(super) query: String,
    pub(super) relevant: Vec<usize>,
}
