//! Moments that are written as text.

use std::fmt::Write;

use jiff::Timestamp;

/// The moment that a text names, with its offset from UTC. Looks at the text's shape first: most texts are none.
pub(crate) fn moment(text: &str) -> Option<Timestamp> {
    let bytes = text.as_bytes();
    let shaped = (17..=40).contains(&bytes.len())
        && bytes.first().is_some_and(u8::is_ascii_digit)
        && bytes.get(4) == Some(&b'-')
        && bytes.get(7) == Some(&b'-');
    if shaped { text.parse().ok() } else { None }
}

/// A moment in the form in which moments order as texts.
pub(crate) fn comparable(text: &str) -> Option<String> {
    let moment = moment(text)?;
    let mut written = String::with_capacity(30);
    write!(written, "{moment:.9}").ok()?;
    Some(written)
}
