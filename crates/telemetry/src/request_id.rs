//! Request ids, given by callers or generated.

use std::fmt;

/// Maximum length of a caller's id in characters.
const MAX_CHARS: usize = 128;

/// The id of a request. It is used in headers, logs and records, so it contains only `[A-Za-z0-9._:-]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestId {
    text: String,
    is_callers: bool,
}

impl RequestId {
    /// Validates an id of a caller. Returns `None` if it cannot be logged and echoed.
    #[must_use]
    pub fn of_caller(text: String) -> Option<Self> {
        let usual = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b':');
        let is_sane = (1..=MAX_CHARS).contains(&text.len()) && text.bytes().all(usual);
        is_sane.then_some(Self { text, is_callers: true })
    }

    /// Generates a random id.
    #[must_use]
    pub fn fresh() -> Self {
        let mut random = [0; 8];
        // Without random bytes the id is all zeros, which is no reason to reject the request.
        let _ = getrandom::fill(&mut random);
        Self { text: format!("req_{:016x}", u64::from_be_bytes(random)), is_callers: false }
    }

    /// Returns the id as a string.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns true if the id came from the caller, who expects it in the response.
    #[must_use]
    pub fn is_callers(&self) -> bool {
        self.is_callers
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, is_kept: bool) {
        assert_eq!(RequestId::of_caller(text.to_owned()).is_some(), is_kept, "{text:?}");
    }

    #[test]
    fn only_ids_that_can_be_logged_and_echoed_are_accepted() {
        check("trace-7.a", true);
        check("urn:uuid:0_1", true);
        check(&"x".repeat(128), true);
        check(&"x".repeat(129), false);
        check("", false);
        check("a b", false);
        check("a\r\nset-cookie: x", false);
        check("naïve", false);
    }

    #[test]
    fn fresh_ids_differ_and_are_sane() {
        let (one, other) = (RequestId::fresh(), RequestId::fresh());
        assert_ne!(one, other);
        assert!(!one.is_callers());
        check(one.as_str(), true);
    }
}
