//! Hits with an id of the source's own, which `fetch` returns as they were printed: from memory, or from the state that
//! servers share if another server printed the id.

use std::time::Duration;

use fetchwell_core::record::Hit;
use fetchwell_state::cursor::{SharedValue, SharedValues};
use fetchwell_state::redis::{IfExists, OwnerLimits, RedisError};
use futures_util::future::join_all;

use super::cache::shortened;
use super::toolbox::Toolbox;

/// Kind of the values in shared state.
const KIND: &str = "printed";

/// Time for which an id can be fetched.
const LIFETIME: Duration = Duration::from_secs(600);

/// Quota of the hits of one grant.
const LIMITS: OwnerLimits = OwnerLimits { max_bytes: 8 * 1024 * 1024, max_values: 20_000 };

impl Toolbox {
    /// Remembers hits by the ids that an answer prints. If they cannot be shared, only this server knows them.
    pub(crate) async fn remember_printed(&self, printed: Vec<(String, Hit)>) {
        if let Some(shared) = self.cursors.shared_values().filter(|_| !printed.is_empty()) {
            let owner = self.caller().unwrap_or_default();
            join_all(printed.iter().map(|(id, hit)| self.share_printed(shared, &owner, id, hit))).await;
        }
        for (id, hit) in printed {
            self.seen_ids.remember(&id, hit);
        }
    }

    async fn share_printed(&self, shared: SharedValues<'_>, owner: &str, id: &str, hit: &Hit) {
        let text = serde_json::to_string(&shortened(hit.clone())).unwrap_or_default();
        let value = SharedValue {
            kind: KIND,
            name: &self.printed_name(id),
            owner,
            text: &text,
            lifetime: LIFETIME,
            limits: LIMITS,
            if_exists: IfExists::Replace,
        };
        // The state counts and logs its failures.
        let _ = shared.put(value).await;
    }

    /// Returns the hit that was printed with an id to the same grant.
    ///
    /// # Errors
    ///
    /// The shared state cannot be read.
    pub(crate) async fn printed(&self, id: &str) -> Result<Option<Hit>, RedisError> {
        if let Some(hit) = self.seen_ids.get(id) {
            return Ok(Some(hit));
        }
        let Some(shared) = self.cursors.shared_values() else { return Ok(None) };
        let text = shared.get(KIND, &self.printed_name(id)).await?;
        Ok(text.and_then(|text| serde_json::from_str(&text).ok()))
    }

    /// Returns the name of a hit: of the same sources and the same grant.
    fn printed_name(&self, id: &str) -> String {
        format!("{}\0{id}", self.identity())
    }
}
