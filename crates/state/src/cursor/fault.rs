//! Reasons to refuse a cursor.

/// Reason to refuse a cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CursorFault {
    /// The text is not a cursor.
    #[error("it is not a cursor of this server")]
    Malformed,
    /// The signature is invalid.
    #[error("its signature is wrong")]
    Tampered,
    /// The cursor is too old, or its key or its position is gone.
    #[error("it has expired, or its server's state is gone")]
    Expired,
    /// The cursor was issued by a clock that was ahead.
    #[error("it was issued at a time that has not come, by a clock that was ahead")]
    NotYetValid,
    /// The cursor was issued for other arguments, another tool or another caller.
    #[error("it belongs to another call or caller")]
    Mismatched,
    /// The list has changed since.
    #[error("the configured sources changed since it was given")]
    Changed,
    /// The record that contains the text has changed since.
    #[error("the record changed since it was given")]
    RecordChanged,
}

impl CursorFault {
    /// Returns the stable name of the fault.
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
