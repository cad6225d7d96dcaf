//! MCP servers that callers sign in to, as long as their settings do not change: sessions, and limits of sign-ins.
//!
//! A reload of the configuration creates the sign-ins anew. Servers with unchanged settings are taken over from the earlier
//! ones, so that their sessions stay open.

use std::sync::{Arc, Weak};
use std::time::Duration;

use fetchwell_callers::GrantId;
use fetchwell_core::lru::{LruCache, LruLimits};
use fetchwell_source::SourceError;
use fetchwell_upstream::{CallerServers, CallerSessions};
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::app::failure::Failure;
use crate::config::SourceSettings;

/// Maximum number of sign-ins at a time that send requests to one server, of all callers and of one person.
const MAX_AT_ONCE: usize = 16;
const MAX_OF_PERSON: usize = 2;

/// Maximum number of people with a limit of their own at one server; the least recently used is evicted.
const MAX_PEOPLE: u64 = 10_000;

/// Timeout of waiting for a permit.
const PERMIT_WITHIN: Duration = Duration::from_secs(5);

/// Servers that are open. Clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct OpenServers {
    sessions: CallerSessions,
    servers: Arc<Mutex<Vec<Weak<OpenServer>>>>,
}

/// Server with the settings that it was opened with. Its sessions end when the last configuration with these settings does.
#[derive(Debug)]
pub(super) struct OpenServer {
    settings: SourceSettings,
    pub(super) servers: CallerServers,
    at_once: Arc<Semaphore>,
    at_once_of: LruCache<GrantId, Arc<Semaphore>>,
}

/// Permits of a sign-in that sends requests.
pub(super) struct SignInPermit {
    _of_person: OwnedSemaphorePermit,
    _of_all: OwnedSemaphorePermit,
}

impl OpenServers {
    /// Returns the open server with these settings, or opens one.
    ///
    /// # Errors
    ///
    /// `create` failed.
    pub(super) fn open(
        &self,
        settings: &SourceSettings,
        create: impl FnOnce(CallerSessions) -> Result<CallerServers, Failure>,
    ) -> Result<Arc<OpenServer>, Failure> {
        let mut open = self.servers.lock();
        let known = open.iter().filter_map(Weak::upgrade).find(|server| server.settings == *settings);
        if let Some(known) = known {
            return Ok(known);
        }
        let new = Arc::new(OpenServer {
            settings: settings.clone(),
            servers: create(self.sessions.clone())?,
            at_once: Arc::new(Semaphore::new(MAX_AT_ONCE)),
            at_once_of: LruCache::new(LruLimits::new(MAX_PEOPLE)),
        });
        open.retain(|server| server.strong_count() > 0);
        open.push(Arc::downgrade(&new));
        Ok(new)
    }
}

impl OpenServer {
    /// Waits until a person may send requests of a sign-in. One person cannot use the permits of all.
    ///
    /// # Errors
    ///
    /// The timeout has passed.
    pub(super) async fn permit(&self, person: GrantId) -> Result<SignInPermit, SourceError> {
        let new = || Arc::new(Semaphore::new(MAX_OF_PERSON));
        let of_person = self.at_once_of.get_or_insert_with(person, new);
        let permits = timeout(PERMIT_WITHIN, async {
            let of_person = of_person.acquire_owned().await?;
            Ok::<_, tokio::sync::AcquireError>((of_person, Arc::clone(&self.at_once).acquire_owned().await?))
        });
        match permits.await {
            Ok(Ok((of_person, of_all))) => Ok(SignInPermit { _of_person: of_person, _of_all: of_all }),
            Ok(Err(_)) | Err(_) => Err(SourceError::NoPermit),
        }
    }
}

impl Drop for OpenServer {
    fn drop(&mut self) {
        self.servers.end_all();
    }
}
