//! Position after a page of a merged list, serialized as text.
//!
//! A page of the list ends in the middle of server pages, while a server's cursor stands between pages. The position
//! therefore holds, for each input that has not ended, the cursor of the page being read and the number of its rows
//! that were returned. The names of the last of those rows find the position again when rows are added or deleted
//! above it.

use std::collections::VecDeque;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::cycle::CycleDetector;
use super::seen::{Recent, SeenRows};
use super::sort_key::SortKey;
use crate::{Accuracy, QueryFault, RecordsPosition, SourceError};

/// Position of a merged list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MergePosition<Name> {
    /// Total count and its accuracy, if the records were counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) count: Option<(u64, Accuracy)>,
    /// True if some inputs have ended.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) ended: bool,
    /// Rows at the last sort key returned; other inputs may have copies of them.
    #[serde(rename = "given", default, skip_serializing_if = "Option::is_none")]
    pub(super) returned: Option<ReturnedRows>,
    /// Rows returned since an input failed. Rows of that input come late and may be copies of these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) since_failure: Option<SeenRows>,
    /// Inputs that have not ended; at least one.
    #[serde(rename = "lanes")]
    pub(super) inputs: Vec<SavedInput<Name>>,
}

/// Rows returned at one sort key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReturnedRows {
    /// Sort key of these rows.
    #[serde(rename = "place")]
    pub(super) sort_key: SortKey,
    /// Names of these rows.
    pub(super) names: Vec<String>,
}

/// Position of one input.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SavedInput<Name> {
    /// Name of the input.
    pub(crate) name: Name,
    /// Server's cursor of the page that is being read, or `None` for the first page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) cursor: Option<String>,
    /// Number of rows of that page that were returned.
    #[serde(default)]
    pub(super) taken: usize,
    /// Names of the last few of those rows, newest last.
    #[serde(default, skip_serializing_if = "VecDeque::is_empty")]
    pub(super) last: VecDeque<String>,
    /// Digests of recently returned rows.
    #[serde(default, skip_serializing_if = "Recent::is_empty")]
    pub(super) recent: Recent,
    /// Cycle detection for the cursors of the input.
    #[serde(rename = "trail", default)]
    pub(super) cycles: CycleDetector,
    /// True if the input failed while others continued, so that its rows are late.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) late: bool,
}

impl<Name> SavedInput<Name> {
    /// Creates the position at the start of an input.
    pub(crate) fn start(name: Name) -> Self {
        Self {
            name,
            cursor: None,
            taken: 0,
            last: VecDeque::new(),
            recent: Recent::default(),
            cycles: CycleDetector::default(),
            late: false,
        }
    }
}

impl<Name: Serialize + DeserializeOwned> MergePosition<Name> {
    /// Parses a position.
    pub fn open(position: &RecordsPosition) -> Result<Self, SourceError> {
        match serde_json::from_str::<Self>(&position.0) {
            Ok(saved) if !saved.inputs.is_empty() => Ok(saved),
            _ => Err(SourceError::InvalidQuery {
                fault: QueryFault::MalformedCursor,
                problem: "the cursor is not one that was given".to_owned(),
                hint: "List again without `cursor`.".to_owned(),
            }),
        }
    }

    /// Serializes the position.
    pub(super) fn seal(&self) -> Option<RecordsPosition> {
        serde_json::to_string(self).ok().map(RecordsPosition)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn positions_round_trip(cursor in any::<Option<String>>(), taken in 0_usize..500, last in any::<Vec<String>>(), late in any::<bool>()) {
            let input = SavedInput { cursor, taken, last: last.into(), late, ..SavedInput::start("a".to_owned()) };
            let inputs = vec![input, SavedInput::start("b".to_owned())];
            let saved = MergePosition { count: Some((4, Accuracy::Exact)), ended: true, returned: None, since_failure: Some(SeenRows::default()), inputs };
            prop_assert_eq!(MergePosition::open(&saved.seal().unwrap()).unwrap(), saved);
        }

        #[test]
        fn parser_accepts_any_text_without_panic(text in "\\PC*") {
            let _ = MergePosition::<String>::open(&RecordsPosition(text));
        }
    }

    #[test]
    fn invalid_position_is_refused() {
        for text in
            ["", "garbage", "{}", r#"{"lanes":[]}"#, r#"{"lanes":[{"name":7}]}"#, r#"{"lanes":[{"x":1}]}"#]
        {
            let refused = MergePosition::<String>::open(&RecordsPosition(text.to_owned())).unwrap_err();
            assert_eq!(refused.code(), "invalid_cursor", "{text}");
        }
    }
}
