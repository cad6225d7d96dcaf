//! Printed ids of connections. An id that several sources have is printed as `ID@SOURCE`.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use fetchwell_core::handle::{ConnectionId, RecordAddress, SourceName};
use fetchwell_core::record::{Hit, HitId, Record, Schema};
use parking_lot::RwLock;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::{Change, ConnectionChoice, SourceError};

/// Connections of each source, as far as their schemas are known.
#[derive(Debug)]
pub(super) struct Names {
    known: RwLock<HashMap<SourceName, HashSet<ConnectionId>>>,
    /// Number of schemas that are being read for the first time.
    first_reads: Arc<watch::Sender<usize>>,
}

/// Maximum time that an answer waits for schemas that are read for the first time, because the printed ids depend on
/// them.
const FIRST_READS_WAIT: Duration = Duration::from_millis(250);

/// First read of a schema, which ends when it is dropped.
#[derive(Debug)]
pub(super) struct FirstRead(Arc<watch::Sender<usize>>);

impl Drop for FirstRead {
    fn drop(&mut self) {
        self.0.send_modify(|reads| *reads = reads.saturating_sub(1));
    }
}

impl Default for Names {
    fn default() -> Self {
        Self { known: RwLock::default(), first_reads: Arc::new(watch::Sender::new(0)) }
    }
}

impl Names {
    /// Replaces the known connections of a source.
    pub(super) fn learn(&self, source: &SourceName, schema: &Schema) {
        let ids = schema.connections.iter().map(|connection| connection.connection_id.clone()).collect();
        self.known.write().insert(source.clone(), ids);
    }

    /// Counts a first read of a schema.
    pub(super) fn first_read(&self) -> FirstRead {
        self.first_reads.send_modify(|reads| *reads += 1);
        FirstRead(Arc::clone(&self.first_reads))
    }

    /// Waits a short time for schemas that are read for the first time. Later reads are not waited for.
    pub(super) async fn settle(&self) {
        let mut reads = self.first_reads.subscribe();
        let _ = timeout(FIRST_READS_WAIT, reads.wait_for(|reads| *reads == 0)).await;
    }

    /// Returns the id that a source itself has for a printed one.
    pub(super) fn own(&self, source: &SourceName, printed: &ConnectionId) -> ConnectionId {
        let known = self.known.read();
        let is_literal = known.get(source).is_some_and(|ids| ids.contains(printed));
        if is_literal { printed.clone() } else { unqualified(source, printed).unwrap_or(printed.clone()) }
    }

    /// Returns the printed id of a source's own one.
    pub(super) fn printed(&self, source: &SourceName, own: &ConnectionId) -> ConnectionId {
        let known = self.known.read();
        let mut others = known.iter().filter(|(name, _)| *name != source);
        if !others.any(|(_, ids)| ids.contains(own)) {
            return own.clone();
        }
        let qualified = format!("{own}@{source}").parse::<ConnectionId>();
        // A connection that really has this id would be indistinguishable.
        qualified.ok().filter(|id| known.values().all(|ids| !ids.contains(id))).unwrap_or_else(|| own.clone())
    }

    /// Returns the source of a printed id. Returns `None` if no known source has it, or several have.
    pub(super) fn source_of(&self, printed: &ConnectionId) -> Option<SourceName> {
        let known = self.known.read();
        let mut literal = known.iter().filter(|(_, ids)| ids.contains(printed)).map(|(source, _)| source);
        match (literal.next(), literal.next()) {
            (Some(source), None) => Some(source.clone()),
            (Some(_), Some(_)) => None,
            (None, _) => {
                let is_of = |source: &SourceName, ids: &HashSet<ConnectionId>| {
                    unqualified(source, printed).is_some_and(|own| ids.contains(&own))
                };
                known.iter().find(|(source, ids)| is_of(source, ids)).map(|(source, _)| source.clone())
            }
        }
    }

    /// Returns the printer for answers of a source to a call that named a connection.
    pub(super) fn printer<'a>(
        &'a self,
        source: &'a SourceName,
        asked: Option<&'a ConnectionId>,
    ) -> Printer<'a> {
        // A qualified id stays as the caller wrote it, even if the ids no longer collide.
        let asked = asked.map(|asked| (self.own(source, asked), asked)).filter(|(own, asked)| own != *asked);
        Printer { names: self, source, asked }
    }
}

