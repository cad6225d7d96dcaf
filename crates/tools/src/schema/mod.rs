//! `schema`: the connections with their streams, or the fields of one stream.
//!
//! Connections with equal declarations of a stream share a variant. An answer over the budget loses names of streams or
//! fields first, then connections.

use std::borrow::Cow;

use fetchwell_core::fit::{PageBudget, Shaping, clip};
use fetchwell_core::handle::{ConnectionId, SourceName, StreamName};
use fetchwell_core::record::{
    self, Capability, ConnectionSchema, FieldDetail, RecordData, Relation, RelationKind, StreamDetail,
    Unavailable,
};
use fetchwell_source::{ConnectionChoice, SourceError, StreamAnswer, StreamQuery};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::answer::{Payload, json_of, within};
use super::arguments::parse;
use super::error::{ShownUnavailable, SourceHints, ToolError, list_unavailable};
use super::tool::{Example, Tool, ToolCall, ToolSpec};
use super::toolbox::Toolbox;

/// The tool `schema`.
pub(crate) struct Schema;

const SCHEMA: ToolSpec = ToolSpec {
    name: "schema",
    title: "Show accounts, streams and fields",
    description: "Without `stream`: every connected account with its streams and their record counts. With `stream`: its \
        fields with what each can be asked for (`legend` explains), its views and relations.",
    input_schema: include_str!("input.json"),
    aliases: &[],
    extra_choices: &[],
    output_schema: include_str!("output.json"),
    examples: EXAMPLES,
    hints: SourceHints::STANDARD,
};

/// Example calls, one for each argument, for the hints of errors. The first one is the shortest that works.
const EXAMPLES: &[Example] = &[
    Example { argument: "", call: "{}" },
    Example { argument: "stream", call: r#"{"stream": "messages"}"# },
    Example { argument: "connection_id", call: r#"{"connection_id": "what an id has before its first /"}"# },
    Example { argument: "detail", call: r#"{"stream": "messages", "detail": "full"}"# },
];

/// Maximum length of a label, in bytes of JSON.
const MAX_LABEL_BYTES: usize = 80;

/// Hint of an overview without connections.
const NO_CONNECTIONS: &str = "Nothing is connected yet: ask the user to import records with `fetchwell import`, or to connect a source.";

/// Explanation of the words after the type of a field.
const LEGEND: &str = "after the type: eq = filter by value; range = filter with gte/gt/lte/lt; lex = found by search words; \
    sem = found by meaning; group, time = aggregate group_by, group_by_time; sum, min, max, distinct = aggregate metrics";

/// Arguments as they are sent.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Args {
    stream: Option<StreamName>,
    connection_id: Option<ConnectionId>,
    #[serde(default)]
    detail: Detail,
    source: Option<SourceName>,
}

/// Amount of detail for a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Detail {
    #[default]
    Compact,
    Full,
}

/// The answer without `stream`.
#[derive(Debug, Serialize)]
struct Overview {
    connections: Vec<ShownConnection>,
    /// Number of connections that did not fit.
    #[serde(skip_serializing_if = "Option::is_none")]
    omitted: Option<usize>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unavailable: Vec<ShownUnavailable>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<&'static str>,
}

/// A connection in an overview.
#[derive(Debug, Serialize)]
struct ShownConnection {
    connection_id: String,
    /// Name of the source, if another one has a connection with the same id.
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    display_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    connector_key: Option<String>,
    /// Streams with their number of records; `null` if unknown.
    streams: Map<String, Value>,
    /// Number of streams that did not fit.
    #[serde(skip_serializing_if = "Option::is_none")]
    more_streams: Option<usize>,
}

/// The answer for one stream. Connections that differ only in the number of records share a variant.
#[derive(Debug, Serialize)]
struct DescribedStream {
    stream: String,
    variants: Vec<Variant>,
    legend: Cow<'static, str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unavailable: Vec<ShownUnavailable>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

/// A declaration of a stream, with the connections that have it.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Variant {
    connections: Vec<VariantConnection>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    primary_key: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cursor_field: Option<String>,
    fields: Map<String, Value>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    views: Map<String, Value>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    relations: Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    declaration: Option<RecordData>,
}

/// A connection of a variant.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct VariantConnection {
    connection_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    display_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    record_count: Option<u64>,
}

impl Tool for Schema {
    type Arguments = Args;

    const SPEC: ToolSpec = SCHEMA;

    async fn parse(_call: &ToolCall<'_>, arguments: RecordData) -> Result<Self::Arguments, ToolError> {
        parse(&SCHEMA, arguments)
    }

