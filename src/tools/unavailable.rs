//! The sources that did not answer, as they stand in an answer that others gave.

use serde::Serialize;

use super::payload::json_of;
use crate::fit::clip;
use crate::record::Unavailable;

/// What all of them take at most, in bytes of JSON. The rest are counted.
const ALL: usize = 600;

/// A name or a code, in bytes of JSON.
const WORD: usize = 80;

/// What mends a source, in bytes of JSON.
const HINT: usize = 200;

/// A source that did not answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ShownUnavailable {
    source: String,
    code: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

/// As many as fit, and a warning that counts the others.
pub(super) fn shown(unavailable: &[Unavailable]) -> (Vec<ShownUnavailable>, Option<String>) {
    let mut shown = Vec::new();
    let mut room = ALL;
    for one in unavailable {
        let one = ShownUnavailable {
            source: clip(one.source.as_str(), WORD),
            code: clip(&one.code, WORD),
            hint: one.hint.as_deref().map(|hint| clip(hint, HINT)),
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
    fn many_sources_are_counted_and_few_are_named() {
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
        assert!(json_of(&some).unwrap().len() <= ALL + 2);
        assert_eq!(warning, Some(format!("{} more sources did not answer", 60 - some.len())));
    }
}