/// Returns the connection in `ID@SOURCE`, or `None` if the id is not written like that.
pub(super) fn unqualified(source: &SourceName, printed: &ConnectionId) -> Option<ConnectionId> {
    printed.as_str().strip_suffix(source.as_str())?.strip_suffix('@')?.parse().ok()
}

/// Replaces own ids by printed ones in the answers of one source.
#[derive(Debug)]
pub(super) struct Printer<'a> {
    names: &'a Names,
    source: &'a SourceName,
    /// The source's own id of the connection in the call, and the id as it was written.
    asked: Option<(ConnectionId, &'a ConnectionId)>,
}

impl Printer<'_> {
    pub(super) fn id(&self, id: &mut ConnectionId) {
        *id = match &self.asked {
            Some((own, asked)) if own == id => (*asked).clone(),
            _ => self.names.printed(self.source, id),
        };
    }

    pub(super) fn address(&self, address: &mut RecordAddress) {
        if let Some(connection) = &mut address.connection {
            self.id(connection);
        }
    }

    pub(super) fn hit(&self, hit: &mut Hit) {
        if let HitId::Record(address) = &mut hit.id {
            self.address(address);
        }
    }

    pub(super) fn record(&self, record: &mut Record) {
        self.address(&mut record.address);
        for related in record.expanded.iter_mut().flat_map(|expanded| &mut expanded.records) {
            self.record(related);
        }
    }

    pub(super) fn change(&self, change: &mut Change) {
        match change {
            Change::Present(record) => self.record(record),
            Change::Deleted { address, .. } => self.address(address),
        }
    }

    /// Replaces the ids in the choices of an error, so that the caller can use them.
    pub(super) fn error(&self, mut error: SourceError) -> SourceError {
        let choices: &mut [ConnectionChoice] = match &mut error {
            SourceError::Refused(refusal) => &mut refusal.choices,
            SourceError::AmbiguousConnection { choices, .. }
            | SourceError::ConnectionNotFound { choices, .. } => choices,
            _ => &mut [],
        };
        choices.iter_mut().for_each(|choice| self.id(&mut choice.connection_id));
        error
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fetchwell_core::record::ConnectionSchema;

    fn names(sources: &[(&str, &[&str])]) -> Names {
        let names = Names::default();
        for (source, ids) in sources {
            let connection = |id: &&str| ConnectionSchema {
                source: None,
                connection_id: id.parse().unwrap(),
                display_name: None,
                connector_key: None,
                streams: Vec::new(),
                routes: Vec::new(),
            };
            let schema = Schema { connections: ids.iter().map(connection).collect(), ..Schema::default() };
            names.learn(&source.parse().unwrap(), &schema);
        }
        names
    }

    #[track_caller]
    fn check(names: &Names, source: &str, own: &str, printed: &str) {
        let (source, own, printed) =
            (source.parse().unwrap(), own.parse().unwrap(), printed.parse::<ConnectionId>().unwrap());
        assert_eq!(names.printed(&source, &own), printed);
        assert_eq!(names.own(&source, &printed), own);
    }

    #[test]
    fn only_ids_that_collide_are_qualified() {
        let names = names(&[("home", &["cin", "a"]), ("work", &["cin", "b"])]);
        check(&names, "home", "cin", "cin@home");
        check(&names, "work", "cin", "cin@work");
        check(&names, "work", "b", "b");
        // A qualified id is accepted after the collision has ended.
        let own = names.own(&"work".parse().unwrap(), &"b@work".parse().unwrap());
        assert_eq!(own.as_str(), "b");
    }

    #[test]
    fn the_source_of_a_printed_id_is_known_unless_several_have_it() {
        let names = names(&[("home", &["cin", "a"]), ("work", &["cin", "b"])]);
        for (printed, expect) in [
            ("a", Some("home")),
            ("cin@work", Some("work")),
            ("b@work", Some("work")),
            ("cin", None),
            ("c", None),
        ] {
            let source = names.source_of(&printed.parse().unwrap());
            assert_eq!(source.as_ref().map(SourceName::as_str), expect, "{printed}");
        }
    }

    #[test]
    fn a_real_connection_of_the_literal_name_wins() {
        let names = names(&[("home", &["cin", "cin@home"]), ("work", &["cin"])]);
        check(&names, "home", "cin@home", "cin@home");
        check(&names, "home", "cin", "cin");
        check(&names, "work", "cin", "cin@work");
    }
}
