//! Unavailable sources in an answer that other sources gave.
//!
//! `list_unavailable` lists as many as fit into [`MAX_BYTES`] and counts the others in a warning.

use fetchwell_core::fit::{bytes_of, clip};
use fetchwell_core::record::Unavailable;
use serde::Serialize;

/// Maximum size of the list, in bytes of JSON.
const MAX_BYTES: usize = 600;

/// Maximum length of a name or code, in bytes of JSON.
const MAX_WORD_BYTES: usize = 80;

/// Maximum length of a hint, in bytes of JSON.
const MAX_HINT_BYTES: usize = 200;

/// An unavailable source, as answers and errors list it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ShownUnavailable {
    source: String,
    code: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

/// Returns as many sources as fit, and a warning that counts the others.
pub(crate) fn list_unavailable(unavailable: &[Unavailable]) -> (Vec<ShownUnavailable>, Option<String>) {
    let mut shown = Vec::new();
    let mut room = MAX_BYTES;
    for one in unavailable {
        let one = ShownUnavailable {
            source: clip(one.source.as_str(), MAX_WORD_BYTES),
            code: clip(&one.code, MAX_WORD_BYTES),
            hint: one.hint.as_deref().map(|hint| clip(hint, MAX_HINT_BYTES)),
        };
        let bytes = bytes_of(&one) + ",".len();
        if bytes > room {
            break;
        }
        room -= bytes;
        shown.push(one);
    }
    let warning = match unavailable.len() - shown.len() {
        0 => None,
        1 => Some("1 more source did not answer".to_owned()),
        more => Some(format!("{more} more sources did not answer")),
    };
    (shown, warning)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_beyond_the_limit_are_counted() {
        let many: Vec<Unavailable> = (0..60)
            .map(|number| Unavailable {
                source: format!("source-{number}").parse().unwrap(),
                code: "source_timeout".to_owned(),
                hint: (number == 1).then(|| "x".repeat(900)),
            })
            .collect();
        let (few, none) = list_unavailable(&many[..3]);
        assert_eq!((few.len(), none), (3, None));
        let (some, warning) = list_unavailable(&many);
        assert!(bytes_of(&some) <= MAX_BYTES + 2);
        assert_eq!(warning, Some(format!("{} more sources did not answer", 60 - some.len())));
    }
}
