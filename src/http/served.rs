//! Who is served: everybody who reaches this machine, or callers who show a token.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use moka::policy::EvictionPolicy;
use moka::sync::Cache;

use super::PublicUrl;
use super::connections::{MAX_UNSENT_OF_CALLER, UnsentBudget};
use crate::access::{Access, AccessSettings, GrantId};
use crate::source::Source;
use crate::source::federation::CircuitReport;
use crate::tools::{Grants, Live, Terms};

/// People with a budget of unsent bytes at a time; the least recently used is evicted.
const MAX_PEOPLE: u64 = 10_000;

/// Who is served, and with what.
#[derive(Debug, Clone)]
pub enum Served {
    /// Everybody, with the same tools. Only programs of this machine reach them.
    Everybody(Live),
    /// Callers who show a token, each with their own.
    Callers(Arc<Callers>),
}

/// Callers who show a token.
#[derive(Debug)]
pub struct Callers {
    access: ArcSwap<Access>,
    /// Their tools.
    pub(super) grants: Grants,
    /// The unsent bytes of each person.
    unsent: Cache<GrantId, UnsentBudget>,
    /// Where this server is, as callers see it.
    pub(super) public_url: Option<PublicUrl>,
}

impl Callers {
    /// Lets in whom `access` says, with these tools.
    #[must_use]
    pub fn new(access: AccessSettings, grants: Grants, public_url: Option<PublicUrl>) -> Self {
        let unsent = Cache::builder().max_capacity(MAX_PEOPLE).eviction_policy(EvictionPolicy::lru()).build();
        Self { access: ArcSwap::from_pointee(Access::new(access)), grants, unsent, public_url }
    }

    /// Returns the budget of unsent bytes of a person.
    pub(super) fn unsent_of(&self, person: GrantId) -> UnsentBudget {
        self.unsent.get_with(person, || UnsentBudget::new(MAX_UNSENT_OF_CALLER))
    }

    /// Other rules and other tools, for the calls that come from now on.
    pub fn replace(&self, access: AccessSettings, terms: Terms) {
        // Whoever is let in by the new rules finds the new tools.
        self.grants.replace(terms);
        self.access.store(Arc::new(self.access.load().succeeded_by(access)));
    }

    /// What holds for their tools now.
    #[must_use]
    pub fn terms(&self) -> Arc<Terms> {
        self.grants.terms()
    }

    /// The rules of now.
    pub(super) fn access(&self) -> Arc<Access> {
        self.access.load_full()
    }
}

impl Served {
    /// How long a whole call may take.
    pub(super) fn call_deadline(&self) -> Duration {
        match self {
            Self::Everybody(live) => live.now().call_deadline(),
            Self::Callers(callers) => callers.terms().call_deadline,
        }
    }

    /// How sources are doing.
    #[must_use]
    pub fn circuits(&self) -> Vec<CircuitReport> {
        match self {
            Self::Everybody(live) => live.now().asked_source().circuits(),
            Self::Callers(callers) => callers.grants.circuits(),
        }
    }

    /// All that can be asked without a caller: what the health of the server is about.
    pub(super) fn everything(&self) -> Option<Arc<dyn Source>> {
        match self {
            Self::Everybody(live) => Some(Arc::clone(live.now().asked_source())),
            Self::Callers(callers) => callers.terms().sources.everything(),
        }
    }
}
