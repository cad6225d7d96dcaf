//! The tools of each caller, kept apart.
//!
//! Whatever a call remembers (schemas, previews, texts, ids, circuits, where lists go on) is in a toolbox, and no two grants
//! have one in common. So nothing that one caller saw can be in the answer of another, however alike their questions
//! are. The toolboxes of those who ask are kept; one that nobody used for a while is made anew by the next call.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use moka::Entry;
use moka::ops::compute::{CompResult, Op};
use moka::policy::EvictionPolicy;
use moka::sync::Cache;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::{Reader, RecordPages, Toolbox};
use crate::access::{Admitted, GrantId};
use crate::cursor::Cursors;
use crate::fit::Protection;
use crate::source::Source;
use crate::source::federation::CircuitReport;
use crate::source::pdpp::CallersToken;

/// Toolboxes that are kept; the one that was used longest ago is forgotten first.
const KEPT_MOST: u64 = 1_000;

/// How long a toolbox is kept that nobody uses.
const IDLE_FOR_MOST: Duration = Duration::from_secs(30 * 60);

/// How long a call waits for others of its caller to end.
const TURN_WITHIN: Duration = Duration::from_secs(5);

/// What callers may ask.
pub trait GrantedSources: Send + Sync + fmt::Debug {
    /// The sources of a caller, as one; nothing when there is none for them.
    fn granted(&self, to: &Admitted) -> Option<Granted>;

    /// All that can be asked without a caller, as one: what the health of the server is about. Nothing when all of it is
    /// asked with callers' own tokens.
    fn everything(&self) -> Option<Arc<dyn Source>>;
}

/// The sources of one caller.
#[derive(Debug)]
pub struct Granted {
    /// They, as one.
    pub source: Arc<dyn Source>,
    /// The token that goes to those of them that are asked with it.
    pub token: CallersToken,
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
    /// Calls of one caller at a time.
    pub calls_at_once: usize,
}

/// The toolboxes of all callers, by their grants.
#[derive(Debug)]
pub struct Grants {
    terms: ArcSwap<Terms>,
    cursors: Arc<Cursors>,
    desks: Cache<GrantId, Arc<Desk>>,
}

/// What one caller has.
#[derive(Debug)]
struct Desk {
    /// The terms it was made under.
    terms: Arc<Terms>,
    toolbox: Arc<Toolbox>,
    token: CallersToken,
    turns: Arc<Semaphore>,
}

impl Desk {
    /// Its sources, for a caller who comes with another token.
    fn granted(&self, to: &Admitted) -> Granted {
        self.token.replace(to.token.clone());
        Granted { source: Arc::clone(self.toolbox.asked_source()), token: self.token.clone() }
    }
}

/// A caller's toolbox, and the turn in which it may be used.
#[derive(Debug)]
pub struct Turn {
    /// The tools.
    pub toolbox: Arc<Toolbox>,
    /// Held until the answer is made.
    pub permit: OwnedSemaphorePermit,
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
        let desks = Cache::builder()
            .max_capacity(KEPT_MOST)
            .time_to_idle(IDLE_FOR_MOST)
            .eviction_policy(EvictionPolicy::lru())
            .build();
        Self { terms: ArcSwap::from_pointee(terms), cursors, desks }
    }

    /// What holds now.
    #[must_use]
    pub fn terms(&self) -> Arc<Terms> {
        self.terms.load_full()
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
        let waiting = timeout(TURN_WITHIN, Arc::clone(&desk.turns).acquire_owned());
        let permit = waiting.await.ok().and_then(Result::ok).ok_or(NoTurn::TooMany)?;
        Ok(Turn { toolbox: Arc::clone(&desk.toolbox), permit })
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
            // A grant outlives its tokens.
            desk.token.replace(caller.token.clone());
            return Ok(desk);
        }
        // One at a time for each grant: what one of two toolboxes remembers would be lost with it.
        let made = self.desks.entry(grant).and_compute_with(|known| {
            let known = known.map(Entry::into_value);
            match self.made(&grant, caller, terms, known) {
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
        grant: &GrantId,
        caller: &Admitted,
        terms: Arc<Terms>,
        known: Option<Arc<Desk>>,
    ) -> Option<Desk> {
        let Granted { source, token } = match &known {
            // With them, what is known of sources stays: circuits, and which of them has what.
            Some(desk) if Arc::ptr_eq(&desk.terms.sources, &terms.sources) => desk.granted(caller),
            _ => terms.sources.granted(caller)?,
        };
        let (deadline, protection) = (terms.call_deadline, Arc::clone(&terms.protection));
        let toolbox = match &known {
            Some(desk) => desk.toolbox.succeeded_by(source, deadline, protection),
            None => Toolbox::with_cursors(source, Arc::clone(&self.cursors), deadline)
                .protected_by(protection)
                .granted_to(*grant),
        };
        let reader = Reader { grant: *grant, token: token.clone() };
        let toolbox = toolbox.with_pages(terms.pages.as_ref().map(|pages| pages.read_by(reader)));
        let turns = match known {
            Some(desk) if desk.terms.calls_at_once == terms.calls_at_once => Arc::clone(&desk.turns),
            _ => Arc::new(Semaphore::new(terms.calls_at_once)),
        };
        Some(Desk { terms, toolbox: Arc::new(toolbox), token, turns })
    }
}
