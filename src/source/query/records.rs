//! Pages of the records of one stream, and of what changed in it.

use serde::Deserialize;
use serde_json::json;
use sha2::{Digest, Sha256};

use super::Filter;
use crate::handle::{ConnectionId, RecordAddress, StreamName};
use crate::memory::MemoryPermit;
use crate::record::{Record, SortValue, Unavailable};

/// A page of one stream's records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordsQuery {
    /// The stream.
    pub stream: StreamName,
    /// Only of this connection, when given; else of every connection that has the stream, in one order.
    pub connection: Option<ConnectionId>,
    /// Which fields.
    pub selection: Selection,
    /// Only records that pass it.
    pub filter: Filter,
    /// By the stream's cursor field, in this direction. Ascending, a missing value is least and ties are by key,
    /// then by connection; descending is all of that backwards.
    pub direction: Direction,
    /// The field to sort by, which has to be the stream's cursor field; that field when `None`.
    pub sort: Option<String>,
    /// Whether to count.
    pub count: CountMode,
    /// Related records to bring along.
    pub expand: Vec<Expansion>,
    /// How many at most, 1 to 100.
    pub limit: usize,
    /// Whether the page says what each row is ordered by, so that pages of several sources can be merged.
    pub placed: bool,
    /// Where to start.
    pub start: Start,
}

impl RecordsQuery {
    /// The first `limit` records of a stream, whole.
    #[must_use]
    pub fn of(stream: StreamName, limit: usize) -> Self {
        Self {
            stream,
            connection: None,
            selection: Selection::default(),
            filter: Filter::default(),
            direction: Direction::default(),
            sort: None,
            count: CountMode::default(),
            expand: Vec::new(),
            limit,
            placed: false,
            start: Start::default(),
        }
    }

    /// What has to stay the same from page to page, so that a position of another list is told apart. Positions outlive the
    /// process and its version: the form that is hashed must not change.
    pub(crate) fn fingerprint(&self) -> u64 {
        let connection = self.connection.as_ref().map(ConnectionId::as_str);
        let query = json!([self.stream.as_str(), connection, self.filter.to_json(), self.direction.word()]);
        let digest = Sha256::digest(query.to_string());
        digest.iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte))
    }
}

/// Which fields of a record.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Selection {
    /// All.
    #[default]
    All,
    /// These.
    Fields(Vec<String>),
    /// Those of a view that the stream declares.
    View(String),
}

/// Newest first or oldest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
pub enum Direction {
    /// Oldest, or least, first.
    #[serde(rename = "asc")]
    Ascending,
    /// Newest, or most, first.
    #[default]
    #[serde(rename = "desc")]
    Descending,
}

impl Direction {
    /// Its word in a request.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Ascending => "asc",
            Self::Descending => "desc",
        }
    }
}

/// Whether matching records are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CountMode {
    /// No.
    #[default]
    None,
    /// When it is cheap; it may be off.
    Estimated,
    /// Yes.
    Exact,
}

/// A count of matching records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Count {
    /// How many.
    pub value: u64,
    /// How near that is.
    pub accuracy: Accuracy,
}

/// How near a count is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Accuracy {
    /// It is that many.
    Exact,
    /// It is about that many.
    Estimated,
    /// It is at least that many.
    LowerBound,
}

impl Count {
    /// Exactly so many.
    #[must_use]
    pub fn exact(value: u64) -> Self {
        Self { value, accuracy: Accuracy::Exact }
    }

    /// Both together. An estimate beside a bound bounds nothing.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let accuracy = match (self.accuracy, other.accuracy) {
            (Accuracy::Estimated, _) | (_, Accuracy::Estimated) => Accuracy::Estimated,
            (Accuracy::LowerBound, _) | (_, Accuracy::LowerBound) => Accuracy::LowerBound,
            (Accuracy::Exact, Accuracy::Exact) => Accuracy::Exact,
        };
        Self { value: self.value.saturating_add(other.value), accuracy }
    }

    /// The same where it is only about so many.
    #[must_use]
    pub fn about(self) -> Self {
        Self { accuracy: Accuracy::Estimated, ..self }
    }

    /// The same where more may have been left out.
    #[must_use]
    pub fn at_least(self) -> Self {
        self.and(Self { value: 0, accuracy: Accuracy::LowerBound })
    }
}

/// Related records to bring along, one step away.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expansion {
    /// The name of the relation.
    pub relation: String,
    /// How many at most for each record.
    pub limit: Option<usize>,
}

/// Where a page starts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Start {
    /// At the first record.
    #[default]
    First,
    /// After the page that gave this.
    After(RecordsPosition),
    /// With what changed since, deletions too, in the order of the changes. `None` starts with everything.
    Changes(Option<ChangesToken>),
}

/// Where a list goes on. Only the source that gave it can read it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, Deserialize)]
pub struct RecordsPosition(pub String);

/// The state of a stream, to ask later what changed. Only the source that gave it can read it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChangesToken {
    /// A state as the source gave it. It leaves the process sealed only, so nobody else wrote it.
    Verified(Vec<u8>),
    /// A text that a client sent without a seal: a record server's own token, or one of an earlier fetchwell.
    Unverified(String),
}

/// Where changes of a stream are told. A change token is bound to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangesOrigin {
    /// The identity of the one source that tells them.
    pub source: String,
    /// That source's own id of the connection; `None` for a server that names none, and where there are several.
    pub connection: Option<ConnectionId>,
}

/// Records in the source's order.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RecordsPage {
    /// The records, or the changes.
    pub rows: Vec<Change>,
    /// What each of them is ordered by, when that was asked; empty else.
    pub places: Vec<SortValue>,
    /// Where the next page starts; `None` at the end, and when changes were asked.
    pub next: Option<RecordsPosition>,
    /// What to ask for later changes with, when changes were asked.
    pub next_changes: Option<ChangesToken>,
    /// There is more than this page.
    pub has_more: bool,
    /// How many records match in all, when asked.
    pub count: Option<Count>,
    /// Sources whose records are missing.
    pub unavailable: Vec<Unavailable>,
    /// What the reader should know about the answer, in our own words.
    pub notes: Vec<String>,
}

impl RecordsPage {
    /// Returns the page with a permit that each of its records shares.
    pub(in crate::source) fn with_memory(mut self, memory: &MemoryPermit) -> Self {
        for row in &mut self.rows {
            if let Change::Present(record) = row {
                record.memory = memory.clone();
            }
        }
        self
    }
}

/// A record, or the news that it is gone.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// It is there, as it is now.
    Present(Box<Record>),
    /// It was deleted.
    Deleted {
        /// Which it was.
        address: RecordAddress,
        /// When, as far as known.
        deleted_at: Option<String>,
    },
}

impl Change {
    /// Which record it is about.
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
        let query = RecordsQuery { connection, filter, ..RecordsQuery::of("messages".parse().unwrap(), 5) };
        // SHA-256 of ["messages","work",[["from","eq","Ann"],["amount","gte",10]],"desc"], the first 8 bytes.
        assert_eq!(query.fingerprint(), 0xd278_fd72_102d_9025);
    }
}
