//! What a source answers, in words of our own: hits, records, schemas.
//!
//! Values here are normalised: they do not know how a server spelled them, and every rule about what
//! a reader should see (a readable title, a link a person can open, the text of a document) is a pure
//! function of the values. Nothing here cuts text; that is `fit`'s.

mod decimal;
mod document;
mod excerpt;
mod facts;
mod field_path;
mod hit;
mod http_route;
mod link;
mod moment;
mod number;
mod scalar;
mod schema;
mod sort_value;
mod stream;
mod unavailable;
mod window;

pub(crate) use decimal::Decimal;
pub use document::document_text;
pub use excerpt::Excerpt;
pub use facts::{authored_at, own_link, own_title};
pub(crate) use facts::{authored_values, field_named, is_same_name, is_title_field};
pub use field_path::{FieldPath, PathFault, project};
pub use hit::{Evidence, Hit, HitId, Score, fallback_title};
pub use http_route::{HttpRoute, InvalidRoute};
pub use link::WebLink;
pub(crate) use moment::{comparable, moment};
pub(crate) use number::Numeric;
pub use scalar::Scalar;
pub use schema::{ConnectionSchema, Schema, StreamSchema, short_connector_key};
pub use sort_value::SortValue;
pub use stream::{Capability, FieldDetail, FieldGroup, Relation, RelationKind, StreamDetail, View};
pub use unavailable::Unavailable;
pub use window::Window;

pub use crate::memory::MemoryPermit;

use crate::handle::RecordAddress;

/// The fields of one record: a JSON object in the order its source gave it.
pub type RecordData = serde_json::Map<String, serde_json::Value>;

/// One record as a source gave it.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// Where it is. The connection is what the source says, which may be more than was asked.
    pub address: RecordAddress,
    /// Its fields.
    pub data: RecordData,
    /// When its connector emitted it, as the source wrote it (RFC 3339 in practice).
    pub emitted_at: Option<String>,
    /// The short key of its connector, such as `gmail`.
    pub connector_key: Option<String>,
    /// The label of its connection, such as `Work mail`.
    pub display_name: Option<String>,
    /// Where the record server itself serves it. It answers only to a bearer token, so it is never a
    /// citation.
    pub record_url: Option<String>,
    /// Related records that were asked for, by the name of their relation.
    pub expanded: Vec<Expanded>,
    /// The share of the memory budget that its text takes, where it is long.
    pub memory: MemoryPermit,
}

impl Record {
    /// A record of which nothing is known but its fields.
    #[must_use]
    pub fn of(address: RecordAddress, data: RecordData) -> Self {
        Self {
            address,
            data,
            emitted_at: None,
            connector_key: None,
            display_name: None,
            record_url: None,
            expanded: Vec::new(),
            memory: MemoryPermit::default(),
        }
    }
}

/// The records of one relation of a record.
#[derive(Debug, Clone, PartialEq)]
pub struct Expanded {
    /// The relation.
    pub relation: String,
    /// Whether there can be more than one.
    pub many: bool,
    /// The records, up to the limit.
    pub records: Vec<Record>,
    /// There are more than that.
    pub has_more: bool,
}
