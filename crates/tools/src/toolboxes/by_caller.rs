//! The toolbox of each grant.
//!
//! A toolbox holds everything that a call remembers: schemas, previews, texts, ids, circuits and positions of lists. No
//! two grants share one, so an answer never contains data that another caller read. Toolboxes of active grants are
//! cached; an evicted one is created again by the next call. The cache is here and not in `callers`, which knows no tool.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use fetchwell_callers::{
    AdmissionError, AuthenticatedCaller, CallContext, CallLimiter, Caller, GrantId, GrantToken, GrantTokens,
    MAX_LINK_LIFE, Reader, RecordPages,
};
use fetchwell_core::fit::Protection;
use fetchwell_core::handle::RecordAddress;
use fetchwell_core::lru::Lookups;
use fetchwell_source::Sources;
use fetchwell_source::documents::Uuid;
use fetchwell_source::federation::CircuitReport;
use fetchwell_state::StateError;
use fetchwell_state::cursor::Cursors;
use moka::Entry;
use moka::ops::compute::{CompResult, Op};
use moka::policy::EvictionPolicy;
use moka::sync::Cache;
use tokio::sync::OwnedSemaphorePermit;

use super::link_readers::{StoredToken, latest_reader, link_reader};
use super::sign_ins::SourceSignIns;
use crate::Toolbox;

/// Maximum number of toolboxes; the least recently used is evicted.
const MAX_TOOLBOXES: u64 = 1_000;

/// Time after which an unused toolbox is evicted.
const MAX_IDLE: Duration = Duration::from_secs(30 * 60);

/// The sources that each caller may read.
pub trait CallerSources: Send + Sync + fmt::Debug {
    /// Returns the sources of a caller as one, or `None` if the caller may read none. Sources that are read with the
    /// caller's own token take it from `token`, the latest of the grant.
    fn granted(&self, to: &Caller, token: &GrantToken) -> Option<Sources>;

    /// Returns the sources that can be read without a caller as one, for health checks. Returns `None` if all of them
    /// are read with tokens of callers.
    fn everything(&self) -> Option<Sources>;

    /// Returns the sign-ins of callers at the servers of sources, if callers sign in to any.
    fn sign_ins(&self) -> Option<Arc<dyn SourceSignIns>> {
        None
    }
}

/// Settings of all toolboxes.
#[derive(Debug, Clone)]
pub struct CallerSettings {
    /// Sources of each caller.
    pub sources: Arc<dyn CallerSources>,
    /// Deadline of a whole call.
    pub call_deadline: Duration,
    /// Limits of answers.
    pub protection: Arc<Protection>,
    /// Record pages, if the server has any.
    pub pages: Option<RecordPages>,
    /// Maximum number of concurrent calls of one person.
    pub calls_at_once: usize,
}

/// The toolboxes of all callers, by grant.
#[derive(Debug)]
pub struct CallerToolboxes {
    settings: ArcSwap<CallerSettings>,
    cursors: Arc<Cursors>,
    states: Cache<GrantId, Arc<CallerState>>,
    /// Latest token of each grant, kept as long as links of the grant open. Outlives the entry in `states`, so links
    /// and sessions keep working after it is evicted.
    tokens: GrantTokens,
    limiter: CallLimiter,
}

/// State of one grant.
#[derive(Debug)]
struct CallerState {
    /// Settings that the toolbox was created with.
    settings: Arc<CallerSettings>,
    toolbox: Arc<Toolbox>,
    reader: Reader,
    /// Token of the reader in the state that servers share.
    stored: StoredToken,
}

/// The toolbox of a grant outside of calls. It reads nothing: only a call has the context that a read needs.
#[derive(Debug, Clone)]
pub struct GrantToolbox(Arc<Toolbox>);

impl GrantToolbox {
    /// Returns the toolbox for one call.
    #[must_use]
    pub fn for_call(&self, context: CallContext) -> Toolbox {
        self.0.for_call(context)
    }
}

/// A caller's toolbox, with the permit for one call.
#[derive(Debug)]
pub struct Permit {
    /// Toolbox of the caller's grant.
    pub toolbox: GrantToolbox,
    /// Concurrency permit, to be held until the response is sent.
    pub permit: OwnedSemaphorePermit,
    /// Id of the person who has the grant.
    pub person: GrantId,
}

impl CallerToolboxes {
    /// Creates an empty cache of toolboxes with these settings.
    #[must_use]
    pub fn new(settings: CallerSettings, cursors: Arc<Cursors>) -> Self {
        let states = Cache::builder().max_capacity(MAX_TOOLBOXES).time_to_idle(MAX_IDLE);
        Self {
            settings: ArcSwap::from_pointee(settings),
            cursors,
            states: states.eviction_policy(EvictionPolicy::lru()).build(),
            tokens: GrantTokens::new(MAX_LINK_LIFE),
            limiter: CallLimiter::new(),
        }
    }

    /// Returns the current settings.
    #[must_use]
    pub fn settings(&self) -> Arc<CallerSettings> {
        self.settings.load_full()
    }

