//! Normalised values that sources return: hits, records, schemas.
//!
//! The values do not depend on how a server spells them. The rules about what a reader sees (a readable title, a link
//! that a person can open, the text of a document) are pure functions of the values. This module truncates no text;
//! `fit` does.
//!
//! * `hit`, `excerpt`, `window`: a search result, the passage that matched, a piece of a text field
//! * `explanation`: the reasons for the place of a search result
//! * `schema`, `stream`, `http_route`: connections with their streams, the fields of a stream, API paths of streams
//! * `html_text`: the visible text of HTML
//! * `document`, `facts`, `link`: the text, title, link and time of a record, `attachments`: names and texts of attachments
//! * `field_path`: paths to values inside a record
//! * `value`: comparing, adding and ordering values
//! * `unavailable`: a source that failed while others answered

mod attachments;
mod document;
mod excerpt;
mod explanation;
mod facts;
mod field_path;
mod hit;
pub mod html_text;
mod http_route;
mod link;
mod schema;
mod stream;
mod unavailable;
mod value;
mod window;

pub use attachments::{
    ATTACHMENT_FIELDS, OTHER_ATTACHED_TEXT, attachment_at, attachment_field, attachment_heading,
    attachment_names, attachment_of_field, has_attachments,
};
pub use document::{AttachmentText, DocumentText, document_text, document_with_attachments};
pub use excerpt::Excerpt;
pub use explanation::{
    ExplainedFeature, ExplainedMeaning, ExplainedRaise, ExplainedWord, HitExplanation, ListedPlace,
    MatchedForm, Measure, RankChange, SourceRank,
};
pub use facts::{
    author_values, authored_at, authored_values, field_named, is_author_field, is_same_name, is_time_field,
    is_title_field, own_link, own_title,
};
pub use field_path::{FieldPath, InvalidPath, project};
pub use hit::{Coverage, Evidence, Hit, HitId, Score, fallback_title};
pub use html_text::html_to_text;
pub use http_route::{HttpRoute, InvalidRoute};
pub use link::WebLink;
pub use schema::{ConnectionSchema, Schema, StreamSchema, short_connector_key};
pub use stream::{Capability, FieldDetail, FieldGroup, Relation, RelationKind, StreamDetail, View};
pub use unavailable::Unavailable;
pub use value::decimal::Decimal;
pub use value::kind::kind_name;
pub use value::number::Numeric;
pub use value::scalar::Scalar;
pub use value::sort_value::SortValue;
pub use value::timestamp::{
    comparable, ordered, parse_local_time, parse_time, parse_timestamp, start_of_day,
};
pub use window::Window;

pub use crate::memory::MemoryPermit;

use crate::handle::RecordAddress;

/// The fields of one record: a JSON object in the order of its source.
pub type RecordData = serde_json::Map<String, serde_json::Value>;

/// One record as its source returned it.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// Address of the record. The connection comes from the source, so it may be known although the request named
    /// none.
    pub address: RecordAddress,
    /// Fields of the record.
    pub data: RecordData,
    /// Time at which the connector emitted the record, as the source wrote it (RFC 3339 in practice).
    pub emitted_at: Option<String>,
    /// Short key of the record's connector, such as `gmail`.
    pub connector_key: Option<String>,
    /// Label of the record's connection, such as `Work mail`.
    pub display_name: Option<String>,
    /// URL of the record on its record server. It requires a bearer token, so it is a citation only if the
    /// record has no link that a person can open.
    pub record_url: Option<String>,
    /// Related records that were requested, by relation.
    pub expanded: Vec<ExpandedRelation>,
    /// True if ids of parts have the version of the text, because the source may return another text for each part.
    pub has_versioned_parts: bool,
    /// Permit for the share of the memory budget that a long text takes.
    pub memory: MemoryPermit,
}

impl Record {
    /// Returns a record without metadata.
    #[must_use]
    pub fn new(address: RecordAddress, data: RecordData) -> Self {
        Self {
            address,
            data,
            emitted_at: None,
            connector_key: None,
            display_name: None,
            record_url: None,
            expanded: Vec::new(),
            has_versioned_parts: false,
            memory: MemoryPermit::default(),
        }
    }
}

/// The records of one relation of a record.
#[derive(Debug, Clone, PartialEq)]
pub struct ExpandedRelation {
    /// Name of the relation.
    pub relation: String,
    /// True if the relation can have more than one record.
    pub many: bool,
    /// The related records, up to the limit.
    pub records: Vec<Record>,
    /// True if records beyond the limit were left out.
    pub has_more: bool,
}
