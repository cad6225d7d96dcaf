//! The names of a scope as rows of a store.

use fetchwell_core::handle::RecordScope;
use fetchwell_core::saturate::saturated;

use super::export::ExportedStream;
use super::removal::RemovalCounts;
use super::scope_error::ScopeError;

/// Rows that a store has for the names of a scope.
#[derive(Debug, Clone, Default)]
pub struct ScopeLookup {
    /// Row of the connection, if it exists.
    pub connection: Option<i64>,
    /// Ids of all connections, in the order in which they were created.
    pub known_connections: Vec<String>,
    /// Streams of the connection, in the order in which they were created.
    pub streams: Vec<ExportedStream>,
    /// Record of the scope, if it names one that exists.
    pub record: Option<RecordRow>,
}

/// Rows that a scope names.
#[derive(Debug, Clone)]
pub struct ScopeRows {
    /// Row of the connection.
    pub connection: i64,
    /// Streams in the order in which they were created; the only one, if the scope names it.
    pub streams: Vec<ExportedStream>,
    /// Record of the only stream, if the scope names one.
    pub record: Option<RecordRow>,
}

/// Row of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordRow {
    /// Row id, or the version of the record in a store without row ids.
    pub row: i64,
    /// True if only the history of a deleted record is left.
    pub is_deleted: bool,
}

impl ScopeLookup {
    /// Returns the rows of a scope.
    ///
    /// # Errors
    ///
    /// The store does not have the connection, the stream or the record.
    pub fn resolve(self, scope: &RecordScope) -> Result<ScopeRows, ScopeError> {
        let Self { connection, known_connections, mut streams, record } = self;
        let asked = scope.connection.to_string();
        let Some(connection) = connection else {
            return Err(ScopeError::ConnectionNotFound { asked, known: known_connections });
        };
        if let Some(stream) = &scope.stream {
            if !streams.iter().any(|known| known.name == stream.as_str()) {
                return Err(ScopeError::StreamNotFound {
                    connection: asked,
                    asked: stream.to_string(),
                    known: streams.into_iter().map(|stream| stream.name).collect(),
                });
            }
            streams.retain(|known| known.name == stream.as_str());
        }
        if scope.record.is_some() && record.is_none() {
            return Err(ScopeError::RecordNotFound(scope.to_string()));
        }
        Ok(ScopeRows { connection, streams, record })
    }
}

impl ScopeRows {
    /// Returns the row ids of the streams.
    #[must_use]
    pub fn stream_rows(&self) -> Vec<i64> {
        self.streams.iter().map(ExportedStream::row).collect()
    }

    /// Returns the row ids of the streams that a removal deletes, none if it deletes one record.
    #[must_use]
    pub fn removed_streams(&self) -> Vec<i64> {
        if self.record.is_some() { Vec::new() } else { self.stream_rows() }
    }

    /// Returns the numbers of a removal of the scope. `rows` is the number of rows of [`Self::removed_streams`], with those of
    /// deleted records.
    #[must_use]
    pub fn removal_counts(&self, scope: &RecordScope, rows: u64) -> RemovalCounts {
        if let Some(record) = self.record {
            let deleted = u64::from(record.is_deleted);
            return RemovalCounts { deleted, records: 1 - deleted, ..RemovalCounts::default() };
        }
        let records = self.streams.iter().map(|stream| stream.records).sum();
        RemovalCounts {
            connections: u64::from(scope.stream.is_none()),
            streams: saturated::<u64>(self.streams.len()),
            records,
            deleted: rows.saturating_sub(records),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lookup() -> ScopeLookup {
        let stream = |row, name: &str| ExportedStream::new(row, name.to_owned(), 2);
        ScopeLookup {
            connection: Some(1),
            known_connections: vec!["notes".to_owned()],
            streams: vec![stream(3, "files"), stream(4, "pages")],
            record: None,
        }
    }

    #[test]
    fn names_become_rows_or_an_error_with_choices() {
        let resolve = |scope: &str| lookup().resolve(&scope.parse().unwrap());
        assert_eq!(resolve("notes").unwrap().stream_rows(), [3, 4]);
        assert_eq!(resolve("notes/pages").unwrap().stream_rows(), [4]);
        assert_eq!(
            resolve("notes/mail").unwrap_err().to_string(),
            "the connection `notes` has no stream `mail`; existing streams: files, pages"
        );
        assert!(matches!(resolve("notes/pages:a").unwrap_err(), ScopeError::RecordNotFound(_)));
        let unknown = ScopeLookup { connection: None, ..lookup() }.resolve(&"mail".parse().unwrap());
        assert_eq!(
            unknown.unwrap_err().to_string(),
            "there is no connection `mail`; existing connections: notes"
        );
    }

    #[test]
    fn a_removal_counts_records_and_histories() {
        let scope: RecordScope = "notes".parse().unwrap();
        let counts = lookup().resolve(&scope).unwrap().removal_counts(&scope, 5);
        assert_eq!(counts, RemovalCounts { connections: 1, streams: 2, records: 4, deleted: 1 });
        let scope: RecordScope = "notes/files:a".parse().unwrap();
        let record = Some(RecordRow { row: 9, is_deleted: true });
        let rows = ScopeLookup { record, ..lookup() }.resolve(&scope).unwrap();
        assert!(rows.removed_streams().is_empty());
        assert_eq!(rows.removal_counts(&scope, 0), RemovalCounts { deleted: 1, ..RemovalCounts::default() });
    }
}
