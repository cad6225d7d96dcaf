//! Where a merged list goes on, as one text.
//!
//! A cursor of a record server is the place after a page of its own, and one page of ours ends in the middle
//! of such pages. So a position keeps, for each lane that is not at its end, the cursor of the page being read
//! and how many of its rows were given; the names of the last of them find the place again when rows were
//! added or deleted above it.

use std::collections::VecDeque;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::place::Place;
use super::seen::{Recent, Seen};
use super::trail::Trail;
use crate::source::{Accuracy, QueryFault, RecordsPosition, SourceError};

/// A list that goes on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::source) struct Saved<Name> {
    /// How many there are in all and how near that is, if it was counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) count: Option<(u64, Accuracy)>,
    /// Some lanes came to their end.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) ended: bool,
    /// The rows at the last place that was given, of which another lane may have copies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) given: Option<Given>,
    /// What was given since a lane failed: rows of that lane come late, and may be copies of these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) since_failure: Option<Seen>,
    /// The lanes that did not end; at least one.
    pub(super) lanes: Vec<SavedLane<Name>>,
}

/// The rows at one place that were given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::source) struct Given {
    /// The place.
    pub(super) place: Place,
    /// Their names.
    pub(super) names: Vec<String>,
}

/// Where one lane goes on.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::source) struct SavedLane<Name> {
    /// What it is a lane of.
    pub(in crate::source) name: Name,
    /// The server's cursor of the page that is being read; the first page if `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::source) cursor: Option<String>,
    /// Rows of that page that were given.
    #[serde(default)]
    pub(super) taken: usize,
    /// The names of the last few of them, newest last.
    #[serde(default, skip_serializing_if = "VecDeque::is_empty")]
    pub(super) last: VecDeque<String>,
    /// Rows that were given of it, as far as they are remembered.
    #[serde(default, skip_serializing_if = "Recent::is_empty")]
    pub(super) recent: Recent,
    /// Tells whether its cursors lead in a circle.
    #[serde(default)]
    pub(super) trail: Trail,
    /// It failed while others went on, so its rows are behind.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) late: bool,
}

impl<Name> SavedLane<Name> {
    /// A lane at its start.
    pub(in crate::source) fn start(name: Name) -> Self {
        Self {
            name,
            cursor: None,
            taken: 0,
            last: VecDeque::new(),
            recent: Recent::default(),
            trail: Trail::default(),
            late: false,
        }
    }
}

impl<Name: Serialize + DeserializeOwned> Saved<Name> {
    /// A position of ours, read back.
    pub(in crate::source) fn open(position: &RecordsPosition) -> Result<Self, SourceError> {
        match serde_json::from_str::<Self>(&position.0) {
            Ok(saved) if !saved.lanes.is_empty() => Ok(saved),
            _ => Err(SourceError::CorrectQuery {
                fault: QueryFault::MalformedCursor,
                problem: "the cursor is not one that was given".to_owned(),
                hint: "List again without `cursor`.".to_owned(),
            }),
        }
    }

    /// As one text.
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
        fn a_position_is_read_back(cursor in any::<Option<String>>(), taken in 0_usize..500, last in any::<Vec<String>>(), late in any::<bool>()) {
            let lane = SavedLane { cursor, taken, last: last.into(), late, ..SavedLane::start("a".to_owned()) };
            let lanes = vec![lane, SavedLane::start("b".to_owned())];
            let saved = Saved { count: Some((4, Accuracy::Exact)), ended: true, given: None, since_failure: Some(Seen::default()), lanes };
            prop_assert_eq!(Saved::open(&saved.seal().unwrap()).unwrap(), saved);
        }

        #[test]
        fn no_text_breaks_the_reader(text in "\\PC*") {
            let _ = Saved::<String>::open(&RecordsPosition(text));
        }
    }

    #[test]
    fn what_is_no_position_is_refused() {
        for text in
            ["", "garbage", "{}", r#"{"lanes":[]}"#, r#"{"lanes":[{"name":7}]}"#, r#"{"lanes":[{"x":1}]}"#]
        {
            let refused = Saved::<String>::open(&RecordsPosition(text.to_owned())).unwrap_err();
            assert_eq!(refused.code(), "invalid_cursor", "{text}");
        }
    }
}
