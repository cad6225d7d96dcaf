//! The tools of each caller, kept apart.
//!
//! Whatever a call remembers (schemas, previews, texts, ids, circuits, where lists go on) is in a toolbox, and no two grants
//! have one in common. So nothing that one caller saw can be in the answer of another, however alike their questions
//! are. The toolboxes of those who ask are kept; one that nobody used for a while is made anew by the next call.

use std::fmt;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use moka::Entry;
use moka::ops::compute::{CompResult, Op};
use moka::policy::EvictionPolicy;
use moka::sync::Cache;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::callers::{Admitted, Caller, CallersToken, GrantId, MAX_LINK_LIFE, Reader, RecordPages};
use crate::cursor::Cursors;
use crate::fit::Protection;
use crate::source::Source;
use crate::source::federation::CircuitReport;
use crate::tools::Toolbox;

/// Toolboxes that are kept; the one that was used longest ago is forgotten first.
const MAX_KEPT: u64 = 1_000;

/// How long a toolbox is kept that nobody uses.
const MAX_IDLE_FOR: Duration = Duration::from_secs(30 * 60);

/// People and grants of whom something small is kept.
const MAX_PEOPLE: u64 = 10_000;

/// Lifetime of the latest token of an unused grant: as long as its links open.
const MAX_TOKENS_FOR: Duration = MAX_LINK_LIFE;

/// How long a call waits for others of its caller to end.
const TURN_WITHIN: Duration = Duration::from_secs(5);

/// What callers may ask.
pub trait GrantedSources: Send + Sync + fmt::Debug {
    /// The sources of a caller, as one, with the token of their grant for those that are asked with it; nothing when there is
    /// none for them.
    fn granted(&self, to: &Caller, token: &CallersToken) -> Option<Arc<dyn Source>>;

    /// All that can be asked without a caller, as one: what the health of the server is about. Nothing when all of it is
    /// asked with callers' own tokens.
    fn everything(&self) -> Option<Arc<dyn Source>>;
}

/// What holds for all toolboxes.
#[derive(Debug, Clone)]
pub struct Terms {
    /// Who may ask what.
    pub sources: Arc<dyn GrantedSources>,
    /// How long a whole call may take.
    pub call_deadline: Duration,
    /// How much answers may take.
    pub protection: Arc<Protection>,
    /// Where people read records, when there is a place.
    pub pages: Option<RecordPages>,
    /// Calls of one person at a time.
    pub calls_at_once: usize,
}

/// The toolboxes of all callers, by their grants.
#[derive(Debug)]
pub struct Grants {
    terms: ArcSwap<Terms>,
    cursors: Arc<Cursors>,
    desks: Cache<GrantId, Arc<Desk>>,
    /// Those of the desks: whatever becomes of one, links and sessions go on with the tokens of their grant.
    tokens: Cache<GrantId, CallersToken>,
    /// Whoever has several grants has the turns of one.
    turns: Cache<(GrantId, usize), Arc<Semaphore>>,
}

/// What one caller has.
#[derive(Debug)]
struct Desk {
    /// The terms it was made under.
    terms: Arc<Terms>,
    toolbox: Arc<Toolbox>,
    reader: Reader,
}

/// A caller's toolbox, and the turn in which it may be used.
#[derive(Debug)]
pub struct Turn {
    /// The tools.
    pub toolbox: Arc<Toolbox>,
    /// Held until the answer is sent.
    pub permit: OwnedSemaphorePermit,
    /// The person that the grant belongs to.
    pub person: GrantId,
}

/// Why a caller gets no tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoTurn {
    /// Nothing is configured for them.
    #[error("this server has no records for you; ask whoever runs it for a source")]
    NoSources,
    /// All their turns are taken.
    #[error("too many calls of yours are running; make fewer at a time")]
    TooMany,
}

impl Grants {
    /// Toolboxes under these terms.
    #[must_use]
    pub fn new(terms: Terms, cursors: Arc<Cursors>) -> Self {
        let terms = ArcSwap::from_pointee(terms);
        let (desks, tokens) = (kept(MAX_KEPT, MAX_IDLE_FOR), kept(MAX_PEOPLE, MAX_TOKENS_FOR));
        Self { terms, cursors, desks, tokens, turns: kept(MAX_PEOPLE, MAX_IDLE_FOR) }
    }

