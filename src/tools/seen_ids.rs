//! Ids of a source's own that were printed: they name no record, and `fetch` answers them all the same.

use std::time::Duration;

use moka::policy::EvictionPolicy;
use moka::sync::Cache;

use crate::fit::clip;
use crate::handle::RecordAddress;
use crate::record::{Hit, HitId};

/// The longest id of a source's own that is printed, in bytes.
pub(super) const OPAQUE_ID: usize = 1_024;

/// The most memory that ids of a source's own take, in bytes.
const SEEN_BYTES: u64 = 8 * 1024 * 1024;

/// What an entry of a cache takes beside its texts, in bytes.
const ENTRY_BYTES: usize = 512;

/// A title that is kept for later, in bytes of JSON: what `fetch` shows of it.
const KEPT_TITLE: usize = 300;

/// Ids of a source's own that were printed, with what is known of them, so that `fetch` can answer them.
#[derive(Debug, Clone)]
pub(super) struct SeenIds(Cache<String, Hit>);

impl Default for SeenIds {
    fn default() -> Self {
        let minutes = Duration::from_secs(600);
        let weight = |id: &String, hit: &Hit| {
            u32::try_from(id.len() + hit.kept_bytes() + ENTRY_BYTES).unwrap_or(u32::MAX)
        };
        let ids = Cache::builder().max_capacity(SEEN_BYTES).weigher(weight).time_to_live(minutes);
        // An id that was just printed is the one that will be fetched, so the oldest go first.
        Self(ids.eviction_policy(EvictionPolicy::lru()).build())
    }
}

impl SeenIds {
    pub(super) fn remember(&self, id: &str, hit: Hit) {
        self.0.insert(id.to_owned(), hit.shortened());
    }

    pub(super) fn get(&self, id: &str) -> Option<Hit> {
        self.0.get(id)
    }
}

impl Hit {
    /// The same without what no answer would show of it, to be kept until it is asked for.
    pub(super) fn shortened(mut self) -> Self {
        self.title = clip(&one_line(&self.title), KEPT_TITLE);
        if matches!(&self.id, HitId::Opaque(id) if id.len() > OPAQUE_ID) {
            self.id = HitId::Nameless;
        }
        self
    }

    /// Bytes of its texts.
    fn kept_bytes(&self) -> usize {
        let id = match &self.id {
            HitId::Record(RecordAddress { connection, stream, record }) => {
                let connection = connection.as_ref().map_or(0, |connection| connection.as_str().len());
                connection + stream.as_str().len() + record.as_str().len()
            }
            HitId::Opaque(id) => id.len(),
            HitId::Nameless => 0,
        };
        let link = self.link.as_ref().map_or(0, |link| link.as_str().len());
        id + link + self.title.len() + self.excerpt.text().len()
    }
}

/// A title has one line, whatever the record says.
pub(super) fn one_line(title: &str) -> String {
    title
        .split(|c: char| c.is_whitespace() || c.is_control())
        .filter(|word| !word.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Excerpt;

    fn hit(id: HitId, title: &str) -> Hit {
        Hit {
            id,
            title: title.to_owned(),
            link: None,
            excerpt: Excerpt::default(),
            time: None,
            evidence: crate::record::Evidence::default(),
        }
    }

    #[test]
    fn an_id_that_was_just_printed_is_known_however_many_there_are() {
        let seen = SeenIds::default();
        for number in 0..3_000 {
            let id = format!("doc {number}");
            seen.remember(&id, hit(HitId::Opaque(id.clone()), &"x".repeat(5_000)));
            seen.0.run_pending_tasks();
            assert!(seen.get(&id).is_some(), "{id}");
        }
        // Old ones are still there: a long title does not push them out.
        assert!(seen.get("doc 0").is_some());
        for number in 0..30_000 {
            seen.remember(&format!("other {number}"), hit(HitId::Nameless, ""));
        }
        seen.0.run_pending_tasks();
        assert!(seen.0.weighted_size() <= SEEN_BYTES);
        assert!(seen.get("other 29999").is_some());
    }
}
