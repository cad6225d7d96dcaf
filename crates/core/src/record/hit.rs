//! A search result.

use serde::{Deserialize, Serialize};

use super::{Excerpt, HitExplanation, WebLink};
use crate::handle::RecordAddress;

/// One search result with the fields that a list shows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hit {
    /// Address or id by which the record is fetched.
    pub id: HitId,
    /// Readable title of the record.
    pub title: String,
    /// Link that a person can open, if the record has one.
    pub link: Option<WebLink>,
    /// URL of the record on its record server, which requires a bearer token. It is not stored with a position.
    #[serde(skip)]
    pub record_url: Option<String>,
    /// Passage that matches the query.
    pub excerpt: Excerpt,
    /// Time at which the record was written, or else emitted, as its source wrote it.
    pub time: Option<String>,
    /// Label of the record's connection, if the source gave it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// True if the record was found by its meaning alone and has no word of the query.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_meaning: bool,
    /// Number of near-copies of the record in the same connection, which follow later in the list.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub near_copies: u32,
    /// Share of the query's words in the record, weighed by their rarity, if it is known. A federation places the hit by it among
    /// those of other sources, so it is stored with a position.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coverage: Option<Coverage>,
    /// Reasons for its place, if the query asks for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explanation: Option<Box<HitExplanation>>,
    /// Further details of the match. They are not stored with a position.
    #[serde(skip)]
    pub evidence: Evidence,
}

impl Hit {
    /// Creates a hit with an id and a title, and nothing else.
    #[must_use]
    pub fn new(id: HitId, title: String) -> Self {
        Self {
            id,
            title,
            link: None,
            record_url: None,
            excerpt: Excerpt::default(),
            time: None,
            account: None,
            by_meaning: false,
            near_copies: 0,
            coverage: None,
            explanation: None,
            evidence: Evidence::default(),
        }
    }

    /// Returns the day on which the record was written, as `2026-04-01`, if its time begins with one.
    #[must_use]
    pub fn day(&self) -> Option<&str> {
        let day = self.time.as_deref()?.trim_start().get(..10)?;
        let is_day = day.bytes().enumerate().all(|(at, byte)| match at {
            4 | 7 => byte == b'-',
            _ => byte.is_ascii_digit(),
        });
        is_day.then_some(day)
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature of serde")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// Details of a match that a list does not show.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Evidence {
    /// Time at which the record was emitted, as its source wrote it.
    pub emitted_at: Option<String>,
    /// The fields that contain words of the query, in the order of the record.
    pub matched_fields: Vec<String>,
    /// The field that the excerpt is taken from.
    pub excerpt_field: Option<String>,
    /// The title's field and its match, if only the title matches. The excerpt then has no match.
    pub title_match: Option<(String, Excerpt)>,
    /// Score of the match. Higher is better; only hits of one source are comparable.
    pub score: Option<Score>,
}

/// A score, which is a finite number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Score(u32);

impl Score {
    /// Returns a score, or `None` for a number that is not finite.
    #[must_use]
    pub fn new(score: f32) -> Option<Self> {
        score.is_finite().then(|| Self(score.to_bits()))
    }

    /// Returns the score as a number.
    #[must_use]
    pub fn value(self) -> f32 {
        f32::from_bits(self.0)
    }
}

/// A share of the words of a query, by their weights: 0 to 100 percent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "u8")]
pub struct Coverage(u8);

impl Coverage {
    /// All words of the query.
    pub const FULL: Self = Self(100);

    /// Returns the share that a part of a weight is, or `None` if the whole weighs nothing.
    #[must_use]
    pub fn new(part: u32, whole: u32) -> Option<Self> {
        let percent = (u64::from(part.min(whole)) * 100).checked_div(whole.into())?;
        u8::try_from(percent).ok().map(Self)
    }

    /// Returns a share from 0 to 1; others are taken for the nearer of the two.
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the percentage is between 0 and 100"
    )]
    pub fn from_share(share: f32) -> Self {
        Self((share * 100.0).round().clamp(0.0, 100.0) as u8)
    }

    /// Returns the share in percent, at most 100.
    #[must_use]
    pub fn percent(self) -> u8 {
        self.0
    }
}

impl From<u8> for Coverage {
    fn from(percent: u8) -> Self {
        Self(percent.min(100))
    }
}

/// The address or id of a hit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum HitId {
    /// Address of the record, if the source gave it.
    Record(RecordAddress),
    /// An id or link of the source, which gave no record address. It is returned unchanged.
    Opaque(String),
    /// The source gave nothing that could be fetched.
    Nameless,
}

/// Returns the title of a record without one of its own: connection label, stream and day.
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
    fn a_hit_has_the_day_that_its_time_begins_with() {
        for (time, expect) in [
            (Some("2026-04-01T10:00:00+02:00"), Some("2026-04-01")),
            (Some(" 2026-04-01"), Some("2026-04-01")),
            (Some("2026/04/01"), None),
            (Some("Wed, 1 Apr 2026"), None),
            (Some("2026-04"), None),
            (Some("２０２６-04-01"), None),
            (None, None),
        ] {
            let hit = Hit { time: time.map(str::to_owned), ..Hit::new(HitId::Nameless, String::new()) };
            assert_eq!(hit.day(), expect, "{time:?}");
        }
    }

    #[test]
    fn coverage_is_at_most_the_whole() {
        for (part, whole, expect) in [
            (0, 3, Some(0)),
            (2, 3, Some(66)),
            (3, 3, Some(100)),
            (4, 3, Some(100)),
            (u32::MAX, u32::MAX, Some(100)),
            (0, 0, None),
        ] {
            assert_eq!(Coverage::new(part, whole).map(Coverage::percent), expect, "{part} of {whole}");
        }
        assert_eq!(serde_json::from_str::<Coverage>("255").unwrap(), Coverage::FULL);
    }

    #[test]
    fn a_record_without_a_title_gets_one_from_its_address() {
        let title = fallback_title(Some("Work mail"), Some("messages"), Some("2026-04-01T00:00:00Z"));
        assert_eq!(title, "Work mail / messages / 2026-04-01");
        assert_eq!(fallback_title(None, Some("messages"), None), "messages");
        assert_eq!(fallback_title(None, None, None), "Untitled record");
    }
}
