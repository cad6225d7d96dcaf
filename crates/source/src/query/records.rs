//! Query for pages of a stream's records, or for its changes, and its answer.

use fetchwell_core::handle::{ConnectionId, RecordAddress, StreamName};
use fetchwell_core::memory::MemoryPermit;
use fetchwell_core::record::{Record, SortValue, Unavailable};
use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{Filter, Purpose, SearchText};

/// Query for a page of one stream's records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordsQuery {
    /// Stream to list.
    pub stream: StreamName,
    /// Connection to list; `None` includes every connection that has the stream, in one order.
    pub connection: Option<ConnectionId>,
    /// Fields to return.
    pub selection: Selection,
    /// Filter on the records that are listed.
    pub filter: Filter,
    /// Words that each record must have, with phrases and exclusions; other operators are refused. `None` lists all records.
    pub words: Option<SearchText>,
    /// Direction of the order by the stream's cursor field. Ascending, a missing value is least, and ties are ordered
    /// by key, then by connection; descending is the exact reverse.
    pub direction: Direction,
    /// Field to sort by; `None` sorts by the stream's cursor field.
    pub sort: Option<String>,
    /// Count of all matching records to return.
    pub count: CountMode,
    /// Relations to expand.
    pub expand: Vec<Expansion>,
    /// Maximum number of records, 1 to 100.
    pub limit: usize,
    /// True if the page returns the sort value of each row, so that pages of several sources can be merged.
    pub placed: bool,
    /// Position to start from.
    pub start: Start,
    /// Purpose of the read.
    pub purpose: Purpose,
}

impl RecordsQuery {
    /// Creates a query for the first `limit` records of a stream, with all fields.
    #[must_use]
    pub fn new(stream: StreamName, limit: usize) -> Self {
        Self {
            stream,
            connection: None,
            selection: Selection::default(),
            filter: Filter::default(),
            words: None,
            direction: Direction::default(),
            sort: None,
            count: CountMode::default(),
            expand: Vec::new(),
            limit,
            placed: false,
            start: Start::default(),
            purpose: Purpose::Answer,
        }
    }

    /// Returns a digest of everything that must stay the same from page to page; a position of another query is
    /// rejected. Positions outlive the process and its release, so the form that is hashed must not change.
    pub fn fingerprint(&self) -> u64 {
        let connection = self.connection.as_ref().map(ConnectionId::as_str);
        let mut query = vec![json!(self.stream.as_str()), json!(connection), self.filter.to_json()];
        query.push(json!(self.direction.as_str()));
        query.extend(self.words.as_ref().map(SearchText::to_json));
        query.extend(self.sort.as_ref().map(|sort| json!({ "sort": sort })));
        let digest = Sha256::digest(Value::Array(query).to_string());
        digest.iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte))
    }
}

/// Fields of a record to return.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Selection {
    /// All fields of the record.
    #[default]
    All,
    /// Fields of these names.
    Fields(Vec<String>),
    /// Fields of a view that the stream declares.
    View(String),
}

/// Direction of the order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
pub enum Direction {
    /// Ascending: oldest or least first.
    #[serde(rename = "asc")]
    Ascending,
    /// Descending: newest or greatest first.
    #[default]
    #[serde(rename = "desc")]
    Descending,
}

impl Direction {
    /// Returns the name of the direction in a request.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ascending => "asc",
            Self::Descending => "desc",
        }
    }
}

/// Count of matching records that a query asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CountMode {
    /// Do not count.
    #[default]
    None,
    /// Count if it is cheap; the count may be an estimate.
    Estimated,
    /// Count all matching records.
    Exact,
}

/// Count of matching records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Count {
    /// Number of records.
    pub value: u64,
    /// Accuracy of the number.
    pub accuracy: Accuracy,
}

/// Accuracy of a count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Accuracy {
    /// The number is exact.
    Exact,
    /// The number is an estimate.
    Estimated,
    /// The number is a lower bound.
    LowerBound,
}

impl Count {
    /// Creates an exact count.
    #[must_use]
    pub fn exact(value: u64) -> Self {
        Self { value, accuracy: Accuracy::Exact }
    }