    /// Returns the cursors of all callers.
    #[must_use]
    pub fn cursors(&self) -> &Arc<Cursors> {
        &self.cursors
    }

    /// Replaces the settings for all later calls.
    pub fn replace(&self, settings: CallerSettings) {
        self.settings.store(Arc::new(settings));
    }

    /// Returns the toolbox of a caller with a permit for one call.
    ///
    /// # Errors
    ///
    /// The caller may read no source, or has too many concurrent calls.
    pub async fn admit(&self, caller: &AuthenticatedCaller) -> Result<Permit, AdmissionError> {
        let state = self.state(caller)?;
        let person = state.reader.person;
        let permit = self.limiter.acquire(person, state.settings.calls_at_once).await?;
        state.stored.store(&self.cursors, state.settings.pages.as_ref(), &state.reader).await;
        Ok(Permit { toolbox: GrantToolbox(Arc::clone(&state.toolbox)), permit, person })
    }

    /// Returns the reader that a link key for a record was issued to, by this server or another that shares its state.
    ///
    /// # Errors
    ///
    /// The shared state cannot be read, and this server did not issue the link.
    pub async fn link_reader(&self, key: &str, record: &RecordAddress) -> Result<Option<Reader>, StateError> {
        match &self.settings().pages {
            None => Ok(None),
            Some(pages) => link_reader(&self.cursors, pages, key, record).await,
        }
    }

    /// Returns the reader with the latest token of a grant from the shared state, if there is one.
    ///
    /// # Errors
    ///
    /// The shared state cannot be read.
    pub async fn latest_reader(&self, grant: GrantId) -> Result<Option<Reader>, StateError> {
        match &self.settings().pages {
            None => Ok(None),
            Some(pages) => latest_reader(&self.cursors, pages, grant).await,
        }
    }

    /// Removes the cached answers to searches of some projects from the toolboxes of all callers. Returns their keys.
    pub fn clear_searches(&self, is_cleared: impl Fn(Uuid) -> bool) -> BTreeSet<String> {
        self.states.iter().flat_map(|(_, state)| state.toolbox.searches().clear(&is_cleared)).collect()
    }

    /// Returns the state of the circuit breaker of each source. Of several callers it is the one with most failures.
    #[must_use]
    pub fn circuits(&self) -> Vec<CircuitReport> {
        let mut worst: Vec<CircuitReport> = Vec::new();
        for circuit in self.states.iter().flat_map(|(_, state)| state.toolbox.source().shared().circuits()) {
            match worst.iter_mut().find(|known| known.source == circuit.source) {
                Some(known) if known.failures < circuit.failures => *known = circuit,
                Some(_) => {}
                None => worst.push(circuit),
            }
        }
        worst
    }

    /// Returns the hits and misses of each cache, summed over the toolboxes in memory.
    pub fn lookups(&self) -> Vec<(&'static str, Lookups)> {
        let mut total: Vec<(&'static str, Lookups)> = Vec::new();
        for (name, lookups) in self.states.iter().flat_map(|(_, state)| state.toolbox.lookups()) {
            match total.iter_mut().find(|(known, _)| *known == name) {
                Some((_, sum)) => *sum = *sum + lookups,
                None => total.push((name, lookups)),
            }
        }
        total
    }

    fn state(&self, caller: &AuthenticatedCaller) -> Result<Arc<CallerState>, AdmissionError> {
        let settings = self.settings();
        let grant = caller.caller.grant_id();
        if let Some(state) = self.states.get(&grant).filter(|state| Arc::ptr_eq(&state.settings, &settings)) {
            state.reader.token.replace(caller.token.clone(), caller.expires_at);
            self.tokens.renew(grant, &state.reader.token);
            return Ok(state);
        }
        // Entries of one grant are created one at a time, because a second toolbox would lose what the first remembers.
        let created = self.states.entry(grant).and_compute_with(|known| {
            let known = known.map(Entry::into_value);
            match self.create(grant, caller, settings, known.as_deref()) {
                Some(state) => Op::Put(Arc::new(state)),
                None => Op::Remove,
            }
        });
        match created {
            CompResult::Inserted(state) | CompResult::ReplacedWith(state) | CompResult::Unchanged(state) => {
                Ok(state.into_value())
            }
            CompResult::StillNone(_) | CompResult::Removed(_) => Err(AdmissionError::NoSources),
        }
    }

    /// Creates the state of a grant. It takes over the data of `known`, its state with earlier settings.
    fn create(
        &self,
        grant: GrantId,
        caller: &AuthenticatedCaller,
        settings: Arc<CallerSettings>,
        known: Option<&CallerState>,
    ) -> Option<CallerState> {
        let token = match known {
            Some(state) => state.reader.token.clone(),
            None => self.tokens.get(grant).unwrap_or_default(),
        };
        token.replace(caller.token.clone(), caller.expires_at);
        let source = match known {
            // An unchanged source keeps its circuit breakers and its knowledge of connections.
            Some(state) if Arc::ptr_eq(&state.settings.sources, &settings.sources) => {
                state.toolbox.source().shared().clone()
            }
            _ => settings.sources.granted(&caller.caller, &token)?,
        };
        let (deadline, protection) = (settings.call_deadline, Arc::clone(&settings.protection));
        let toolbox = match known {
            Some(state) => state.toolbox.succeeded_by(source, deadline, protection),
            None => Toolbox::with_cursors(source, Arc::clone(&self.cursors), deadline)
                .protected_by(protection)
                .granted_to(grant),
        };
        self.tokens.insert(grant, token.clone());
        let reader = Reader::new(&caller.caller, token);
        let toolbox = toolbox.with_pages(settings.pages.as_ref().map(|pages| pages.read_by(reader.clone())));
        Some(CallerState { settings, toolbox: Arc::new(toolbox), reader, stored: StoredToken::default() })
    }
}

#[cfg(test)]
mod tests {
    use secrecy::{ExposeSecret, SecretString};

