//! The request of a fetch: typed arguments, validated without IO.

use fetchwell_core::handle::{ConnectionId, RecordAddress, SourceName, TextVersion};
use fetchwell_core::record::RecordData;
use fetchwell_source::Expansion;
use serde::Deserialize;

use super::spec::FETCH;
use crate::arguments::{RecordReference, named_record, parse_expansions, safe_connection};
use crate::error::ToolError;

/// Maximum number of fields in `fields`.
const MAX_FIELDS: usize = 100;

/// Arguments in the profile `standard`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FetchArgs {
    pub(super) id: String,
    #[serde(default, deserialize_with = "safe_connection")]
    connection_id: Option<ConnectionId>,
    fields: Option<Vec<String>>,
    #[serde(default)]
    expand: Vec<String>,
    #[serde(default)]
    expand_limit: RecordData,
    pub(super) source: Option<SourceName>,
}

/// Arguments in the profile `openai`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OpenAiFetchArgs {
    id: String,
}

/// A validated call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Request {
    /// Id as it was sent.
    pub(super) id: String,
    /// Address in the id.
    pub(super) named: RecordAddress,
    /// Address with the connection of the argument if the id has none.
    pub(super) address: RecordAddress,
    /// Number of the part.
    pub(super) part: u32,
    /// Version of the text that the part is of, if the id has one.
    pub(super) version: Option<TextVersion>,
    pub(super) fields: Vec<String>,
    pub(super) expand: Vec<Expansion>,
}

impl From<OpenAiFetchArgs> for FetchArgs {
    fn from(OpenAiFetchArgs { id }: OpenAiFetchArgs) -> Self {
        Self { id, ..Self::default() }
    }
}

/// Validates the arguments.
pub(super) fn resolve(args: FetchArgs) -> Result<Request, ToolError> {
    let FetchArgs { id, connection_id, fields, expand, expand_limit, source: _ } = args;
    let RecordReference { named, address, part, version } = named_record(&id, connection_id)?;
    let fields = fields.unwrap_or_default();
    if fields.len() > MAX_FIELDS {
        return Err(FETCH.invalid_argument("fields", format!("it names more than {MAX_FIELDS} fields")));
    }
    if fields.iter().any(String::is_empty) {
        return Err(FETCH.invalid_argument("fields", "it has an empty name"));
    }
    if part.is_some() && !(fields.is_empty() && expand.is_empty()) {
        let problem =
            "the id names a part of the whole record, which has all its fields; leave out one of both";
        return Err(FETCH.invalid_argument("fields", problem));
    }
    let expand = parse_expansions(&FETCH, expand, &expand_limit)?;
    Ok(Request { id, named, address, part: part.unwrap_or(0), version, fields, expand })
}
