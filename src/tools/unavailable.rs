//! Unavailable sources in an answer that other sources gave.
//!
//! `shown` lists as many as fit into [`MAX_BYTES`] and counts the others in a warning.

use serde::Serialize;

use super::payload::json_of;
use crate::fit::clip;
use crate::record::Unavailable;

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
pub(super) fn shown(unavailable: &[Unavailable]) -> (Vec<ShownUnavailable>, Option<String>) {
    let mut shown = Vec::new();
    let mut room = MAX_BYTES;
    for one in unavailable {
        let one = ShownUnavailable {
            source: clip(one.source.as_str(), MAX_WORD_BYTES),
            code: clip(&one.code, MAX_WORD_BYTES),
            hint: one.hint.as_deref().map(|hint| clip(hint, MAX_HINT_BYTES)),
        };
        let bytes = json_of(&one).map_or(usize::MAX, |json| json.len() + 1);
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
        let (few, none) = shown(&many[..3]);
        assert_eq!((few.len(), none), (3, None));
        let (some, warning) = shown(&many);
        assert!(json_of(&some).unwrap().len() <= MAX_BYTES + 2);
        assert_eq!(warning, Some(format!("{} more sources did not answer", 60 - some.len())));
    }
}
