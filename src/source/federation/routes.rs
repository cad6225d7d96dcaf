//! Which source has which connection, and which streams.
//!
//! Known from each source's schema, which is read when a call meets a connection that nobody knows, and anew
//! beside the calls when it has grown old. A source that does not answer holds up only the calls that need it.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::task::AbortHandle;
use tokio::time::timeout;

use super::failures::Failures;
use super::guarded::Guarded;
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
const SEEN_MOST: usize = 1_000;

/// How long, after one source has said that a connection is its own, the others may still say so too.
const COLLISION_WAIT: Duration = Duration::from_millis(250);

/// What is known of every source.
#[derive(Debug)]
pub(super) struct Routes {
    slots: Vec<Arc<Slot>>,
}

#[derive(Debug)]
struct Slot {
    source: Arc<Guarded>,
    known: RwLock<Option<Known>>,
    /// Connections of hits and records that it gave, for a source whose schema cannot be read.
    seen: Mutex<HashSet<ConnectionId>>,
    /// Held while the schema is read, so that it is read once for all who wait for it.
    reading: tokio::sync::Mutex<()>,
    /// The reading beside the calls.
    beside: Mutex<Option<AbortHandle>>,
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
        *self.known.write().unwrap_or_else(PoisonError::into_inner) = Some(Known::of(schema));
    }

    /// Reads the schema, unless another call has done so in the meantime. Waiting for that call counts as part of the
    /// source's deadline: reads that fail one after the other would go on beyond it.
    async fn read(&self) -> Result<(), SourceError> {
        let after = self.source.deadline();
        let read = timeout(after, self.read_in_turn()).await;
        read.unwrap_or(Err(SourceError::RetryAfterTimeout { after }))
    }

    async fn read_in_turn(&self) -> Result<(), SourceError> {
        let asked_at = Instant::now();
        let _reading = self.reading.lock().await;
        if asked_at.elapsed() >= self.source.deadline() {
            return Err(SourceError::RetryAfterTimeout { after: self.source.deadline() });
        }
        let is_new = |known: &Known| known.read_at > asked_at;
        if self.known.read().unwrap_or_else(PoisonError::into_inner).as_ref().is_some_and(is_new) {
            return Ok(());
        }
        self.learn(&self.source.schema().await?);
        Ok(())
    }

    /// Reads the schema beside the calls, unless a call reads it now. It does not wait for that call: a source that left it
    /// without an answer would be asked again after its deadline, for no one.
    async fn read_beside(&self) {
        if let Ok(_reading) = self.reading.try_lock()
            && let Ok(schema) = self.source.schema().await
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
    pub(super) fn new(sources: &[Arc<Guarded>]) -> Self {
        let slot = |source: &Arc<Guarded>| Slot {
            source: Arc::clone(source),
            known: RwLock::default(),
            seen: Mutex::default(),
            reading: tokio::sync::Mutex::default(),
            beside: Mutex::default(),
        };
        Self { slots: sources.iter().map(slot).map(Arc::new).collect() }
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
        for connection in connections {
            if seen.len() < SEEN_MOST && !seen.contains(connection) {
                seen.insert(connection.clone());
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
                *beside = Some(tokio::spawn(async move { slot.read_beside().await }).abort_handle());
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
    pub(super) async fn source_of(&self, connection: &ConnectionId) -> Result<usize, SourceError> {
        self.freshen();
        let (mut owners, mut failed) = (self.owners(connection), Failures::default());
        if owners.is_empty() {
            failed = self.look_for(connection).await;
            owners = self.owners(connection);
        }
        match owners.as_slice() {
            [only] => Ok(*only),
            [] if failed.is_empty() => Err(SourceError::UseKnownConnection {
                asked: connection.to_string(),
                choices: self.choices(),
            }),
            // A source that cannot tell its connections can still have this one, and says so itself.
            [] if let Some(only) = self.only_one_that_cannot_tell(&failed) => Ok(only),
            [] if failed.len() == 1 => Err(failed.instead_of_an_answer("")),
            [] => Err(failed.none_answered(format!("no source that answers has connection `{connection}`"))),
            several => Err(SourceError::ChooseSource {
                what: format!("connection `{connection}`"),
                sources: several.iter().filter_map(|source| self.name(*source)).collect(),
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

    /// Asks every source for its schema until one has the connection, and a little longer.
    async fn look_for(&self, connection: &ConnectionId) -> Failures {
        let old = self.slots.iter().filter(|slot| slot.is_older_than(READ_AGAIN_AFTER));
        let mut reads: FuturesUnordered<_> =
            old.map(|slot| async move { (slot, slot.read().await) }).collect();
        let mut failed = Failures::default();
        while let Some((slot, read)) = reads.next().await {
            if let Err(error) = read {
                failed.add(slot.source.name(), error);
            } else if slot.has(connection) {
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
            let known = slot.known.read().unwrap_or_else(PoisonError::into_inner);
            known.iter().flat_map(|known| &known.connections).map(ConnectionChoice::from).collect()
        };
        self.slots.iter().flat_map(of).collect()
    }
}