    use super::*;
    use fetchwell_callers::Subject;
    use fetchwell_lab::recorded::RecordedSource;
    use fetchwell_state::cursor::Skew;

    /// Grants the source to all callers except Eve.
    #[derive(Debug)]
    struct AllButEve(Sources);

    impl CallerSources for AllButEve {
        fn granted(&self, to: &Caller, _token: &GrantToken) -> Option<Sources> {
            (*to != named("eve").caller).then(|| self.0.clone())
        }

        fn everything(&self) -> Option<Sources> {
            Some(self.0.clone())
        }
    }

    fn named(name: &str) -> AuthenticatedCaller {
        let caller = Caller::Token { name: name.to_owned() };
        AuthenticatedCaller {
            caller,
            token: SecretString::from(format!("token of {name}")),
            expires_at: None,
            is_admin: false,
        }
    }

    fn toolboxes(calls_at_once: usize) -> CallerToolboxes {
        let [search, record, records, schema] = Default::default();
        let source = RecordedSource { name: "a".parse().unwrap(), search, record, records, schema };
        let settings = CallerSettings {
            sources: Arc::new(AllButEve(source.into())),
            call_deadline: Duration::from_secs(1),
            protection: Arc::default(),
            pages: None,
            calls_at_once,
        };
        let cursors = Arc::new(Cursors::in_memory(Skew::default()).unwrap());
        CallerToolboxes::new(settings, cursors)
    }

    #[tokio::test]
    async fn each_grant_has_a_toolbox_of_its_own() {
        let toolboxes = toolboxes(2);
        let toolbox = async |name| toolboxes.admit(&named(name)).await.unwrap().toolbox.0;
        let (ann, again, bob) = (toolbox("ann").await, toolbox("ann").await, toolbox("bob").await);
        assert!(Arc::ptr_eq(&ann, &again) && !Arc::ptr_eq(&ann, &bob));
        assert_ne!(ann.identity(), bob.identity());
        assert_eq!(toolboxes.admit(&named("eve")).await.unwrap_err(), AdmissionError::NoSources);
        // Other settings create another toolbox over the same source.
        toolboxes.replace(CallerSettings {
            call_deadline: Duration::from_secs(2),
            ..CallerSettings::clone(&toolboxes.settings())
        });
        let later = toolbox("ann").await;
        assert_eq!((later.call_deadline().as_secs(), later.identity()), (2, ann.identity()));
        assert!(later.source().shared().is_same(ann.source().shared()));
    }

    #[tokio::test]
    async fn the_latest_token_of_a_grant_is_passed_on() {
        let toolboxes = toolboxes(2);
        let newer = AuthenticatedCaller { token: SecretString::from("newer"), ..named("ann") };
        for (caller, expect) in [(named("ann"), "token of ann"), (newer, "newer")] {
            toolboxes.state(&caller).unwrap();
            let token = toolboxes.tokens.get(caller.caller.grant_id()).unwrap();
            assert_eq!(token.latest().unwrap().expose_secret(), expect);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn permits_are_counted_for_each_person() {
        let toolboxes = toolboxes(1);
        let first = toolboxes.admit(&named("ann")).await.unwrap();
        assert_eq!(toolboxes.admit(&named("ann")).await.unwrap_err(), AdmissionError::TooManyCalls);
        assert!(toolboxes.admit(&named("bob")).await.is_ok());
        drop(first);
        assert!(toolboxes.admit(&named("ann")).await.is_ok());
        // Another scope is another grant of the same person.
        let by = |grant: &str| {
            let [issuer, subject, grant] = ["i", "ann", grant].map(str::to_owned);
            let caller = Caller::Subject(Subject { issuer, subject, client: None, grant });
            AuthenticatedCaller { caller, ..named("ann") }
        };
        let _first = toolboxes.admit(&by("narrow")).await.unwrap();
        assert_eq!(toolboxes.admit(&by("wide")).await.unwrap_err(), AdmissionError::TooManyCalls);
    }
}