    /// What holds now.
    #[must_use]
    pub fn terms(&self) -> Arc<Terms> {
        self.terms.load_full()
    }

    /// Returns where the lists of all callers go on.
    #[must_use]
    pub fn cursors(&self) -> &Arc<Cursors> {
        &self.cursors
    }

    /// Other terms, for the calls that come from now on.
    pub fn replace(&self, terms: Terms) {
        self.terms.store(Arc::new(terms));
    }

    /// The tools of a caller, when they may use them.
    ///
    /// # Errors
    ///
    /// There is nothing for them to ask, or they ask too much at once.
    pub async fn turn(&self, caller: &Admitted) -> Result<Turn, NoTurn> {
        let desk = self.desk(caller)?;
        let at_once = desk.terms.calls_at_once;
        let person = desk.reader.person;
        // Looked up by every call, so that they are forgotten with the last grant that is used and not with the first.
        let turns = self.turns.get_with((person, at_once), || Arc::new(Semaphore::new(at_once)));
        let waiting = timeout(TURN_WITHIN, turns.acquire_owned());
        let permit = waiting.await.ok().and_then(Result::ok).ok_or(NoTurn::TooMany)?;
        Ok(Turn { toolbox: Arc::clone(&desk.toolbox), permit, person })
    }

    /// How the sources of callers are doing, each as the caller sees it who has most trouble with it.
    #[must_use]
    pub fn circuits(&self) -> Vec<CircuitReport> {
        let mut worst: Vec<CircuitReport> = Vec::new();
        for circuit in self.desks.iter().flat_map(|(_, desk)| desk.toolbox.asked_source().circuits()) {
            match worst.iter_mut().find(|known| known.source == circuit.source) {
                Some(known) if known.failures < circuit.failures => *known = circuit,
                Some(_) => {}
                None => worst.push(circuit),
            }
        }
        worst
    }

    fn desk(&self, caller: &Admitted) -> Result<Arc<Desk>, NoTurn> {
        let terms = self.terms();
        let grant = caller.caller.grant_id();
        if let Some(desk) = self.desks.get(&grant).filter(|desk| Arc::ptr_eq(&desk.terms, &terms)) {
            desk.reader.token.replace(caller.token.clone(), caller.expires_at);
            // What goes on by it is kept as long as the grant is used.
            self.tokens.get_with(grant, || desk.reader.token.clone());
            return Ok(desk);
        }
        // One at a time for each grant: what one of two toolboxes remembers would be lost with it.
        let made = self.desks.entry(grant).and_compute_with(|known| {
            let known = known.map(Entry::into_value);
            match self.made(grant, caller, terms, known.as_deref()) {
                Some(desk) => Op::Put(Arc::new(desk)),
                None => Op::Remove,
            }
        });
        match made {
            CompResult::Inserted(desk) | CompResult::ReplacedWith(desk) | CompResult::Unchanged(desk) => {
                Ok(desk.into_value())
            }
            CompResult::StillNone(_) | CompResult::Removed(_) => Err(NoTurn::NoSources),
        }
    }

    fn made(
        &self,
        grant: GrantId,
        caller: &Admitted,
        terms: Arc<Terms>,
        known: Option<&Desk>,
    ) -> Option<Desk> {
        let token = match known {
            Some(desk) => desk.reader.token.clone(),
            None => self.tokens.get(&grant).unwrap_or_default(),
        };
        token.replace(caller.token.clone(), caller.expires_at);
        let source = match known {
            // With them, what is known of sources stays: circuits, and which of them has what.
            Some(desk) if Arc::ptr_eq(&desk.terms.sources, &terms.sources) => {
                Arc::clone(desk.toolbox.asked_source())
            }
            _ => terms.sources.granted(&caller.caller, &token)?,
        };
        let (deadline, protection) = (terms.call_deadline, Arc::clone(&terms.protection));
        let toolbox = match known {
            Some(desk) => desk.toolbox.succeeded_by(source, deadline, protection),
            None => Toolbox::with_cursors(source, Arc::clone(&self.cursors), deadline)
                .protected_by(protection)
                .granted_to(grant),
        };
        self.tokens.insert(grant, token.clone());
        let reader = Reader::of(&caller.caller, token);
        let toolbox = toolbox.with_pages(terms.pages.as_ref().map(|pages| pages.read_by(reader.clone())));
        Some(Desk { terms, toolbox: Arc::new(toolbox), reader })
    }
}

