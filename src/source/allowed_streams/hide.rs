//! What is left of an answer when only some streams may be seen. Pure.
//!
//! Answers keep what is of a stream on the list. `declaration` does the same for a connector's own text.

use std::collections::BTreeSet;
use std::fmt;

use super::declaration::visible_declaration;
use crate::handle::StreamName;
use crate::record::{ConnectionSchema, HitId, Record, Schema, StreamDetail};
use crate::source::{Change, Expansion, QueryFault, RecordsPage, SearchPage, SourceError};

/// The streams that may be seen.
#[derive(Debug)]
pub(super) struct Allowed(BTreeSet<StreamName>);

impl Allowed {
    pub(super) fn new(streams: Vec<StreamName>) -> Self {
        Self(streams.into_iter().collect())
    }

    pub(super) fn has(&self, stream: &StreamName) -> bool {
        self.0.contains(stream)
    }

    /// Those of them that any of these connections has, in the order of their names.
    pub(super) fn present_in(&self, connections: &[&ConnectionSchema]) -> Vec<StreamName> {
        let is_there = |name: &&StreamName| {
            connections.iter().flat_map(|connection| &connection.streams).any(|stream| stream.name == **name)
        };
        self.0.iter().filter(is_there).cloned().collect()
    }

    /// A connection without a stream to see is not seen either.
    pub(super) fn schema(&self, mut schema: Schema) -> Schema {
        for connection in &mut schema.connections {
            connection.streams.retain(|stream| self.has(&stream.name));
            connection.routes.retain(|route| self.has(&route.stream));
        }
        schema.connections.retain(|connection| !connection.streams.is_empty());
        schema
    }

    /// Hides the relations that lead elsewhere, also in the connector's own declaration.
    pub(super) fn hide_relations(&self, detail: &mut StreamDetail) {
        detail.relations.retain(|relation| self.has(&relation.stream));
        detail.declaration = detail.declaration.take().and_then(|given| {
            let leads_to_visible = |stream: &str| stream.parse().is_ok_and(|stream| self.has(&stream));
            visible_declaration(given, &leads_to_visible, &detail.relations)
        });
    }

    /// A hit that does not say what stream it is of may be of any.
    pub(super) fn hits(&self, mut page: SearchPage) -> SearchPage {
        let before = page.hits.len();
        page.hits.retain(|hit| match &hit.id {
            HitId::Record(address) => self.has(&address.stream),
            HitId::Opaque(_) | HitId::Nameless => false,
        });
        // A score tells how often a word is in all streams, hidden ones too.
        page.hits.iter_mut().for_each(|hit| hit.evidence.score = None);
        if page.hits.len() < before {
            // It counted what is hidden.
            page.count = None;
        }
        page
    }

    /// Rows are of the stream that was asked, unless the source is wrong.
    pub(super) fn rows(&self, mut page: RecordsPage) -> RecordsPage {
        let mut places = std::mem::take(&mut page.places).into_iter();
        let before = page.rows.len();
        for row in std::mem::take(&mut page.rows) {
            let place = places.next();
            let shown = match row {
                Change::Present(record) => {
                    self.record(*record).map(|record| Change::Present(Box::new(record)))
                }
                Change::Deleted { address, deleted_at } => {
                    self.has(&address.stream).then_some(Change::Deleted { address, deleted_at })
                }
            };
            if let Some(row) = shown {
                page.rows.push(row);
                page.places.extend(place);
            }
        }
        if page.rows.len() < before {
            // It counted what is hidden.
            page.count = None;
        }
        page
    }

    /// A record without related ones that may not be seen.
    pub(super) fn record(&self, mut record: Record) -> Option<Record> {
        record.expanded.retain_mut(|expanded| {
            let related = std::mem::take(&mut expanded.records);
            let before = related.len();
            expanded.records = related.into_iter().filter_map(|record| self.record(record)).collect();
            // A relation of which all is hidden does not exist.
            before == 0 || !expanded.records.is_empty()
        });
        self.has(&record.address.stream).then_some(record)
    }
}

impl fmt::Display for Allowed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(StreamName::as_str)).finish()
    }
}

/// Refuses relations that a stream, as it may be seen, does not have.
pub(super) fn check_relations(expand: &[Expansion], stream: &StreamDetail) -> Result<(), SourceError> {
    let Some(unknown) = expand.iter().find(|expansion| stream.relation(&expansion.relation).is_none()) else {
        return Ok(());
    };
    let known: Vec<&str> = stream.relations.iter().map(|relation| relation.name.as_str()).collect();
    Err(SourceError::CorrectQuery {
        fault: QueryFault::InvalidExpand,
        problem: format!("stream `{}` has no relation `{}`", stream.name, unknown.relation),
        hint: match known.as_slice() {
            [] => "The stream has no relations; leave `expand` out.".to_owned(),
            known => format!("Its relations are: {}.", known.join(", ")),
        },
    })
}
