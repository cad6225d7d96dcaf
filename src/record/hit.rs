//! A search result.

use serde::{Deserialize, Serialize};

use super::{Excerpt, WebLink};
use crate::handle::RecordAddress;

/// One search result, with everything a reader of the list should see of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hit {
    /// What it can be fetched by.
    pub id: HitId,
    /// A readable title.
    pub title: String,
    /// A link a person can open, when the record has one.
    pub link: Option<WebLink>,
    /// Why it was found.
    pub excerpt: Excerpt,
    /// When it was written, or else emitted, as its source wrote it.
    pub time: Option<String>,
}

/// How a hit is addressed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum HitId {
    /// The source says which record it is.
    Record(RecordAddress),
    /// The source gave an id or link of its own and no record. It is passed on as it is.
    Opaque(String),
    /// The source gave nothing that could be fetched.
    Nameless,
}

/// The title of a record that has none of its own: connection label, stream and day.
#[must_use]
pub fn fallback_title(label: Option<&str>, stream: Option<&str>, time: Option<&str>) -> String {
    let day = time.map(|time| time.get(..10).unwrap_or(time));
    let parts: Vec<&str> =
        [label, stream, day].into_iter().flatten().filter(|part| !part.is_empty()).collect();
    if parts.is_empty() { "Untitled record".to_owned() } else { parts.join(" / ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_without_a_title_is_named_by_where_it_is() {
        let title = fallback_title(Some("Work mail"), Some("messages"), Some("2026-04-01T00:00:00Z"));
        assert_eq!(title, "Work mail / messages / 2026-04-01");
        assert_eq!(fallback_title(None, Some("messages"), None), "messages");
        assert_eq!(fallback_title(None, None, None), "Untitled record");
    }
}
