//! Records near a record: the previous and the next one of its stream, and its conversation.
//!
//! They are read within a short timeout. A page is complete without them, so errors leave them out.

use std::time::Duration;

use fetchwell_callers::RecordPages;
use fetchwell_core::handle::{Handle, RecordAddress};
use fetchwell_core::record::{
    Capability, Record, RecordData, Scalar, StreamDetail, authored_at, is_title_field, own_title,
};
use fetchwell_source::{
    BoundSource, Change, Condition, Direction, Filter, RangeOperator, RecordsQuery, Selection, StreamQuery,
    Test,
};
use fetchwell_tools::Toolbox;
use serde_json::Value;
use tokio::time::timeout;

/// Timeout for reading the records near a record.
const WITHIN: Duration = Duration::from_secs(2);

/// Maximum number of records with the same sort value that are read to find a record among them.
const MAX_TIES: usize = 20;

/// Maximum number of records of a conversation.
const MAX_CONVERSATION: usize = 50;

/// Fields by which records belong to a conversation.
const CONVERSATION_FIELDS: [&str; 4] = ["thread_id", "conversation_id", "thread_ts", "threadId"];

/// Fields that name a record in a list, beside those of its title.
const LABEL_FIELDS: [&str; 4] = ["from", "date", "sent_at", "created_at"];

/// Records near a record.
#[derive(Debug, Default)]
pub(super) struct Neighbors {
    pub(super) previous: Option<Neighbor>,
    pub(super) next: Option<Neighbor>,
    /// The conversation in its order, with the record itself.
    pub(super) conversation: Vec<Neighbor>,
}

/// A record in a list.
#[derive(Debug)]
pub(super) struct Neighbor {
    /// Path of its page.
    pub(super) path: String,
    pub(super) label: String,
    pub(super) author: Option<String>,
    pub(super) time: Option<String>,
    /// True for the record of the page.
    pub(super) is_current: bool,
}

impl Neighbors {
    /// Reads the records near a record.
    pub(super) async fn read(toolbox: &Toolbox, record: &Record) -> Self {
        let read = async {
            let source = toolbox.source();
            let Some(detail) = stream_of(source, &record.address).await else { return Self::default() };
            let reader = NeighborReader { source, detail: &detail, record };
            let (previous, next, conversation) = tokio::join!(
                reader.beside(Direction::Descending),
                reader.beside(Direction::Ascending),
                reader.conversation()
            );
            Self { previous, next, conversation }
        };
        timeout(WITHIN, read).await.unwrap_or_default()
    }
}

async fn stream_of(source: &BoundSource, address: &RecordAddress) -> Option<StreamDetail> {
    let query = StreamQuery { stream: address.stream.clone(), connection: address.connection.clone() };
    source.stream(&query).await.ok()?.details.into_iter().next()
}

/// Reads records near one record.
struct NeighborReader<'a> {
    source: &'a BoundSource,
    detail: &'a StreamDetail,
    record: &'a Record,
}

impl NeighborReader<'_> {
    /// Returns the record before or behind, in the order of the stream.
    async fn beside(&self, direction: Direction) -> Option<Neighbor> {
        let field = self.detail.cursor_field.as_deref().filter(|field| self.can(field, Capability::Range))?;
        let value = Scalar::from_value(self.record.data.get(field)?)?;
        let (with_ties, beyond) = match direction {
            Direction::Ascending => (RangeOperator::GreaterOrEqual, RangeOperator::Greater),
            Direction::Descending => (RangeOperator::LessOrEqual, RangeOperator::Less),
        };
        let list = |operator, limit| {
            let condition = Condition { field: field.to_owned(), test: Test::Range(operator, value.clone()) };
            self.list(condition, direction, limit)
        };
        let ties = list(with_ties, MAX_TIES).await?;
        let own = ties.iter().position(|record| record.address == self.record.address);
        let found = match own {
            Some(own) => ties.into_iter().nth(own + 1),
            // So many records have the same value that the order among them is not read.
            None => list(beyond, 1).await?.into_iter().next(),
        };
        found.and_then(|record| self.neighbor(&record))
    }

    /// Returns the records with the same conversation, if there are several.
    async fn conversation(&self) -> Vec<Neighbor> {
        let of_field = |field: &&str| {
            let value = Scalar::from_value(self.record.data.get(*field)?)?;
            self.can(field, Capability::Equal)
                .then(|| Condition { field: (*field).to_owned(), test: Test::Equal(value) })
        };
        let Some(condition) = CONVERSATION_FIELDS.iter().find_map(of_field) else { return Vec::new() };
        let records = self.list(condition, Direction::Ascending, MAX_CONVERSATION).await.unwrap_or_default();
        match records.len() {
            0 | 1 => Vec::new(),
            _ => records.iter().filter_map(|record| self.neighbor(record)).collect(),
        }
    }

    async fn list(&self, condition: Condition, direction: Direction, limit: usize) -> Option<Vec<Record>> {
        let query = RecordsQuery {
            connection: self.record.address.connection.clone(),
            filter: Filter(vec![condition]),
            direction,
            selection: self.selection(),
            ..RecordsQuery::new(self.record.address.stream.clone(), limit)
        };
        let rows = self.source.records(&query).await.ok()?.rows;
        let present = rows.into_iter().filter_map(|row| match row {
            Change::Present(record) => Some(*record),
            Change::Deleted { .. } => None,
        });
        Some(present.collect())
    }

    /// Returns the fields that name a record, so that long texts are not read.
    fn selection(&self) -> Selection {
        let is_label = |name: &str| is_title_field(name) || LABEL_FIELDS.contains(&name);
        let cursor = self.detail.cursor_field.as_deref();
        let names = self.detail.fields.iter().map(|field| field.name.as_str());
        let names: Vec<String> =
            names.filter(|name| is_label(name) || cursor == Some(*name)).map(str::to_owned).collect();
        if names.is_empty() { Selection::All } else { Selection::Fields(names) }
    }

    fn can(&self, field: &str, capability: Capability) -> bool {
        self.detail.field(field).is_some_and(|field| field.capabilities.contains(&capability))
    }

    fn neighbor(&self, record: &Record) -> Option<Neighbor> {
        let mut address = record.address.clone();
        // A source without connection ids gives none; the page has it from its own address.
        address.connection = address.connection.or_else(|| self.record.address.connection.clone());
        let time = authored_at(&record.data).map(str::to_owned).or_else(|| record.emitted_at.clone());
        Some(Neighbor {
            path: RecordPages::path(&Handle::mint(&address)?),
            label: own_title(&record.data).map_or_else(|| address.record.to_string(), str::to_owned),
            author: text_of(&record.data, "from"),
            time,
            is_current: address.record == self.record.address.record,
        })
    }
}

fn text_of(data: &RecordData, name: &str) -> Option<String> {
    data.get(name).and_then(Value::as_str).filter(|text| !text.trim().is_empty()).map(str::to_owned)
}