    async fn call(call: ToolCall<'_>, arguments: Self::Arguments) -> Result<Payload, ToolError> {
        schema(call.toolbox, arguments).await
    }
}

async fn schema(toolbox: &Toolbox, arguments: Args) -> Result<Payload, ToolError> {
    let Args { stream, connection_id, detail, source } = arguments;
    let source = toolbox.named_source("schema", source.as_ref())?;
    let failed = |error| ToolError::from_source(&source, error);
    let Some(stream) = stream else {
        if detail == Detail::Full {
            let problem = "`full` is about one stream, and none is named".to_owned();
            return Err(SCHEMA.invalid_argument("detail", problem));
        }
        let schema = source.schema().await.map_err(failed)?;
        return overview(&schema, connection_id.as_ref(), toolbox.budget("schema"), failed);
    };
    let query = StreamQuery { stream, connection: connection_id };
    let StreamAnswer { details, unavailable } = source.stream(&query).await.map_err(failed)?;
    if detail == Detail::Full && details.len() > 1 {
        let choice = |detail: &StreamDetail| ConnectionChoice {
            connection_id: detail.connection_id.clone(),
            display_name: detail.display_name.clone(),
        };
        let choices = details.iter().map(choice).collect();
        return Err(ToolError::AmbiguousSchemaDetail { stream: query.stream, choices });
    }
    stream_answer(&query.stream, &details, &unavailable, detail, toolbox.budget("schema"))
}

/// Builds the answer without `stream`.
fn overview(
    schema: &record::Schema,
    only: Option<&ConnectionId>,
    budget: PageBudget,
    failed: impl Fn(SourceError) -> ToolError,
) -> Result<Payload, ToolError> {
    let is_selected =
        |connection: &&ConnectionSchema| only.is_none_or(|only| connection.connection_id == *only);
    let connections: Vec<&ConnectionSchema> = schema.connections.iter().filter(is_selected).collect();
    if let (Some(only), true) = (only, connections.is_empty()) {
        let choices = schema.connections.iter().map(ConnectionChoice::from).collect();
        return Err(failed(SourceError::ConnectionNotFound { asked: only.to_string(), choices }));
    }
    let (unavailable, more) = list_unavailable(&schema.unavailable);
    let answer = |names: usize, shown: usize| {
        let omitted = connections.len() - shown;
        let cut = connections.iter().any(|connection| connection.streams.len() > names);
        let warning = "not all stream names fit; name a `stream`, or one account with `connection_id`";
        Overview {
            connections: connections
                .iter()
                .take(shown)
                .map(|connection| describe(connection, names))
                .collect(),
            omitted: Some(omitted).filter(|omitted| *omitted > 0),
            unavailable: unavailable.clone(),
            warnings: more.iter().cloned().chain(cut.then(|| warning.to_owned())).collect(),
            hint: (connections.is_empty() && unavailable.is_empty()).then_some(NO_CONNECTIONS),
        }
    };
    // Names of streams are removed first, then connections.
    let mut names = connections.iter().map(|connection| connection.streams.len()).max().unwrap_or(0);
    let mut shown = connections.len();
    loop {
        let overview = answer(names, shown);
        if let Some(payload) = Payload::if_within(&overview, budget)? {
            return Ok(payload.with_shaping(Shaping { items: shown, ..Shaping::default() }));
        }
        if names == 0 && shown == 0 {
            return Payload::within(&overview, budget);
        }
        if names > 0 {
            names = names * 3 / 4;
        } else {
            shown /= 2;
        }
    }
}

/// Describes a connection with at most `names` streams.
fn describe(connection: &ConnectionSchema, names: usize) -> ShownConnection {
    let count = |count: Option<u64>| count.map_or(Value::Null, Value::from);
    let streams = connection.streams.iter().take(names);
    ShownConnection {
        connection_id: connection.connection_id.to_string(),
        source: label(connection.source.as_ref().map(SourceName::as_str)),
        display_name: label(connection.display_name.as_deref()),
        connector_key: label(connection.connector_key.as_deref()),
        streams: streams.map(|stream| (stream.name.to_string(), count(stream.record_count))).collect(),
        more_streams: Some(connection.streams.len().saturating_sub(names)).filter(|more| *more > 0),
    }
}

