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
    /// What else the source says of the match. It is not kept with a position.
    #[serde(skip)]
    pub evidence: Evidence,
}

/// What a source says of a match, beside what a reader of the list sees.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Evidence {
    /// When the record was emitted, as its source wrote it.
    pub emitted_at: Option<String>,
    /// The fields with words of the query, in the order of the record.
    pub matched_fields: Vec<String>,
    /// The field that the excerpt is from.
    pub excerpt_field: Option<String>,
    /// The field of the title and its match, when no other text of the record has one: the excerpt has none then.
    pub title_match: Option<(String, Excerpt)>,
    /// How well it matches; higher is better, among the hits of one source.
    pub score: Option<Score>,
}

/// A score, which is a finite number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Score(u32);

impl Score {
    /// Returns a score; `None` for a number that is not finite.
    #[must_use]
    pub fn new(score: f32) -> Option<Self> {
        score.is_finite().then(|| Self(score.to_bits()))
    }

    /// The number.
    #[must_use]
    pub fn value(self) -> f32 {
        f32::from_bits(self.0)
    }
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
