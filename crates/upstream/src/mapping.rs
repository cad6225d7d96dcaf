//! Mapping of a server's tools: which one searches, which one fetches, and where their answers have what.

use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::line_pattern::LinePattern;

/// Tools of a server that are named in the configuration or by a preset. What is absent is recognized.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Mapping {
    /// The tool that searches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub search: Option<SearchMapping>,
    /// The tool that fetches one record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fetch: Option<FetchMapping>,
    /// Name of the stream of the records; `items` if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream: Option<String>,
}

/// The tool that searches. Arguments are named as in its input schema; pointers are JSON Pointers (RFC 6901): `results` and
/// `next` into the answer, the others into one result.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct SearchMapping {
    /// Name of the tool.
    pub tool: String,
    /// Argument for the words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub query: Option<String>,
    /// Argument for the maximum number of results.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<String>,
    /// Argument for the position of the next page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// Argument for the number of the page, from 1, of a tool without positions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub page: Option<String>,
    /// Position of the next page in the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<Pointer>,
    /// Further arguments, sent unchanged.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub arguments: Map<String, Value>,
    /// The list of results.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub results: Option<Pointer>,
    /// The id by which a result is fetched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<Pointer>,
    /// Title of the record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<Pointer>,
    /// The text or a passage of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<Pointer>,
    /// The link for a person.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<Pointer>,
    /// The time at which the record was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub date: Option<Pointer>,
    /// Form of a line with a result, for a tool that answers with text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<LinePattern>,
}

/// The tool that fetches one record. Pointers are JSON Pointers into its answer.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct FetchMapping {
    /// Name of the tool.
    pub tool: String,
    /// Argument for the id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Further arguments, sent unchanged.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub arguments: Map<String, Value>,
    /// Title of the record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<Pointer>,
    /// Text of the record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<Pointer>,
    /// The link for a person.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<Pointer>,
    /// The time at which the record was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub date: Option<Pointer>,
}

impl Mapping {
    /// Returns this mapping, completed by another one where it has nothing.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            search: self.search.or(other.search),
            fetch: self.fetch.or(other.fetch),
            stream: self.stream.or(other.stream),
        }
    }
}

/// JSON Pointer (RFC 6901): empty for the whole value, or `/name/0/name`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Pointer(String);

/// Error of a text that is no JSON Pointer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a JSON Pointer is empty or begins with `/`, such as `/data/results`; `~` is followed by 0 or 1")]
pub struct InvalidPointer;

impl Pointer {
    /// Returns the name of the field, if the place is a field of the whole value.
    pub(crate) fn field(&self) -> Option<&str> {
        self.0.strip_prefix('/').filter(|name| !name.contains(['/', '~']))
    }

    /// Returns the value at this place.
    #[must_use]
    pub fn value_in<'a>(&self, value: &'a Value) -> Option<&'a Value> {
        value.pointer(&self.0)
    }
}

impl FromStr for Pointer {
    type Err = InvalidPointer;

    fn from_str(text: &str) -> Result<Self, InvalidPointer> {
        let escapes = text.split('~').skip(1);
        let is_escaped = escapes.into_iter().all(|rest| rest.starts_with(['0', '1']));
        if (text.is_empty() || text.starts_with('/')) && is_escaped {
            Ok(Self(text.to_owned()))
        } else {
            Err(InvalidPointer)
        }
    }
}

impl TryFrom<String> for Pointer {
    type Error = InvalidPointer;

    fn try_from(text: String) -> Result<Self, InvalidPointer> {
        text.parse()
    }
}

impl From<Pointer> for String {
    fn from(pointer: Pointer) -> Self {
        pointer.0
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn pointers_are_checked_when_they_are_read() {
        let value = json!({"a": [{"b/c": 1, "~": 2}]});
        for (text, expect) in [
            ("", Some(value.clone())),
            ("/a/0/b~1c", Some(json!(1))),
            ("/a/0/~0", Some(json!(2))),
            ("/a/1", None),
        ] {
            assert_eq!(text.parse::<Pointer>().unwrap().value_in(&value).cloned(), expect, "{text}");
        }
        for text in ["a", "a/b", "/a~", "/a~2"] {
            assert_eq!(text.parse::<Pointer>(), Err(InvalidPointer), "{text}");
        }
    }
}