/// Builds the answer for one stream.
fn stream_answer(
    stream: &StreamName,
    details: &[StreamDetail],
    unavailable: &[Unavailable],
    detail: Detail,
    budget: PageBudget,
) -> Result<Payload, ToolError> {
    let mut variants: Vec<Variant> = Vec::new();
    for one in details {
        let mut variant = variant(one, detail);
        let own = std::mem::take(&mut variant.connections);
        let same = |known: &&mut Variant| Variant { connections: Vec::new(), ..(**known).clone() } == variant;
        match variants.iter_mut().find(same) {
            Some(known) => known.connections.extend(own),
            None => variants.push(Variant { connections: own, ..variant }),
        }
    }
    let (unavailable, more) = list_unavailable(unavailable);
    let mut answer = DescribedStream {
        stream: stream.to_string(),
        variants,
        legend: legend(details),
        unavailable,
        warnings: more.into_iter().collect(),
    };
    if let Some(payload) = Payload::if_within(&answer, budget)? {
        return Ok(payload);
    }
    if detail == Detail::Full
        && let Err(overrun) = within(&json_of(&answer)?, budget)
    {
        let hint = "Ask with `detail` \"compact\".".to_owned();
        return Err(ToolError::ResponseTooLarge { overrun, hint });
    }
    answer.warnings.push("not all fields fit; fetch a record to see the fields it has".to_owned());
    let mut max_fields = answer.variants.iter().map(|variant| variant.fields.len()).max().unwrap_or(0);
    while Payload::if_within(&answer, budget)?.is_none() {
        if max_fields == 0 {
            // No fields are left, so connections are removed.
            let kept = answer.variants.len().div_ceil(2);
            answer.variants.truncate(kept);
            answer
                .variants
                .iter_mut()
                .for_each(|variant| variant.connections.truncate(variant.connections.len().div_ceil(2)));
            if kept == 1 && answer.variants.iter().all(|variant| variant.connections.len() <= 1) {
                break;
            }
            continue;
        }
        max_fields /= 2;
        for variant in &mut answer.variants {
            variant.fields = std::mem::take(&mut variant.fields).into_iter().take(max_fields).collect();
            variant.views = Map::new();
        }
    }
    Payload::within(&answer, budget)
}

/// Describes the stream of one connection.
fn variant(detail: &StreamDetail, wanted: Detail) -> Variant {
    let relation = |relation: &Relation| {
        let kind = match relation.kind {
            RelationKind::HasMany => "many",
            RelationKind::HasOne | RelationKind::BelongsTo => "one",
        };
        let mut shown = json!({ "stream": relation.stream.as_str(), "kind": kind });
        if let (Some(shown), Some(max_limit)) = (shown.as_object_mut(), relation.max_limit) {
            shown.insert("max_limit".to_owned(), max_limit.into());
        }
        (relation.name.clone(), shown)
    };
    Variant {
        connections: vec![VariantConnection {
            connection_id: detail.connection_id.to_string(),
            display_name: label(detail.display_name.as_deref()),
            record_count: detail.record_count,
        }],
        primary_key: detail.primary_key.clone(),
        cursor_field: detail.cursor_field.clone(),
        fields: detail.fields.iter().map(|field| (field.name.clone(), words(field).into())).collect(),
        views: detail.views.iter().map(|view| (view.name.clone(), view.fields.clone().into())).collect(),
        relations: detail.relations.iter().map(relation).collect(),
        declaration: detail.declaration.as_deref().filter(|_| wanted == Detail::Full).cloned(),
    }
}

/// Returns the explanation of the words. Record servers with a compact schema do not declare types.
fn legend(details: &[StreamDetail]) -> Cow<'static, str> {
    let has_untyped = details.iter().flat_map(|detail| &detail.fields).any(|field| field.types.is_empty());
    if has_untyped {
        format!("? = the source does not tell the type; {LEGEND}").into()
    } else {
        LEGEND.into()
    }
}

/// Returns the types and capabilities of a field, such as `number eq range sum min max`.
fn words(field: &FieldDetail) -> String {
    let types = if field.types.is_empty() { "?".to_owned() } else { field.types.join("|") };
    let words = field.capabilities.iter().map(|capability| match capability {
        Capability::Equal => "eq",
        Capability::Range => "range",
        Capability::Lexical => "lex",
        Capability::Semantic => "sem",
        Capability::GroupBy => "group",
        Capability::GroupByTime => "time",
        Capability::Sum => "sum",
        Capability::Min => "min",
        Capability::Max => "max",
        Capability::CountDistinct => "distinct",
    });
    std::iter::once(types.as_str()).chain(words).collect::<Vec<_>>().join(" ")
}

fn label(text: Option<&str>) -> Option<String> {
    text.map(|text| clip(text, MAX_LABEL_BYTES))
}
