//! Readers of links in the state that servers share: a link that one server issued opens on another, with the latest
//! token of its grant.

use std::time::{Duration, Instant};

use arc_swap::ArcSwapOption;
use fetchwell_callers::{GrantId, MAX_LINK_LIFE, Reader, RecordPages};
use fetchwell_core::handle::RecordAddress;
use fetchwell_state::StateError;
use fetchwell_state::cursor::{Cursors, SharedValue};
use fetchwell_state::redis::{IfExists, OwnerLimits};
use secrecy::{ExposeSecret, SecretString};

/// Kind of the values.
const KIND: &str = "reader";

/// Time after which an unchanged token is stored again, so that it stays as long as links of the grant open.
const STORE_INTERVAL: Duration = Duration::from_secs(10 * 60);

/// Quota of a grant, which has one reader.
const LIMITS: OwnerLimits = OwnerLimits { max_bytes: 64 * 1024, max_values: 1 };

/// Token of a grant that was stored last.
#[derive(Debug, Default)]
pub(super) struct StoredToken(ArcSwapOption<(SecretString, Instant)>);

impl StoredToken {
    fn is_current(&self, token: &SecretString) -> bool {
        self.0.load().as_ref().is_some_and(|stored| {
            stored.0.expose_secret() == token.expose_secret() && stored.1.elapsed() < STORE_INTERVAL
        })
    }

    /// Stores the latest token of a reader with links. A failure is counted by the state, and a later call tries again.
    pub(super) async fn store(&self, cursors: &Cursors, pages: Option<&RecordPages>, reader: &Reader) {
        let (Some(shared), Some(pages)) = (cursors.shared_values(), pages) else { return };
        let Some(token) = reader.token.latest().filter(|token| !self.is_current(token)) else { return };
        let Some(name) = pages.reader_name(reader.grant).filter(|_| pages.has_links(reader)) else { return };
        let value = SharedValue {
            kind: KIND,
            name: &name,
            owner: &reader.grant.to_string(),
            text: &reader.to_text(),
            lifetime: MAX_LINK_LIFE,
            limits: LIMITS,
            if_exists: IfExists::Replace,
        };
        if shared.put(value).await.is_ok() {
            self.0.store(Some((token, Instant::now()).into()));
        }
    }
}

/// Returns the reader that a link key for a record was issued to, by this server or another that shares its state.
///
/// # Errors
///
/// The shared state cannot be read, and this server did not issue the link.
pub(super) async fn link_reader(
    cursors: &Cursors,
    pages: &RecordPages,
    key: &str,
    record: &RecordAddress,
) -> Result<Option<Reader>, StateError> {
    let known = pages.reader_of(key, record);
    let Some((shared, name)) = cursors.shared_values().zip(RecordPages::reader_name_in(key)) else {
        return Ok(known);
    };
    match shared.get(KIND, &name).await {
        Ok(text) => {
            let reader = text.and_then(|text| Reader::from_text(&text));
            Ok(reader.filter(|reader| pages.is_link_of(key, record, reader)).or(known))
        }
        Err(_counted) if known.is_some() => Ok(known),
        Err(error) => Err(error.into()),
    }
}

/// Returns the reader with the latest token of a grant from the shared state, if there is one.
///
/// # Errors
///
/// The shared state cannot be read.
pub(super) async fn latest_reader(
    cursors: &Cursors,
    pages: &RecordPages,
    grant: GrantId,
) -> Result<Option<Reader>, StateError> {
    let Some((shared, name)) = cursors.shared_values().zip(pages.reader_name(grant)) else { return Ok(None) };
    Ok(shared.get(KIND, &name).await?.and_then(|text| Reader::from_text(&text)))
}
