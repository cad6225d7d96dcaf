//! Connections and streams of each source.
//!
//! `Routes` knows them from the schemas. A schema is read when a call names an unknown connection, and again in the
//! background when it is older than a minute. A source that does not answer delays only the calls that need it.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use fetchwell_callers::CallContext;
use fetchwell_core::handle::{ConnectionId, SourceName, StreamName};
use fetchwell_core::record::{ConnectionSchema, Schema};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use parking_lot::{Mutex, RwLock};
use tokio::task::AbortHandle;
use tokio::time::timeout;

use super::failures::Failures;
use super::guarded::GuardedSource;
use super::names::{Names, unqualified};
use crate::{ConnectionChoice, Source, SourceError};

/// Age from which a schema is read again in the background.
const MAX_AGE: Duration = Duration::from_secs(60);

/// Maximum age of a schema that excludes its source from reads of a stream. An import may add the stream at any time.
const MAX_EXCLUDING_AGE: Duration = Duration::from_secs(5);

/// Minimum age of a schema that is read again for an unknown connection, since a client may ask for one any number of
/// times.
const MIN_REREAD_AGE: Duration = Duration::from_secs(1);

/// Maximum number of connections that are remembered of a source without a readable schema.
const MAX_SEEN: usize = 1_000;

/// Time that other sources have to report the same connection after the first one did.
const COLLISION_WAIT: Duration = Duration::from_millis(250);

/// Connections and streams of all sources.
#[derive(Debug)]
pub(super) struct Routes {
    slots: Vec<Arc<Slot>>,
    names: Arc<Names>,
}

#[derive(Debug)]
struct Slot {
    source: Arc<GuardedSource>,
    names: Arc<Names>,
    known: RwLock<Option<SchemaSnapshot>>,
    /// Connections of hits and records, for a source without a readable schema.
    seen: Mutex<HashSet<ConnectionId>>,
    /// Held while the schema is read, so that concurrent calls read it once.
    reading: tokio::sync::Mutex<()>,
    /// Read in the background.
    background: Mutex<Option<AbortHandle>>,
    /// True if a read in the background was requested.
    was_requested: AtomicBool,
}

#[derive(Debug)]
struct SchemaSnapshot {
    connections: Vec<ConnectionSchema>,
    by_id: HashMap<ConnectionId, HashSet<StreamName>>,
    read_at: Instant,
}

impl SchemaSnapshot {
    fn from_schema(schema: &Schema) -> Self {
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
        let known = self.known.read();
        known.as_ref().is_none_or(|known| known.read_at.elapsed() >= age)
    }

    fn learn(&self, schema: &Schema) {
        self.names.learn(self.source.name(), schema);
        *self.known.write() = Some(SchemaSnapshot::from_schema(schema));
    }

    /// Reads the schema, unless a concurrent call has just read it. Waiting for that call counts towards the
    /// deadline, because otherwise failing reads would add up.
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
        if self.known.read().as_ref().is_some_and(|known| known.read_at > asked_at) {
            return Ok(());
        }
        self.learn(&self.source.own_schema(context).await?);
        Ok(())
    }

    /// Reads the schema in the background, unless a call reads it now. Waiting for that call would read the schema of
    /// an unresponsive source again when no call needs it.
    async fn read_in_background(&self) {
        if let Ok(_reading) = self.reading.try_lock()
            && let Ok(schema) = self.source.own_schema(&CallContext::default()).await
        {
            self.learn(&schema);
        }
    }

    fn has(&self, connection: &ConnectionId) -> bool {
        let known = self.known.read();
        match &*known {
            Some(known) => known.by_id.contains_key(connection),
            None => self.seen.lock().contains(connection),
        }
    }
}

impl Slot {
    fn is_unread(&self) -> bool {
        self.known.read().is_none()
    }

    /// Returns true if the id is `ID@SOURCE` of a connection of this source.
    fn has_qualified(&self, connection: &ConnectionId) -> bool {
        unqualified(self.source.name(), connection).is_some_and(|own| self.has(&own))
    }
}

impl Drop for Routes {
    fn drop(&mut self) {
        for slot in &self.slots {
            if let Some(background) = slot.background.lock().take() {
                background.abort();
            }
        }
    }
}

impl Routes {
    pub(super) fn new(sources: &[Arc<GuardedSource>], names: Arc<Names>) -> Self {
        let slot = |source: &Arc<GuardedSource>| Slot {
            source: Arc::clone(source),
            names: Arc::clone(&names),
            known: RwLock::default(),
            seen: Mutex::default(),
            reading: tokio::sync::Mutex::default(),
            background: Mutex::default(),
            was_requested: AtomicBool::new(false),
        };
        Self { slots: sources.iter().map(slot).map(Arc::new).collect(), names }
    }

    /// Returns the ids under which connections are printed.
    pub(super) fn names(&self) -> Arc<Names> {
        Arc::clone(&self.names)
    }

    /// Stores a schema that was read for another reason.
    pub(super) fn learn(&self, source: usize, schema: &Schema) {
        if let Some(slot) = self.slots.get(source) {
            slot.learn(schema);
        }
    }

