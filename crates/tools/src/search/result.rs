//! A hit as an answer shows it, within limits for its title and link.

use fetchwell_core::fit::clip_line;
use fetchwell_core::handle::Handle;
use fetchwell_core::record::{Hit, HitId};
use serde::Serialize;

use crate::answer::json_of;
use crate::cache::MAX_OPAQUE_ID_BYTES;
use crate::profile::Profile;
use crate::resource::record_uri;

/// Result of a search.
#[derive(Debug, Clone, Serialize)]
pub(super) struct SearchResult {
    pub(super) id: String,
    pub(super) title: String,
    /// `None` in the profile `standard` for a record without a link.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) url: Option<String>,
    /// Day on which the record was written. `None` in the profile `openai`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) date: Option<String>,
    /// `meaning` for a record without a word of the query. `None` in the profile `openai`.
    #[serde(rename = "match", skip_serializing_if = "Option::is_none")]
    pub(super) found_by: Option<&'static str>,
    /// Number of near-copies, which follow on later pages. `None` in the profile `openai`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) copies: Option<u32>,
    pub(super) text: String,
}

/// Limits of a result.
#[derive(Debug, Clone, Copy)]
pub(super) struct ResultLimits {
    /// Bytes that it may take without its excerpt.
    pub(super) room: usize,
    /// Maximum length of its title, in bytes of JSON.
    pub(super) title: usize,
    /// Maximum length of its link in bytes. A longer link is left out; `fetch` has it.
    pub(super) link: usize,
}

impl SearchResult {
    /// Returns a hit without its excerpt, or `None` if it could not be fetched. A handle is never shortened. If it takes nearly
    /// all the room, the link is removed or, in the profile `openai`, replaced by a shorter one, and the title truncated.
    pub(super) fn from_hit(hit: &Hit, profile: Profile, limits: ResultLimits) -> Option<Self> {
        let is_standard = profile == Profile::Standard;
        let id = fetchable_id(hit)?;
        let link = hit.link.as_ref().map(|link| link.as_str()).filter(|link| link.len() <= limits.link);
        let mut urls: Vec<String> = link.map(str::to_owned).into_iter().collect();
        if !is_standard {
            // ChatGPT expects a `url` in every result, and cites only what has one.
            urls.extend(hit.record_url.clone());
            urls.push(record_uri(&id));
        }
        let mut urls = urls.into_iter();
        let mut result = Self {
            id,
            title: String::new(),
            url: urls.next(),
            date: hit.day().filter(|_| is_standard).map(str::to_owned),
            found_by: (is_standard && hit.by_meaning).then_some("meaning"),
            copies: Some(hit.near_copies).filter(|copies| is_standard && *copies > 0),
            text: String::new(),
        };
        // One byte for the comma.
        let left_of = |result: &Self| limits.room.checked_sub(result.bare_len().saturating_add(1));
        while left_of(&result).is_none() && result.url.is_some() {
            match urls.next() {
                Some(shorter) => result.url = Some(shorter),
                None if is_standard => result.url = None,
                None => break,
            }
        }
        let left = left_of(&result).unwrap_or(0);
        result.title = clip_line(&hit.title, limits.title.min(left));
        Some(result)
    }

    /// Returns the size of the result without its excerpt.
    pub(super) fn bare_len(&self) -> usize {
        json_of(self).map_or(usize::MAX, |json| json.len())
    }
}

/// Returns the id by which a hit can be fetched: its handle, or an id of the source's own that is no handle.
pub(super) fn fetchable_id(hit: &Hit) -> Option<String> {
    match &hit.id {
        HitId::Record(address) => Handle::mint(address).map(|handle| handle.to_string()),
        HitId::Opaque(id) => {
            (id.len() <= MAX_OPAQUE_ID_BYTES && id.parse::<Handle>().is_err()).then(|| id.clone())
        }
        HitId::Nameless => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fetchwell_core::handle::RecordAddress;

    fn hit(id: HitId, title: &str, link: Option<&str>) -> Hit {
        let link = link.map(|link| link.parse().unwrap());
        Hit { link, ..Hit::new(id, title.to_owned()) }
    }

    #[test]
    fn a_long_handle_displaces_the_link_and_the_title() {
        let record = RecordAddress {
            connection: Some("c".parse().unwrap()),
            stream: "s".parse().unwrap(),
            record: "k".repeat(700).parse().unwrap(),
        };
        let link = format!("https://example.com/{}", "a".repeat(990));
        let hit = hit(HitId::Record(record), "Title", Some(&link));
        let shown = |profile, room| {
            let limits = ResultLimits { room, title: 120, link: usize::MAX };
            let result = SearchResult::from_hit(&hit, profile, limits).unwrap();
            assert!(room < 800 || result.bare_len() < room, "{room}");
            (result.title, result.url)
        };
        let resource = format!("pdpp://record/c/s:{}", "k".repeat(700));
        for (profile, without, minimal) in
            [(Profile::Standard, None, 735), (Profile::OpenAi, Some(resource), 1_462)]
        {
            assert_eq!(shown(profile, 2_000), ("Title".to_owned(), Some(link.clone())));
            assert_eq!(shown(profile, 1_700), ("Title".to_owned(), without.clone()));
            assert_eq!(shown(profile, minimal), (String::new(), without));
        }
    }
}