fn kept<Key, What>(most: u64, idle: Duration) -> Cache<Key, What>
where
    Key: Hash + Eq + Send + Sync + 'static,
    What: Clone + Send + Sync + 'static,
{
    Cache::builder().max_capacity(most).time_to_idle(idle).eviction_policy(EvictionPolicy::lru()).build()
}

#[cfg(test)]
mod tests {
    use secrecy::{ExposeSecret, SecretString};

    use super::*;
    use crate::callers::Subject;
    use crate::cursor::Skew;
    use crate::source::pdpp::Recorded;

    /// Everybody but Eve has the source.
    #[derive(Debug)]
    struct AllButEve(Arc<dyn Source>);

    impl GrantedSources for AllButEve {
        fn granted(&self, to: &Caller, _token: &CallersToken) -> Option<Arc<dyn Source>> {
            (*to != named("eve").caller).then(|| Arc::clone(&self.0))
        }

        fn everything(&self) -> Option<Arc<dyn Source>> {
            Some(Arc::clone(&self.0))
        }
    }

    fn named(name: &str) -> Admitted {
        let caller = Caller::Token { name: name.to_owned() };
        Admitted { caller, token: SecretString::from(format!("token of {name}")), expires_at: None }
    }

    fn grants(calls_at_once: usize) -> Grants {
        let [search, record, records, schema] = Default::default();
        let source = Recorded { name: "a".parse().unwrap(), search, record, records, schema };
        let terms = Terms {
            sources: Arc::new(AllButEve(Arc::new(source))),
            call_deadline: Duration::from_secs(1),
            protection: Arc::default(),
            pages: None,
            calls_at_once,
        };
        let cursors = Arc::new(Cursors::in_memory(Skew::default()).unwrap());
        Grants::new(terms, cursors)
    }

    #[tokio::test]
    async fn a_grant_has_one_toolbox_and_shares_it_with_none() {
        let grants = grants(2);
        let toolbox = async |name| grants.turn(&named(name)).await.unwrap().toolbox;
        let (ann, again, bob) = (toolbox("ann").await, toolbox("ann").await, toolbox("bob").await);
        assert!(Arc::ptr_eq(&ann, &again) && !Arc::ptr_eq(&ann, &bob));
        assert_ne!(ann.identity(), bob.identity());
        assert_eq!(grants.turn(&named("eve")).await.unwrap_err(), NoTurn::NoSources);
        // Other terms make another toolbox, with what was asked before.
        grants.replace(Terms { call_deadline: Duration::from_secs(2), ..Terms::clone(&grants.terms()) });
        let later = toolbox("ann").await;
        assert_eq!((later.call_deadline().as_secs(), later.identity()), (2, ann.identity()));
        assert!(Arc::ptr_eq(later.asked_source(), ann.asked_source()));
    }

    #[tokio::test]
    async fn the_latest_token_of_a_grant_is_passed_on() {
        let grants = grants(2);
        let newer = Admitted { token: SecretString::from("newer"), ..named("ann") };
        for (caller, expect) in [(named("ann"), "token of ann"), (newer, "newer")] {
            grants.desk(&caller).unwrap();
            let token = grants.tokens.get(&caller.caller.grant_id()).unwrap();
            assert_eq!(token.latest().unwrap().expose_secret(), expect);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_caller_waits_for_a_turn_and_holds_up_nobody_else() {
        let grants = grants(1);
        let first = grants.turn(&named("ann")).await.unwrap();
        assert_eq!(grants.turn(&named("ann")).await.unwrap_err(), NoTurn::TooMany);
        assert!(grants.turn(&named("bob")).await.is_ok());
        drop(first);
        assert!(grants.turn(&named("ann")).await.is_ok());
        // Another scope is another grant, and not another person.
        let by = |grant: &str| {
            let [issuer, subject, grant] = ["i", "ann", grant].map(str::to_owned);
            let caller = Caller::Subject(Subject { issuer, subject, client: None, grant });
            Admitted { caller, ..named("ann") }
        };
        let _first = grants.turn(&by("narrow")).await.unwrap();
        assert_eq!(grants.turn(&by("wide")).await.unwrap_err(), NoTurn::TooMany);
    }
}
