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
    #[error("it has expired, or its server's state is gone")]
    Expired,
    /// It was issued by a clock that was ahead.
    #[error("it was issued at a time that has not come, by a clock that was ahead")]
    NotYetValid,
    /// It was issued for other arguments, by another tool, or to another caller.
    #[error("it belongs to another call or caller")]
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
            Self::NotYetValid => "not_yet_valid",
            Self::Mismatched => "mismatched",
            Self::Changed | Self::RecordChanged => "changed",
        }
    }
}