    /// Adds two counts. The sum is an estimate if either is one, because an estimate makes a bound meaningless.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let accuracy = match (self.accuracy, other.accuracy) {
            (Accuracy::Estimated, _) | (_, Accuracy::Estimated) => Accuracy::Estimated,
            (Accuracy::LowerBound, _) | (_, Accuracy::LowerBound) => Accuracy::LowerBound,
            (Accuracy::Exact, Accuracy::Exact) => Accuracy::Exact,
        };
        Self { value: self.value.saturating_add(other.value), accuracy }
    }

    /// Returns the same number as an estimate.
    #[must_use]
    pub fn about(self) -> Self {
        Self { accuracy: Accuracy::Estimated, ..self }
    }

    /// Returns the same number as a lower bound, because records may have been left out.
    #[must_use]
    pub fn at_least(self) -> Self {
        self.and(Self { value: 0, accuracy: Accuracy::LowerBound })
    }
}

/// Relation to expand, one level deep.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expansion {
    /// Name of the relation.
    pub relation: String,
    /// Maximum number of related records per record.
    pub limit: Option<usize>,
}

/// Start of a page.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Start {
    /// At the first record.
    #[default]
    First,
    /// After the page that returned this position.
    After(RecordsPosition),
    /// Changes and deletions since a token, in the order in which they were made. `None` starts with everything.
    Changes(Option<ChangesToken>),
}

/// Position in a list. Only the source that issued it can read it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, Deserialize)]
pub struct RecordsPosition(pub String);

/// State of a stream from which later changes can be requested. Only the source that issued it can read it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChangesToken {
    /// State from the source. It only leaves the process sealed, so no client can write one.
    Verified(Vec<u8>),
    /// Text that a client sent unsealed: a record server's own token, or one of an earlier release.
    Unverified(String),
}

/// Source and connection of a stream's changes. A change token is bound to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangesOrigin {
    /// Identity of the one source that has the changes.
    pub source: String,
    /// That source's own id of the connection; `None` for a server without connection ids, or if there are several.
    pub connection: Option<ConnectionId>,
}

/// Page of records in the order of the source.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RecordsPage {
    /// Records or changes on the page.
    pub rows: Vec<Change>,
    /// Sort value of each row, if the query asked for it; otherwise empty.
    pub places: Vec<SortValue>,
    /// Position of the next page; `None` at the end and for changes.
    pub next: Option<RecordsPosition>,
    /// Token for later changes, if the query asked for changes.
    pub next_changes: Option<ChangesToken>,
    /// True if there are more records than on this page.
    pub has_more: bool,
    /// Total count, if the query asked for it.
    pub count: Option<Count>,
    /// Sources that are missing from the page.
    pub unavailable: Vec<Unavailable>,
    /// Notes for the reader, in our own words.
    pub notes: Vec<String>,
}

impl RecordsPage {
    /// Returns the page with a memory permit that all of its records share.
    pub fn with_memory(mut self, memory: &MemoryPermit) -> Self {
        for row in &mut self.rows {
            if let Change::Present(record) = row {
                record.memory = memory.clone();
            }
        }
        self
    }
}

/// Current state of a record, or its deletion.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// The record exists; this is its current state.
    Present(Box<Record>),
    /// The record was deleted.
    Deleted {
        /// Address of the deleted record.
        address: RecordAddress,
        /// Time of the deletion, if known.
        deleted_at: Option<String>,
    },
}

impl Change {
    /// Returns the address of the record.
    #[must_use]
    pub fn address(&self) -> &RecordAddress {
        match self {
            Self::Present(record) => &record.address,
            Self::Deleted { address, .. } => address,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fingerprint_of_a_list_is_the_same_in_every_version() {
        let filter = serde_json::from_str(r#"{"from": "Ann", "amount": {"gte": 10}}"#).unwrap();
        let connection = Some("work".parse().unwrap());
        let query = RecordsQuery { connection, filter, ..RecordsQuery::new("messages".parse().unwrap(), 5) };
        // SHA-256 of ["messages","work",[["from","eq","Ann"],["amount","gte",10]],"desc"], the first 8 bytes.
        assert_eq!(query.fingerprint(), 0xd278_fd72_102d_9025);
        let words = |text: &str| RecordsQuery { words: Some(SearchText::plain(text)), ..query.clone() };
        assert_ne!(words("a").fingerprint(), query.fingerprint());
        assert_ne!(words("a").fingerprint(), words("b").fingerprint());
        let sort = |field: &str| RecordsQuery { sort: Some(field.to_owned()), ..query.clone() };
        assert_ne!(sort("a").fingerprint(), query.fingerprint());
        assert_ne!(sort("a").fingerprint(), sort("b").fingerprint());
    }
}
