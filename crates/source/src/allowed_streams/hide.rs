//! Removes hidden streams from answers. Pure.
//!
//! Records, hits and relations of streams outside the allow-list are dropped, together with counts and scores that
//! include them. `super::declaration` does the same for a connector's own text.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use fetchwell_core::handle::StreamName;
use fetchwell_core::record::{ConnectionSchema, HitId, Record, Schema, StreamDetail};

use super::declaration::visible_declaration;
use crate::{Change, Expansion, QueryFault, RecordsPage, SearchPage, SourceError};

/// Allow-list of streams.
#[derive(Debug)]
pub(super) struct AllowList(BTreeSet<StreamName>);

impl AllowList {
    pub(super) fn new(streams: Vec<StreamName>) -> Self {
        Self(streams.into_iter().collect())
    }

    pub(super) fn has(&self, stream: &StreamName) -> bool {
        self.0.contains(stream)
    }

    /// Returns the allowed streams that any of the connections has, ordered by name.
    pub(super) fn present_in(&self, connections: &[&ConnectionSchema]) -> Vec<StreamName> {
        let is_there = |name: &&StreamName| {
            connections.iter().flat_map(|connection| &connection.streams).any(|stream| stream.name == **name)
        };
        self.0.iter().filter(is_there).cloned().collect()
    }

    /// Removes hidden streams, and connections without a visible stream.
    pub(super) fn schema(&self, mut schema: Schema) -> Schema {
        for connection in &mut schema.connections {
            connection.streams.retain(|stream| self.has(&stream.name));
            connection.routes.retain(|route| self.has(&route.stream));
        }
        schema.connections.retain(|connection| !connection.streams.is_empty());
        schema
    }

    /// Removes relations that lead to hidden streams, also from the connector's own declaration.
    pub(super) fn hide_relations(&self, detail: &mut StreamDetail) {
        detail.relations.retain(|relation| self.has(&relation.stream));
        detail.declaration = detail.declaration.take().and_then(|given| {
            let leads_to_visible = |stream: &str| stream.parse().is_ok_and(|stream| self.has(&stream));
            let given = Arc::unwrap_or_clone(given);
            visible_declaration(given, &leads_to_visible, &detail.relations).map(Arc::new)
        });
    }

    /// Removes hits of hidden streams, and hits that do not name their stream.
    pub(super) fn hits(&self, mut page: SearchPage) -> SearchPage {
        let before = page.hits.len();
        page.hits.retain(|hit| match &hit.id {
            HitId::Record(address) => self.has(&address.stream),
            HitId::Opaque(_) | HitId::Nameless => false,
        });
        // A score depends on how often a word occurs in all streams, including hidden ones.
        for hit in &mut page.hits {
            hit.evidence.score = None;
            if let Some(explanation) = &mut hit.explanation {
                explanation.hide_statistics();
            }
        }
        if page.hits.len() < before {
            // The count includes hidden hits.
            page.count = None;
        }
        page
    }

    /// Removes rows of hidden streams. A correct source returns none for a visible stream.
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
            // The count includes hidden rows.
            page.count = None;
        }
        page
    }

    /// Returns a record without hidden related records, or `None` if its own stream is hidden.
    pub(super) fn record(&self, mut record: Record) -> Option<Record> {
        record.expanded.retain_mut(|expanded| {
            let related = std::mem::take(&mut expanded.records);
            let before = related.len();
            expanded.records = related.into_iter().filter_map(|record| self.record(record)).collect();
            // A relation with only hidden records must not appear at all.
            before == 0 || !expanded.records.is_empty()
        });
        self.has(&record.address.stream).then_some(record)
    }
}

impl fmt::Display for AllowList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(StreamName::as_str)).finish()
    }
}

/// Refuses relations that the visible part of a stream does not have.
pub(super) fn check_relations(expand: &[Expansion], stream: &StreamDetail) -> Result<(), SourceError> {
    let Some(unknown) = expand.iter().find(|expansion| stream.relation(&expansion.relation).is_none()) else {
        return Ok(());
    };
    let known: Vec<&str> = stream.relations.iter().map(|relation| relation.name.as_str()).collect();
    Err(SourceError::InvalidQuery {
        fault: QueryFault::InvalidExpand,
        problem: format!("stream `{}` has no relation `{}`", stream.name, unknown.relation),
        hint: match known.as_slice() {
            [] => "The stream has no relations; leave `expand` out.".to_owned(),
            known => format!("Its relations are: {}.", known.join(", ")),
        },
    })
}
