//! Which source has which connection, and which streams.
//!
//! Known from each source's schema, which is read when a call meets a connection that nobody knows, and anew
//! beside the calls when it has grown old. A source that does not answer holds up only the calls that need it.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::task::AbortHandle;
use tokio::time::timeout;

use super::failures::Failures;
use super::guarded::Guarded;
use super::names::{Names, unqualified};
use crate::callers::CallContext;
use crate::handle::{ConnectionId, SourceName, StreamName};
use crate::record::{ConnectionSchema, Schema};
use crate::source::{ConnectionChoice, Source, SourceError};

/// A schema that is older is read anew, beside the calls.
const FRESH: Duration = Duration::from_secs(60);

/// A source is not asked for a stream that it lacks only as long as its schema is younger than this: an import may
/// have added it.
const EXCLUDES: Duration = Duration::from_secs(5);

/// A schema that is younger is not read again for a connection that nobody knows: a client may ask for one
/// that does not exist as often as it likes.
const READ_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// The most connections that are kept of a source whose schema cannot be read.
const MAX_SEEN: usize = 1_000;

/// How long, after one source has said that a connection is its own, the others may still say so too.
const COLLISION_WAIT: Duration = Duration::from_millis(250);

/// What is known of every source.
#[derive(Debug)]
pub(super) struct Routes {
    slots: Vec<Arc<Slot>>,
    names: Arc<Names>,
}

#[derive(Debug)]
struct Slot {
    source: Arc<Guarded>,
    names: Arc<Names>,
    known: RwLock<Option<Known>>,
    /// Connections of hits and records that it gave, for a source whose schema cannot be read.
    seen: Mutex<HashSet<ConnectionId>>,
    /// Held while the schema is read, so that it is read once for all who wait for it.
    reading: tokio::sync::Mutex<()>,
    /// The reading beside the calls.
    beside: Mutex<Option<AbortHandle>>,
    /// Whether a schema was asked for beside the calls.
    was_asked: AtomicBool,
}

#[derive(Debug)]
struct Known {
    connections: Vec<ConnectionSchema>,
    by_id: HashMap<ConnectionId, HashSet<StreamName>>,
    read_at: Instant,
}

impl Known {
    fn of(schema: &Schema) -> Self {
        let streams = |connection: &ConnectionSchema| {
            let names = connection.streams.iter().map(|stream| stream.name.clone());
            (connection.connection_id.clone(), names.collect())
        };
        Self {
            by_id: schema.connections.iter().map(streams).collect(),
            connections: schema.connections.clone(),
            read_at: Instant::now(),
        }
    }
}

impl Slot {
    fn is_older_than(&self, age: Duration) -> bool {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        known.as_ref().is_none_or(|known| known.read_at.elapsed() >= age)
    }

    fn learn(&self, schema: &Schema) {
        self.names.learn(self.source.name(), schema);
        *self.known.write().unwrap_or_else(PoisonError::into_inner) = Some(Known::of(schema));
    }

    /// Reads the schema, unless another call has done so in the meantime. Waiting for that call counts as part of the
    /// source's deadline: reads that fail one after the other would go on beyond it.
    async fn read(&self, context: &CallContext) -> Result<(), SourceError> {
        let after = self.source.deadline();
        let read = timeout(after, self.read_in_turn(context)).await;
        read.unwrap_or(Err(SourceError::Timeout { after }))
    }

    async fn read_in_turn(&self, context: &CallContext) -> Result<(), SourceError> {
        let asked_at = Instant::now();
        let _reading = self.reading.lock().await;
        if asked_at.elapsed() >= self.source.deadline() {
            return Err(SourceError::Timeout { after: self.source.deadline() });
        }
        let is_new = |known: &Known| known.read_at > asked_at;
        if self.known.read().unwrap_or_else(PoisonError::into_inner).as_ref().is_some_and(is_new) {
            return Ok(());
        }
        self.learn(&self.source.own_schema(context).await?);
        Ok(())
    }

    /// Reads the schema beside the calls, unless a call reads it now. It does not wait for that call: a source that left it
    /// without an answer would be asked again after its deadline, for no one.
    async fn read_beside(&self) {
        if let Ok(_reading) = self.reading.try_lock()
            && let Ok(schema) = self.source.own_schema(&CallContext::default()).await
        {
            self.learn(&schema);
        }
    }

    fn has(&self, connection: &ConnectionId) -> bool {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        match &*known {
            Some(known) => known.by_id.contains_key(connection),
            None => self.seen.lock().unwrap_or_else(PoisonError::into_inner).contains(connection),
        }
    }
}

