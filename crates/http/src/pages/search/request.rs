//! Parameters of the search page.

use fetchwell_core::fit::first_characters;
use serde_json::json;

use crate::pages::access::{parameter, parameters};

/// Maximum length of a query in characters, as for the tool `search`.
const MAX_QUERY_CHARS: usize = 1_000;

/// Ages that can be chosen, with their labels.
pub(super) const AGES: [(&str, &str); 5] = [
    ("24h", "Past 24 hours"),
    ("7d", "Past 7 days"),
    ("30d", "Past 30 days"),
    ("6m", "Past 6 months"),
    ("1y", "Past year"),
];

/// A search as its parameters describe it. Empty texts stand for parameters that are not given.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct SearchRequest {
    /// Words and operators.
    pub(super) q: String,
    /// Id of a connection.
    pub(super) account: String,
    /// Name of a stream.
    pub(super) stream: String,
    /// Key of a connector.
    pub(super) kind: String,
    /// Age of the oldest record, one of [`AGES`].
    pub(super) age: String,
    /// Cursor of a page after the first.
    pub(super) cursor: String,
}

impl SearchRequest {
    /// Reads the parameters of a request.
    pub(super) fn from_query(query: &str) -> Self {
        let value = |name: &str| parameter(query.as_bytes(), name).unwrap_or_default().trim().to_owned();
        let age = value("time");
        Self {
            q: first_characters(&value("q"), MAX_QUERY_CHARS).to_owned(),
            account: value("account"),
            stream: value("stream"),
            kind: value("kind"),
            age: if AGES.iter().any(|(known, _)| *known == age) { age } else { String::new() },
            cursor: value("cursor"),
        }
    }

    /// Returns true if nothing is searched for.
    pub(super) fn is_empty(&self) -> bool {
        *self == Self { cursor: self.cursor.clone(), ..Self::default() }
    }

    /// Returns the path of the page.
    pub(super) fn path(&self) -> String {
        let Self { q, account, stream, kind, age, cursor } = self;
        let pairs = [
            ("q", q),
            ("account", account),
            ("stream", stream),
            ("kind", kind),
            ("time", age),
            ("cursor", cursor),
        ];
        format!("/{}", parameters(&pairs.map(|(name, value)| (name, value.as_str()))))
    }

    /// Returns the path of the page with another cursor.
    pub(super) fn path_with(&self, cursor: &str) -> String {
        Self { cursor: cursor.to_owned(), ..self.clone() }.path()
    }

    /// Returns the text that a cursor is sealed for.
    pub(super) fn question(&self) -> String {
        let Self { q, account, stream, kind, age, cursor: _ } = self;
        json!(["page", q, account, stream, kind, age]).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_read_and_written() {
        let request = SearchRequest::from_query("q=+a%26b&account=cin_work&time=30d&kind=&cursor=c1");
        assert_eq!((request.q.as_str(), request.age.as_str()), ("a&b", "30d"));
        assert_eq!(request.path(), "/?q=a%26b&account=cin_work&time=30d&cursor=c1");
        assert_eq!(request.path_with(""), "/?q=a%26b&account=cin_work&time=30d");
        assert!(SearchRequest::from_query("cursor=x&time=lunch&other=1").is_empty());
        assert_eq!(SearchRequest::default().path(), "/");
    }
}
