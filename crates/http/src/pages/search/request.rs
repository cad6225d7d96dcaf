//! Parameters of the search page.

use fetchwell_core::fit::first_characters;
use serde_json::json;

use crate::pages::access::{parameter, parameters};

/// Maximum length of a query in characters, as for the tool `search`.
const MAX_QUERY_CHARS: usize = 1_000;

/// Value of the parameter `explain` that asks for explanations.
const EXPLAIN: &str = "1";

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
    /// True if the results are explained.
    pub(super) explains: bool,
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
            explains: value("explain") == EXPLAIN,
        }
    }

    /// Returns true if nothing is searched for.
    pub(super) fn is_empty(&self) -> bool {
        *self == Self { cursor: self.cursor.clone(), explains: self.explains, ..Self::default() }
    }

    /// Returns the path of the page.
    pub(super) fn path(&self) -> String {
        let Self { q, account, stream, kind, age, cursor, explains } = self;
        let explain = if *explains { EXPLAIN } else { "" };
        let pairs = [
            ("q", q),
            ("account", account),
            ("stream", stream),
            ("kind", kind),
            ("time", age),
            ("cursor", cursor),
        ];
        let pairs = pairs.iter().map(|(name, value)| (*name, value.as_str())).chain([("explain", explain)]);
        format!("/{}", parameters(&pairs.collect::<Vec<_>>()))
    }

    /// Returns the path of the page with another cursor.
    pub(super) fn path_with(&self, cursor: &str) -> String {
        Self { cursor: cursor.to_owned(), ..self.clone() }.path()
    }

    /// Returns the text that a cursor is sealed for.
    pub(super) fn question(&self) -> String {
        let Self { q, account, stream, kind, age, cursor: _, explains: _ } = self;
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
        let explained = SearchRequest { explains: true, ..request.clone() };
        assert_eq!(explained.path_with(""), "/?q=a%26b&account=cin_work&time=30d&explain=1");
        assert_eq!(SearchRequest::from_query("q=a&explain=1").path(), "/?q=a&explain=1");
        assert_eq!(explained.question(), request.question(), "cursors are valid with and without it");
        assert!(SearchRequest::from_query("cursor=x&time=lunch&other=1&explain=1").is_empty());
        assert_eq!(SearchRequest::default().path(), "/");
    }
}
