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
    /// It was issued too long ago, or its key or its position is gone.
    #[error("it has expired, after ten minutes or with its server's state")]
    Expired,
    /// It was issued for other arguments, or by another tool.
    #[error("it belongs to a call with other arguments")]
    Mismatched,
    /// What it pages through is another than it was.
    #[error("the configured sources changed since it was given")]
    Changed,
    /// The record whose text it goes on in is another than it was.
    #[error("the record changed since it was given")]
    RecordChanged,
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
            Self::Changed | Self::RecordChanged => "changed",
        }
    }
}
