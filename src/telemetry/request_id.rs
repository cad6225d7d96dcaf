//! What a call is known by: the id that its caller gave it, or one of ours.

use std::fmt;

/// The longest id that is taken from a caller, in characters.
const CHARS_MOST: usize = 128;

/// The id of a request. It goes into headers, logs and records, so it holds nothing but `[A-Za-z0-9._:-]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestId {
    text: String,
    is_callers: bool,
}

impl RequestId {
    /// The id that a caller gave, when it is one that can be logged and echoed.
    #[must_use]
    pub fn of_caller(text: String) -> Option<Self> {
        let usual = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b':');
        let is_sane = (1..=CHARS_MOST).contains(&text.len()) && text.bytes().all(usual);
        is_sane.then_some(Self { text, is_callers: true })
    }

    /// A new one.
    #[must_use]
    pub fn fresh() -> Self {
        let mut random = [0; 8];
        // Without random bytes the id is all zeros, which is no reason to refuse the request.
        let _ = getrandom::fill(&mut random);
        Self { text: format!("req_{:016x}", u64::from_be_bytes(random)), is_callers: false }
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether the caller gave it, and will look for it.
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
    fn only_what_can_be_logged_and_echoed_is_kept() {
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
