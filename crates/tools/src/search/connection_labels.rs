//! Labels of connections in the operators `connection:` and `account:`.

use fetchwell_core::handle::ConnectionId;
use fetchwell_core::record::{ConnectionSchema, Schema};
use fetchwell_source::{BoundSource, ConnectionChoice, SourceError};
use jiff::Zoned;

use super::query_language::{ParsedQuery, parse_query};

impl ParsedQuery {
    /// Parses a query, and replaces labels of connections by their ids. Reads the schema only if the query names a connection.
    ///
    /// # Errors
    ///
    /// Returns an error with the choices if several connections have a label.
    pub async fn read(text: &str, now: &Zoned, source: &BoundSource) -> Result<Self, SourceError> {
        let mut parsed = parse_query(text, now);
        // If the schema cannot be read, names are ids, and the search reports what is wrong with the source.
        if !parsed.connections.is_empty()
            && let Ok(schema) = source.schema().await
        {
            parsed.resolve_labels_in(&schema)?;
        }
        Ok(parsed)
    }

    /// Replaces labels of the connections of a schema by their ids.
    ///
    /// # Errors
    ///
    /// Returns an error with the choices if several connections have a label.
    pub fn resolve_labels_in(&mut self, schema: &Schema) -> Result<(), SourceError> {
        for connection in &mut self.connections {
            if let Some(id) = id_of_label(connection.as_str(), schema)? {
                *connection = id;
            }
        }
        Ok(())
    }
}

/// Returns the id of the connection that has a label, in any case. Returns `None` for an id, which takes precedence,
/// and for a name that no connection has.
fn id_of_label(name: &str, schema: &Schema) -> Result<Option<ConnectionId>, SourceError> {
    if schema.connections.iter().any(|connection| connection.connection_id.as_str() == name) {
        return Ok(None);
    }
    let label = |connection: &ConnectionSchema| connection.display_name.as_deref().map(folded);
    let has_label =
        |connection: &&ConnectionSchema| label(connection).is_some_and(|label| label == folded(name));
    let found: Vec<&ConnectionSchema> = schema.connections.iter().filter(has_label).collect();
    match found.as_slice() {
        [] => Ok(None),
        [only] => Ok(Some(only.connection_id.clone())),
        several => Err(SourceError::AmbiguousConnection {
            what: format!("the label `{name}`"),
            choices: several.iter().map(|connection| ConnectionChoice::from(*connection)).collect(),
        }),
    }
}

fn folded(label: &str) -> String {
    label.trim().to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Resolves the connection of a query and returns its id, or the ids of the choices.
    fn resolve(query: &str) -> Result<String, Vec<String>> {
        let connection = |(id, label): (&str, Option<&str>)| ConnectionSchema {
            source: None,
            connection_id: id.parse().unwrap(),
            display_name: label.map(str::to_owned),
            connector_key: None,
            streams: Vec::new(),
            routes: Vec::new(),
        };
        let connections = [
            ("cin_work", Some("Work mail")),
            ("cin_home", Some("Zuhause Äöü")),
            ("cin_one", Some("Notes")),
            ("cin_two", Some("notes ")),
            ("notes-of-work", Some("cin_work")),
            ("bare", None),
        ];
        let schema = Schema { connections: connections.map(connection).into(), ..Schema::default() };
        let mut parsed = parse_query(query, &Zoned::default());
        match parsed.resolve_labels_in(&schema) {
            Ok(()) => Ok(parsed.connections.first().unwrap().to_string()),
            Err(SourceError::AmbiguousConnection { choices, .. }) => {
                Err(choices.into_iter().map(|choice| choice.connection_id.to_string()).collect())
            }
            Err(error) => panic!("{error}"),
        }
    }

    #[test]
    fn labels_match_whole_and_in_any_case() {
        for (query, expect) in [
            ("connection:\"work MAIL\"", "cin_work"),
            ("account:\"zuhause äÖü\"", "cin_home"),
            ("account:bare", "bare"),
            ("connection:Work", "Work"),
            // An id takes precedence over a label.
            ("connection:cin_work", "cin_work"),
        ] {
            assert_eq!(resolve(query), Ok(expect.to_owned()), "{query}");
        }
        assert_eq!(resolve("account:NOTES"), Err(vec!["cin_one".to_owned(), "cin_two".to_owned()]));
    }
}
