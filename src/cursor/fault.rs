//! Why a cursor is refused.

/// What is wrong with a cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CursorFault {
    /// It is not the text of any cursor.
    #[error("it is not a cursor of this server")]
    Malformed,
    /// Its signature is not ours.
    #[error("its signature is wrong")]
    Tampered,
    /// It was issued too long ago, or by an earlier run.
    #[error("it has expired, or is of an earlier run of this server")]
    Expired,
    /// It was issued for other arguments.
    #[error("it belongs to a search with other arguments")]
    Mismatched,
    /// What it pages through has changed.
    #[error("what it pages through has changed")]
    Changed,
}

impl CursorFault {
    /// The stable word for the fault.
    #[must_use]
    pub fn reason(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::Tampered => "tampered",
            Self::Expired => "expired",
            Self::Mismatched => "mismatched",
            Self::Changed => "changed",
        }
    }
}