    /// Remembers the connections of hits or rows of a source, so that their printed handles can be resolved. Only
    /// needed until the source's schema is known.
    pub(super) fn remember<'a>(
        &self,
        source: &SourceName,
        connections: impl Iterator<Item = &'a ConnectionId>,
    ) {
        let Some(slot) = self.slots.iter().find(|slot| slot.source.name() == source) else { return };
        if slot.known.read().is_some() {
            return;
        }
        let mut seen = slot.seen.lock();
        for connection in connections.map(|printed| self.names.own(source, printed)) {
            if seen.len() < MAX_SEEN && !seen.contains(&connection) {
                seen.insert(connection);
            }
        }
    }

    /// Starts background reads of schemas that are old or unknown.
    pub(super) fn refresh(&self) {
        for slot in self.slots.iter().filter(|slot| slot.is_older_than(MAX_AGE)) {
            let mut background = slot.background.lock();
            if background.as_ref().is_none_or(AbortHandle::is_finished) {
                let slot = Arc::clone(slot);
                // The calls that read the source report its error.
                let first =
                    (!slot.was_requested.swap(true, Ordering::Relaxed)).then(|| self.names.first_read());
                let read = async move {
                    slot.read_in_background().await;
                    drop(first);
                };
                *background = Some(tokio::spawn(read).abort_handle());
            }
        }
    }

    /// Returns a connection that two sources have.
    pub(super) fn collision(&self) -> Option<ConnectionId> {
        let mut known: HashSet<ConnectionId> = HashSet::new();
        for slot in &self.slots {
            let own = slot.known.read();
            for connection in own.iter().flat_map(|known| known.by_id.keys()) {
                if !known.insert(connection.clone()) {
                    return Some(connection.clone());
                }
            }
        }
        None
    }

    /// Returns true if a source has a stream, or `None` if that is unknown or the schema is too old.
    pub(super) fn has_stream(&self, source: usize, stream: &StreamName) -> Option<bool> {
        let known = self.slots.get(source)?.known.read();
        let known = known.as_ref()?;
        let has = known.by_id.values().any(|streams| streams.contains(stream));
        (has || known.read_at.elapsed() < MAX_EXCLUDING_AGE).then_some(has)
    }

    /// Returns all known streams, in the order of the sources.
    pub(super) fn streams(&self) -> Vec<StreamName> {
        let mut names = Vec::new();
        for slot in &self.slots {
            let known = slot.known.read();
            for stream in known.iter().flat_map(|known| &known.connections).flat_map(|c| &c.streams) {
                if !names.contains(&stream.name) {
                    names.push(stream.name.clone());
                }
            }
        }
        names
    }

    /// Returns the index of the one source that has a connection.
    pub(super) async fn source_of(
        &self,
        context: &CallContext,
        connection: &ConnectionId,
    ) -> Result<usize, SourceError> {
        self.refresh();
        let (mut owners, mut failed) = (self.owners(connection), Failures::default());
        if owners.is_empty() && (self.has_unread() || self.qualified(connection).is_none()) {
            failed = self.find_connection(context, connection).await;
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
            // A source without a readable schema may have the connection, and its answer will tell.
            [] if let Some(only) = self.only_one_that_cannot_tell(&failed) => Ok(only),
            [] if failed.len() == 1 => Err(failed.into_error("")),
            [] => Err(failed.all_failed(format!("no source that answers has connection `{connection}`"))),
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

    /// Returns the index of the source in `ID@SOURCE`.
    fn qualified(&self, connection: &ConnectionId) -> Option<usize> {
        self.slots.iter().position(|slot| slot.has_qualified(connection))
    }

    fn has_unread(&self) -> bool {
        self.slots.iter().any(|slot| slot.is_unread())
    }

    /// Returns the choice that names a connection together with its source.
    fn choice(&self, source: usize, connection: &ConnectionId) -> Option<ConnectionChoice> {
        let slot = self.slots.get(source)?;
        let known = slot.known.read();
        let known = known.iter().flat_map(|known| &known.connections);
        let label = known
            .filter(|known| known.connection_id == *connection)
            .find_map(|known| known.display_name.clone());
        let connection_id = self.names.printed(slot.source.name(), connection);
        Some(ConnectionChoice { connection_id, display_name: label })
    }

    /// Reads the schemas of all sources until one has the connection, and then waits briefly for the others.
    async fn find_connection(&self, context: &CallContext, connection: &ConnectionId) -> Failures {
        let old = self.slots.iter().filter(|slot| slot.is_older_than(MIN_REREAD_AGE));
        let mut reads: FuturesUnordered<_> =
            old.map(|slot| async move { (slot, slot.read(context).await) }).collect();
        let mut failed = Failures::default();
        while let Some((slot, read)) = reads.next().await {
            if let Err(error) = read {
                failed.add(slot.source.name(), error);
            } else if slot.has(connection) || slot.has_qualified(connection) {
                let rest = async { while reads.next().await.is_some() {} };
                // Sources that have not answered by then are not waited for.
                let _ = timeout(COLLISION_WAIT, rest).await;
                break;
            }
        }
        failed
    }

    fn choices(&self) -> Vec<ConnectionChoice> {
        let of = |slot: &Arc<Slot>| -> Vec<ConnectionChoice> {
            let printer = self.names.printer(slot.source.name(), None);
            let known = slot.known.read();
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