impl Slot {
    fn is_unread(&self) -> bool {
        self.known.read().unwrap_or_else(PoisonError::into_inner).is_none()
    }

    /// Whether the id is `ID@SOURCE` of a connection that it has.
    fn has_qualified(&self, connection: &ConnectionId) -> bool {
        unqualified(self.source.name(), connection).is_some_and(|own| self.has(&own))
    }
}

impl Drop for Routes {
    fn drop(&mut self) {
        for slot in &self.slots {
            if let Some(beside) = slot.beside.lock().unwrap_or_else(PoisonError::into_inner).take() {
                beside.abort();
            }
        }
    }
}

impl Routes {
    pub(super) fn new(sources: &[Arc<Guarded>], names: Arc<Names>) -> Self {
        let slot = |source: &Arc<Guarded>| Slot {
            source: Arc::clone(source),
            names: Arc::clone(&names),
            known: RwLock::default(),
            seen: Mutex::default(),
            reading: tokio::sync::Mutex::default(),
            beside: Mutex::default(),
            was_asked: AtomicBool::new(false),
        };
        Self { slots: sources.iter().map(slot).map(Arc::new).collect(), names }
    }

    /// Returns the ids under which connections are printed.
    pub(super) fn names(&self) -> Arc<Names> {
        Arc::clone(&self.names)
    }

    /// Takes up a schema that was read for another reason.
    pub(super) fn learn(&self, source: usize, schema: &Schema) {
        if let Some(slot) = self.slots.get(source) {
            slot.learn(schema);
        }
    }

