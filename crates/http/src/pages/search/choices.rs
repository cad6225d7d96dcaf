//! Accounts, streams and kinds to choose from.

use std::collections::BTreeSet;

use fetchwell_core::handle::ConnectionId;
use fetchwell_core::record::{ConnectionSchema, Schema};

/// Maximum number of accounts, streams and kinds to choose from. Others are named in the query.
const MAX_CHOICES: usize = 100;

/// The connections of a source, as far as a page shows them.
#[derive(Debug, Default)]
pub(super) struct Choices<'a> {
    connections: &'a [ConnectionSchema],
    /// Sources that did not answer.
    pub(super) unavailable: Vec<String>,
}

impl<'a> Choices<'a> {
    /// Creates the choices of a schema. There are none if it is unknown.
    pub(super) fn new(schema: Option<&'a Schema>) -> Self {
        let Some(schema) = schema else { return Self::default() };
        let unavailable = schema.unavailable.iter().map(|missing| missing.source.to_string()).collect();
        Self { connections: &schema.connections, unavailable }
    }

    /// Returns all connections.
    pub(super) fn connections(&self) -> &'a [ConnectionSchema] {
        self.connections
    }

    /// Returns the id and the label of accounts.
    pub(super) fn accounts(&self) -> Vec<(&'a str, &'a str)> {
        let pair = |connection: &'a ConnectionSchema| (connection.connection_id.as_str(), label(connection));
        self.connections.iter().take(MAX_CHOICES).map(pair).collect()
    }

    /// Returns the names of streams.
    pub(super) fn streams(&self) -> Vec<(&'a str, &'a str)> {
        let streams = self.connections.iter().flat_map(|connection| &connection.streams);
        distinct(streams.map(|stream| stream.name.as_str()))
    }

    /// Returns the keys of connectors.
    pub(super) fn kinds(&self) -> Vec<(&'a str, &'a str)> {
        distinct(self.connections.iter().filter_map(|connection| connection.connector_key.as_deref()))
    }

    /// Returns the connections of a kind.
    pub(super) fn of_kind(&self, kind: &str) -> impl Iterator<Item = &'a ConnectionSchema> {
        let is_of_kind =
            move |connection: &&ConnectionSchema| connection.connector_key.as_deref() == Some(kind);
        self.connections.iter().filter(is_of_kind)
    }

    /// Returns a connection.
    pub(super) fn connection(&self, id: &ConnectionId) -> Option<&'a ConnectionSchema> {
        self.connections.iter().find(|connection| connection.connection_id == *id)
    }
}

/// Returns the label of a connection, or else its id.
pub(super) fn label(connection: &ConnectionSchema) -> &str {
    let label = connection.display_name.as_deref().map(str::trim).filter(|label| !label.is_empty());
    label.unwrap_or(connection.connection_id.as_str())
}

fn distinct<'a>(names: impl Iterator<Item = &'a str>) -> Vec<(&'a str, &'a str)> {
    let names: BTreeSet<&str> = names.collect();
    names.into_iter().take(MAX_CHOICES).map(|name| (name, name)).collect()
}
