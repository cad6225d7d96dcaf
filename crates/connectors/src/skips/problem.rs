//! The reason why a file cannot be read, with a text for people.

use std::fmt;
use std::io;

use serde::{Deserialize, Serialize};

use super::reason::SkipReason;

/// The reason why a file, or a piece of it, cannot be read. A text alone says that the file is damaged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// Class of the reason.
    pub reason: SkipReason,
    /// Text for people, which begins with a lower-case letter and has no full stop.
    pub text: String,
}

impl Problem {
    /// Creates a problem of a class.
    pub fn new(reason: SkipReason, text: impl Into<String>) -> Self {
        Self { reason, text: text.into() }
    }

    /// Creates the problem of content that needs a password or a key.
    pub(crate) fn encrypted(text: &str) -> Self {
        Self::new(SkipReason::Encrypted, text)
    }

    /// Creates the problem of content beyond a limit.
    pub(crate) fn too_large(text: impl Into<String>) -> Self {
        Self::new(SkipReason::TooLarge, text)
    }

    /// Creates the problem of a file that the system does not open or read.
    pub(crate) fn unreadable(error: &io::Error) -> Self {
        Self::new(SkipReason::Unreadable, error.to_string())
    }

    /// Creates the problem of a reader that panicked.
    pub(crate) fn internal() -> Self {
        Self::new(SkipReason::Internal, "an internal error stopped its reader; please report it")
    }

    /// Returns the problem with a remark behind its text, such as what can be done about it.
    pub(crate) fn with_remark(&self, remark: &str) -> Self {
        Self::new(self.reason, format!("{}; {remark}", self.text))
    }

    /// Parses a problem that a store keeps. One of an earlier release is only a text.
    pub(crate) fn from_stored(stored: &str) -> Self {
        serde_json::from_str(stored).unwrap_or_else(|_text| Self::new(SkipReason::Damaged, stored))
    }

    /// Returns the form in which a store keeps it.
    pub(crate) fn to_stored(&self) -> String {
        serde_json::to_string(self).unwrap_or_else(|_error| self.text.clone())
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl From<String> for Problem {
    fn from(text: String) -> Self {
        Self::new(SkipReason::Damaged, text)
    }
}

impl From<&str> for Problem {
    fn from(text: &str) -> Self {
        Self::from(text.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_problems_are_read_also_those_of_earlier_releases() {
        let problem = Problem::encrypted("it needs a \"password\"");
        assert_eq!(Problem::from_stored(&problem.to_stored()), problem);
        for text in ["it is no PDF document", "{}", "12", ""] {
            assert_eq!(Problem::from_stored(text), Problem::from(text));
        }
    }
}
