//! Authentication mode of a server: open to this machine, or authenticated callers.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use fetchwell_callers::{Authenticator, AuthenticatorSettings, GrantId};
use fetchwell_core::lru::{Lookups, LruCache, LruLimits};
use fetchwell_source::Sources;
use fetchwell_source::federation::CircuitReport;
use fetchwell_tools::{CallerSettings, CallerToolboxes, SharedToolbox};

use crate::public_url::PublicUrl;
use crate::server::connections::{MAX_UNSENT_OF_CALLER, UnsentBudget};

/// Maximum number of people with a budget of unsent bytes; the least recently used is evicted.
const MAX_PEOPLE: u64 = 10_000;

/// Authentication mode with the toolboxes.
#[derive(Debug, Clone)]
pub enum AuthMode {
    /// No authentication: all clients share one toolbox. Only programs on this machine can connect.
    Unauthenticated(SharedToolbox),
    /// Authenticated callers, each with their own toolbox.
    Authenticated(Arc<Callers>),
}

/// State of an authenticated server.
#[derive(Debug)]
pub struct Callers {
    authenticator: ArcSwap<Authenticator>,
    /// Toolboxes of the callers.
    pub(crate) toolboxes: CallerToolboxes,
    /// Budget of unsent bytes of each person.
    unsent: LruCache<GrantId, UnsentBudget>,
    /// URL at which callers reach the server.
    pub(crate) public_url: Option<PublicUrl>,
}

impl Callers {
    /// Creates the state with authentication settings and toolboxes.
    #[must_use]
    pub fn new(
        settings: AuthenticatorSettings,
        toolboxes: CallerToolboxes,
        public_url: Option<PublicUrl>,
    ) -> Self {
        Self {
            authenticator: ArcSwap::from_pointee(Authenticator::new(settings)),
            toolboxes,
            unsent: LruCache::new(LruLimits::new(MAX_PEOPLE)),
            public_url,
        }
    }

    /// Returns the budget of unsent bytes of a person.
    pub(crate) fn unsent_of(&self, person: GrantId) -> UnsentBudget {
        self.unsent.get_or_insert_with(person, || UnsentBudget::new(MAX_UNSENT_OF_CALLER))
    }

    /// Replaces the authentication settings and the toolboxes for all later calls.
    pub fn replace(&self, authenticator: AuthenticatorSettings, settings: CallerSettings) {
        // Toolboxes first: a caller admitted by the new settings gets a new toolbox.
        self.toolboxes.replace(settings);
        self.authenticator.store(Arc::new(self.authenticator.load().with_settings(authenticator)));
    }

    /// Returns the current settings of the toolboxes.
    #[must_use]
    pub fn settings(&self) -> Arc<CallerSettings> {
        self.toolboxes.settings()
    }

    /// Returns the current authentication.
    pub(crate) fn authenticator(&self) -> Arc<Authenticator> {
        self.authenticator.load_full()
    }
}

impl AuthMode {
    /// Returns the deadline of a call.
    pub(crate) fn call_deadline(&self) -> Duration {
        match self {
            Self::Unauthenticated(toolbox) => toolbox.now().call_deadline(),
            Self::Authenticated(callers) => callers.settings().call_deadline,
        }
    }

    /// Returns the state of the circuit breakers of all sources.
    #[must_use]
    pub fn circuits(&self) -> Vec<CircuitReport> {
        match self {
            Self::Unauthenticated(toolbox) => toolbox.now().source().shared().circuits(),
            Self::Authenticated(callers) => callers.toolboxes.circuits(),
        }
    }

    /// Returns the hits and misses of each cache of the toolboxes.
    pub(crate) fn cache_lookups(&self) -> Vec<(&'static str, Lookups)> {
        match self {
            Self::Unauthenticated(toolbox) => toolbox.now().lookups().to_vec(),
            Self::Authenticated(callers) => callers.toolboxes.lookups(),
        }
    }

    /// Returns the source that can be read without a caller, for health checks.
    pub(crate) fn everything(&self) -> Option<Sources> {
        match self {
            Self::Unauthenticated(toolbox) => Some(toolbox.now().source().shared().clone()),
            Self::Authenticated(callers) => callers.settings().sources.everything(),
        }
    }
}