    /// Takes up the connections of hits or rows that a source gave: handles that are printed have to be known when
    /// they come back. They are needed only as long as the source's schema is not known.
    pub(super) fn saw<'a>(&self, source: &SourceName, connections: impl Iterator<Item = &'a ConnectionId>) {
        let Some(slot) = self.slots.iter().find(|slot| slot.source.name() == source) else { return };
        if slot.known.read().unwrap_or_else(PoisonError::into_inner).is_some() {
            return;
        }
        let mut seen = slot.seen.lock().unwrap_or_else(PoisonError::into_inner);
        for connection in connections.map(|printed| self.names.own(source, printed)) {
            if seen.len() < MAX_SEEN && !seen.contains(&connection) {
                seen.insert(connection);
            }
        }
    }

    /// Reads what is old or unknown, beside the calls.
    pub(super) fn freshen(&self) {
        for slot in self.slots.iter().filter(|slot| slot.is_older_than(FRESH)) {
            let mut beside = slot.beside.lock().unwrap_or_else(PoisonError::into_inner);
            if beside.as_ref().is_none_or(AbortHandle::is_finished) {
                let slot = Arc::clone(slot);
                // A source that fails says so to those who ask it.
                let first = (!slot.was_asked.swap(true, Ordering::Relaxed)).then(|| self.names.first_read());
                let read = async move {
                    slot.read_beside().await;
                    drop(first);
                };
                *beside = Some(tokio::spawn(read).abort_handle());
            }
        }
    }

    /// A connection that two sources have.
    pub(super) fn collision(&self) -> Option<ConnectionId> {
        let mut known: HashSet<ConnectionId> = HashSet::new();
        for slot in &self.slots {
            let own = slot.known.read().unwrap_or_else(PoisonError::into_inner);
            for connection in own.iter().flat_map(|known| known.by_id.keys()) {
                if !known.insert(connection.clone()) {
                    return Some(connection.clone());
                }
            }
        }
        None
    }

    /// Whether a source has a stream; `None` when that is not known, or not for sure any more.
    pub(super) fn has_stream(&self, source: usize, stream: &StreamName) -> Option<bool> {
        let known = self.slots.get(source)?.known.read().unwrap_or_else(PoisonError::into_inner);
        let known = known.as_ref()?;
        let has = known.by_id.values().any(|streams| streams.contains(stream));
        (has || known.read_at.elapsed() < EXCLUDES).then_some(has)
    }

    /// All streams there are, as far as known, in the order of their sources.
    pub(super) fn streams(&self) -> Vec<StreamName> {
        let mut names = Vec::new();
        for slot in &self.slots {
            let known = slot.known.read().unwrap_or_else(PoisonError::into_inner);
            for stream in known.iter().flat_map(|known| &known.connections).flat_map(|c| &c.streams) {
                if !names.contains(&stream.name) {
                    names.push(stream.name.clone());
                }
            }
        }
        names
    }

    /// The one source that has a connection.
    pub(super) async fn source_of(
        &self,
        context: &CallContext,
        connection: &ConnectionId,
    ) -> Result<usize, SourceError> {
        self.freshen();
        let (mut owners, mut failed) = (self.owners(connection), Failures::default());
        if owners.is_empty() && (self.has_unread() || self.qualified(connection).is_none()) {
            failed = self.look_for(context, connection).await;
            owners = self.owners(connection);
        }
        if owners.is_empty()
            && let Some(source) = self.qualified(connection)
        {
            return Ok(source);
        }
        match owners.as_slice() {
            [only] => Ok(*only),
            [] if failed.is_empty() => Err(SourceError::ConnectionNotFound {
                asked: connection.to_string(),
                choices: self.choices(),
            }),
            // A source that cannot tell its connections can still have this one, and says so itself.
            [] if let Some(only) = self.only_one_that_cannot_tell(&failed) => Ok(only),
            [] if failed.len() == 1 => Err(failed.instead_of_an_answer("")),
            [] => Err(failed.none_answered(format!("no source that answers has connection `{connection}`"))),
            several => Err(SourceError::AmbiguousSource {
                what: format!("connection `{connection}`"),
                sources: several.iter().filter_map(|source| self.name(*source)).collect(),
                choices: several.iter().filter_map(|source| self.choice(*source, connection)).collect(),
            }),
        }
    }

    fn only_one_that_cannot_tell(&self, failed: &Failures) -> Option<usize> {
        let name = failed.only_one_that_refuses()?;
        self.slots.iter().position(|slot| slot.source.name() == name)
    }

    fn name(&self, source: usize) -> Option<SourceName> {
        self.slots.get(source).map(|slot| slot.source.name().clone())
    }

    fn owners(&self, connection: &ConnectionId) -> Vec<usize> {
        let slots = self.slots.iter().enumerate();
        slots.filter(|(_, slot)| slot.has(connection)).map(|(number, _)| number).collect()
    }

    /// Returns the source of an id that is written `ID@SOURCE`.
    fn qualified(&self, connection: &ConnectionId) -> Option<usize> {
        self.slots.iter().position(|slot| slot.has_qualified(connection))
    }

    fn has_unread(&self) -> bool {
        self.slots.iter().any(|slot| slot.is_unread())
    }

    /// Returns a source's connection as it is told apart from those of the same id.
    fn choice(&self, source: usize, connection: &ConnectionId) -> Option<ConnectionChoice> {
        let slot = self.slots.get(source)?;
        let known = slot.known.read().unwrap_or_else(PoisonError::into_inner);
        let known = known.iter().flat_map(|known| &known.connections);
        let label = known
            .filter(|known| known.connection_id == *connection)
            .find_map(|known| known.display_name.clone());
        let connection_id = self.names.printed(slot.source.name(), connection);
        Some(ConnectionChoice { connection_id, display_name: label })
    }

    /// Asks every source for its schema until one has the connection, and a little longer.
    async fn look_for(&self, context: &CallContext, connection: &ConnectionId) -> Failures {
        let old = self.slots.iter().filter(|slot| slot.is_older_than(READ_AGAIN_AFTER));
        let mut reads: FuturesUnordered<_> =
            old.map(|slot| async move { (slot, slot.read(context).await) }).collect();
        let mut failed = Failures::default();
        while let Some((slot, read)) = reads.next().await {
            if let Err(error) = read {
                failed.add(slot.source.name(), error);
            } else if slot.has(connection) || slot.has_qualified(connection) {
                let rest = async { while reads.next().await.is_some() {} };
                // Who is still silent then does not hold the call up.
                let _ = timeout(COLLISION_WAIT, rest).await;
                break;
            }
        }
        failed
    }

    fn choices(&self) -> Vec<ConnectionChoice> {
        let of = |slot: &Arc<Slot>| -> Vec<ConnectionChoice> {
            let printer = self.names.printer(slot.source.name(), None);
            let known = slot.known.read().unwrap_or_else(PoisonError::into_inner);
            let choice = |connection: &ConnectionSchema| {
                let mut choice = ConnectionChoice::from(connection);
                printer.id(&mut choice.connection_id);
                choice
            };
            known.iter().flat_map(|known| &known.connections).map(choice).collect()
        };
        self.slots.iter().flat_map(of).collect()
    }
}
