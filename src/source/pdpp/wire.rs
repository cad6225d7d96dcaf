//! What record servers send, in all its spellings.
//!
//! This is the only place that knows two spellings of one field. It takes bytes and gives typed values;
//! a field of an unexpected type counts as missing, an item that cannot be read is passed over, and only
//! an answer without the expected list or object is refused.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::time::Duration;

use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;
use url::Url;

use crate::fit::passage;
use crate::handle::{ConnectionId, Handle, RecordAddress, StreamName};
use crate::record::{
    ConnectionSchema, Excerpt, Hit, HitId, Record, RecordData, Schema, StreamSchema, WebLink, fallback_title,
    is_title_field, short_connector_key,
};
use crate::source::{ConnectionChoice, ProtocolFault, Refusal, SearchPage, SearchPosition, SourceError};

/// How much text around a match is kept, in bytes on either side.
const EXCERPT_RADIUS: usize = 400;

/// The most of a server's own error message that is passed on, in characters.
const MESSAGE_CHARS: usize = 400;

// --- search --------------------------------------------------------------------------------------

/// A list of hits with what stands beside it. Servers put the list, and sometimes everything, one level
/// down.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Envelope<'a> {
    #[serde(borrow)]
    data: Option<&'a RawValue>,
    #[serde(borrow)]
    results: Option<&'a RawValue>,
    #[serde(borrow)]
    hits: Option<&'a RawValue>,
    #[serde(borrow)]
    next_cursor: Loose<'a>,
    #[serde(borrow, rename = "nextCursor")]
    next_cursor_camel: Loose<'a>,
    #[serde(borrow)]
    has_more: Loose<'a>,
    #[serde(borrow, rename = "hasMore")]
    has_more_camel: Loose<'a>,
    #[serde(borrow)]
    meta: Option<&'a RawValue>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Meta<'a> {
    #[serde(borrow)]
    recall: Option<&'a RawValue>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Recall {
    complete: Option<bool>,
    truncated: Option<bool>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct WireHit<'a> {
    #[serde(borrow)]
    id: Loose<'a>,
    #[serde(borrow)]
    record_key: Loose<'a>,
    #[serde(borrow, rename = "recordKey")]
    record_key_camel: Loose<'a>,
    #[serde(borrow)]
    record_id: Loose<'a>,
    #[serde(borrow, rename = "recordId")]
    record_id_camel: Loose<'a>,
    #[serde(borrow)]
    stream: Loose<'a>,
    #[serde(borrow)]
    stream_name: Loose<'a>,
    #[serde(borrow, rename = "streamName")]
    stream_name_camel: Loose<'a>,
    #[serde(borrow)]
    connection_id: Loose<'a>,
    #[serde(borrow, rename = "connectionId")]
    connection_id_camel: Loose<'a>,
    #[serde(borrow)]
    connector_instance_id: Loose<'a>,
    #[serde(borrow, rename = "connectorInstanceId")]
    connector_instance_id_camel: Loose<'a>,
    #[serde(borrow)]
    display_name: Loose<'a>,
    #[serde(borrow, rename = "displayName")]
    display_name_camel: Loose<'a>,
    #[serde(borrow)]
    title: Loose<'a>,
    #[serde(borrow)]
    url: Loose<'a>,
    #[serde(borrow)]
    link: Loose<'a>,
    #[serde(borrow)]
    authored_at: Loose<'a>,
    #[serde(borrow, rename = "authoredAt")]
    authored_at_camel: Loose<'a>,
    #[serde(borrow)]
    emitted_at: Loose<'a>,
    #[serde(borrow, rename = "emittedAt")]
    emitted_at_camel: Loose<'a>,
    #[serde(borrow)]
    snippet: Snippet<'a>,
    #[serde(borrow)]
    text: Loose<'a>,
    #[serde(borrow)]
    excerpt: Loose<'a>,
}

/// A page of search results: the list under `data`, `results`, `hits`, `data.results` or `data.data`.
pub(super) fn search_page(body: &[u8]) -> Result<SearchPage, SourceError> {
    let outer: Envelope<'_> = parse(body)?;
    let (items, inner) = hit_list(&outer).ok_or(wrong_shape("list of hits"))?;
    let hits = items.iter().map(|item| {
        serde_json::from_str::<WireHit<'_>>(item.get()).map_or_else(|_| nameless(), |wire| hit(&wire))
    });
    let cursor = outer.next_cursor().or_else(|| inner.as_ref().and_then(Envelope::next_cursor));
    let ended = outer.is_last() || inner.as_ref().is_some_and(Envelope::is_last);
    let recall: Recall = outer
        .meta
        .and_then(|meta| serde_json::from_str::<Meta<'_>>(meta.get()).ok()?.recall)
        .and_then(|recall| serde_json::from_str(recall.get()).ok())
        .unwrap_or_default();
    Ok(SearchPage {
        hits: hits.collect(),
        next: cursor.filter(|_| !ended).map(SearchPosition),
        windowed: recall.complete == Some(false) || recall.truncated == Some(true),
        notes: Vec::new(),
    })
}

type HitList<'a> = (Vec<&'a RawValue>, Option<Envelope<'a>>);

fn hit_list<'a>(outer: &Envelope<'a>) -> Option<HitList<'a>> {
    let list = |value: &'a RawValue| serde_json::from_str::<Vec<&'a RawValue>>(value.get()).ok();
    let direct = [outer.data, outer.results, outer.hits].into_iter().flatten().find_map(list);
    if let Some(items) = direct {
        return Some((items, None));
    }
    let inner: Envelope<'a> = serde_json::from_str(outer.data?.get()).ok()?;
    let items = [inner.data, inner.results, inner.hits].into_iter().flatten().find_map(list)?;
    Some((items, Some(inner)))
}

impl Envelope<'_> {
    fn next_cursor(&self) -> Option<String> {
        let cursor = first([&self.next_cursor, &self.next_cursor_camel])?;
        Some(cursor.to_owned()).filter(|cursor| !cursor.is_empty())
    }

    fn is_last(&self) -> bool {
        first([&self.has_more, &self.has_more_camel]) == Some("false")
    }
}

fn nameless() -> Hit {
    Hit {
        id: HitId::Nameless,
        title: fallback_title(None, None, None),
        link: None,
        excerpt: Excerpt::default(),
    }
}

fn hit(wire: &WireHit<'_>) -> Hit {
    let stream = first([&wire.stream, &wire.stream_name, &wire.stream_name_camel]);
    let label = first([&wire.display_name, &wire.display_name_camel]);
    let time = first([&wire.authored_at, &wire.authored_at_camel, &wire.emitted_at, &wire.emitted_at_camel]);
    let snippet = wire.snippet.text.get().or(wire.text.get()).or(wire.excerpt.get()).unwrap_or_default();
    let (text, focus) = without_marks(snippet);
    let (piece, focus) = passage(&text, focus, EXCERPT_RADIUS);
    let excerpt = Excerpt::new(piece, focus);
    // A snippet of the subject, if it is the whole of it, is the title that the server does not send.
    let is_whole = |text: &str| !text.starts_with('…') && !text.ends_with('…') && !text.ends_with("...");
    let from_snippet = wire.snippet.field.get().filter(|field| is_title_field(field)).map(|_| excerpt.text());
    let own = wire.title.get().filter(|title| !title.trim().is_empty());
    let own = own.or(from_snippet.filter(|text| !text.is_empty() && is_whole(text)));
    let title = own.map_or_else(|| fallback_title(label, stream, time), str::to_owned);
    let link: Option<WebLink> = [&wire.url, &wire.link].into_iter().find_map(|text| text.get()?.parse().ok());
    let excerpt = if excerpt.text() == title { Excerpt::default() } else { excerpt };
    Hit { id: hit_id(wire, stream, link.as_ref()), title, link, excerpt }
}

/// What a hit can be fetched by. Nothing is made up: names that the server does not give stay unknown.
fn hit_id(wire: &WireHit<'_>, stream: Option<&str>, link: Option<&WebLink>) -> HitId {
    let connection = first([
        &wire.connection_id,
        &wire.connection_id_camel,
        &wire.connector_instance_id,
        &wire.connector_instance_id_camel,
    ]);
    let connection: Option<ConnectionId> = match connection.map(str::parse).transpose() {
        Ok(connection) => connection,
        Err(_no_name) => return HitId::Nameless,
    };
    let key = first([&wire.record_key, &wire.record_key_camel, &wire.record_id, &wire.record_id_camel]);
    let address = |record: &str, stream: &str| {
        Some(RecordAddress {
            connection: connection.clone(),
            stream: stream.parse().ok()?,
            record: record.parse().ok()?,
        })
    };
    let id = wire.id.get().filter(|id| !id.is_empty());
    // An id that is itself a handle of this stream (`messages:m1`) names the record it says.
    let written = id.and_then(|id| id.parse::<Handle>().ok()).map(|handle| handle.address().clone());
    let written = written.filter(|written| stream.is_none_or(|stream| written.stream.as_str() == stream));
    let found = match (key, stream, written, id) {
        (Some(key), Some(stream), ..) => address(key, stream),
        (_, _, Some(written), _) => {
            Some(RecordAddress { connection: written.connection.or(connection), ..written })
        }
        (None, Some(stream), None, Some(id)) => address(id, stream),
        (None, None, None, Some(id)) => return HitId::Opaque(id.to_owned()),
        _ => return link.map_or(HitId::Nameless, |link| HitId::Opaque(link.to_string())),
    };
    found.map_or(HitId::Nameless, HitId::Record)
}

/// The text without `<mark>` and `</mark>`, and the bytes of the first marked piece.
fn without_marks(marked: &str) -> (Cow<'_, str>, Range<usize>) {
    const OPEN: &str = "<mark>";
    const CLOSE: &str = "</mark>";
    let Some((before, rest)) = marked.split_once(OPEN) else { return (Cow::Borrowed(marked), 0..0) };
    let (inside, after) = rest.split_once(CLOSE).unwrap_or((rest, ""));
    let after = after.replace(OPEN, "").replace(CLOSE, "");
    let focus = before.len()..before.len() + inside.len();
    (Cow::Owned(format!("{before}{inside}{after}")), focus)
}

// --- records -------------------------------------------------------------------------------------

/// One record, bare or wrapped in `data`, with its fields under `data` or beside its name.
pub(super) fn record(body: &[u8], asked: &RecordAddress, url: Url) -> Result<Record, SourceError> {
    let body: RecordData = parse(body)?;
    let names_a_record = |body: &RecordData| {
        ["id", "record_key", "recordKey", "record_id", "stream"].iter().any(|name| body.contains_key(*name))
    };
    let mut body = match body.get("data") {
        Some(Value::Object(inner)) if !names_a_record(&body) && names_a_record(inner) => inner.clone(),
        _ => body,
    };
    let text = |names: &[&str]| names.iter().find_map(|name| body.get(*name)?.as_str()).map(str::to_owned);
    let connection = text(&["connection_id", "connectionId", "connector_instance_id", "connectorInstanceId"]);
    let emitted_at = text(&["emitted_at", "emittedAt"]);
    let connector_key = text(&["connector_key", "connectorKey", "connector_id", "connectorId"])
        .map(|key| short_connector_key(&key).to_owned());
    let display_name = text(&["display_name", "displayName"]);
    let data = match body.remove("data") {
        Some(Value::Object(data)) => data,
        _ if names_a_record(&body) => {
            body.retain(|name, _| !ENVELOPE_FIELDS.contains(&name.as_str()));
            body
        }
        _ => return Err(wrong_shape("record")),
    };
    let connection = asked.connection.clone().or(connection.and_then(|id| id.parse().ok()));
    Ok(Record {
        address: RecordAddress { connection, ..asked.clone() },
        data,
        emitted_at,
        connector_key,
        display_name,
        record_url: Some(url.into()),
    })
}

/// Fields of a record without `data` that are about the record and not of it.
const ENVELOPE_FIELDS: [&str; 8] = [
    "object",
    "stream",
    "connection_id",
    "connector_instance_id",
    "display_name",
    "emitted_at",
    "links",
    "meta",
];

// --- schema --------------------------------------------------------------------------------------

#[derive(Deserialize, Default)]
#[serde(default)]
struct WireSchema {
    #[serde(deserialize_with = "lenient")]
    data: Option<Box<Self>>,
    connectors: Option<LenientList<WireConnector>>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct WireConnector {
    #[serde(deserialize_with = "lenient")]
    connector_key: Option<String>,
    #[serde(deserialize_with = "lenient")]
    connector_id: Option<String>,
    streams: LenientList<WireStream>,
    granted_connections: LenientList<WireConnection>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct WireStream {
    #[serde(deserialize_with = "lenient")]
    name: Option<String>,
    #[serde(deserialize_with = "lenient")]
    record_count: Option<u64>,
    #[serde(deserialize_with = "lenient")]
    connection_id: Option<String>,
    #[serde(deserialize_with = "lenient")]
    connector_instance_id: Option<String>,
    granted_connections: LenientList<WireConnection>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct WireConnection {
    #[serde(deserialize_with = "lenient")]
    connection_id: Option<String>,
    #[serde(rename = "connectionId", deserialize_with = "lenient")]
    connection_id_camel: Option<String>,
    #[serde(deserialize_with = "lenient")]
    display_name: Option<String>,
    #[serde(rename = "displayName", deserialize_with = "lenient")]
    display_name_camel: Option<String>,
}

/// The connections of a schema, with the record counts of a stream list where there is one.
pub(super) fn schema(body: &[u8], streams: Option<&[u8]>) -> Result<Schema, SourceError> {
    let outer: WireSchema = parse(body)?;
    let inner = outer.data.and_then(|inner| inner.connectors);
    let connectors = outer.connectors.or(inner).ok_or(wrong_shape("`connectors`"))?;
    #[derive(Deserialize)]
    struct Streams {
        data: LenientList<WireStream>,
    }
    let counted =
        streams.and_then(|body| parse::<Streams>(body).ok()).map_or_else(Vec::new, |list| list.data.0);
    let count = |connection: &ConnectionId, stream: &StreamName| {
        let id = |row: &WireStream| row.connection_id.clone().or(row.connector_instance_id.clone());
        let mut rows = counted.iter().filter(|row| row.name.as_deref() == Some(stream.as_str()));
        rows.find(|row| id(row).as_deref() == Some(connection.as_str()))?.record_count
    };
    let mut schema = Schema::default();
    for connector in connectors.0 {
        let key = connector
            .connector_key
            .or(connector.connector_id)
            .map(|key| short_connector_key(&key).to_owned());
        for stream in &connector.streams.0 {
            let Some(name) = stream.name.as_ref().and_then(|name| name.parse::<StreamName>().ok()) else {
                continue;
            };
            let own = &stream.granted_connections.0;
            let granted = if own.is_empty() { &connector.granted_connections.0 } else { own };
            for ConnectionChoice { connection_id, display_name } in granted.iter().filter_map(choice) {
                let record_count = count(&connection_id, &name);
                let stream = StreamSchema { name: name.clone(), record_count };
                match schema.connections.iter_mut().find(|known| known.connection_id == connection_id) {
                    Some(known) => known.streams.push(stream),
                    None => schema.connections.push(ConnectionSchema {
                        connection_id,
                        display_name,
                        connector_key: key.clone(),
                        streams: vec![stream],
                    }),
                }
            }
        }
    }
    Ok(schema)
}

fn choice(wire: &WireConnection) -> Option<ConnectionChoice> {
    let connection_id = wire.connection_id.as_ref().or(wire.connection_id_camel.as_ref())?.parse().ok()?;
    let display_name = wire.display_name.clone().or_else(|| wire.display_name_camel.clone());
    Some(ConnectionChoice { connection_id, display_name })
}

// --- errors --------------------------------------------------------------------------------------

#[derive(Deserialize, Default)]
#[serde(default)]
struct WireError {
    #[serde(deserialize_with = "lenient")]
    code: Option<String>,
    #[serde(deserialize_with = "lenient")]
    message: Option<String>,
    #[serde(deserialize_with = "lenient")]
    param: Option<String>,
    available_connections: LenientList<WireConnection>,
}

/// An error answer, in the record server's envelope, its web framework's, or OAuth's.
pub(super) fn refusal(
    status: u16,
    body: &[u8],
    retry_after: Option<Duration>,
    provider: &str,
) -> SourceError {
    #[derive(Deserialize, Default)]
    #[serde(default)]
    struct Answer {
        error: Value,
        #[serde(deserialize_with = "lenient")]
        message: Option<String>,
        #[serde(deserialize_with = "lenient")]
        error_description: Option<String>,
    }
    let answer: Answer = serde_json::from_slice(body).unwrap_or_default();
    let error: WireError = match answer.error {
        Value::Object(_) => serde_json::from_value(answer.error).unwrap_or_default(),
        // `{"message","error":"Not Found","statusCode":404}` of an unknown route has no code;
        // `{"error":"invalid_token","error_description"}` has its code here.
        Value::String(code) if answer.message.is_none() => {
            WireError { code: Some(code), message: answer.error_description, ..WireError::default() }
        }
        _ => WireError { message: answer.message, ..WireError::default() },
    };
    let code = error.code.filter(|code| is_code(code));
    match (status, code.as_deref()) {
        (429, _) => return SourceError::Wait { retry_after },
        (502..=504, None) => {
            return SourceError::CheckServer { problem: format!("the server answers HTTP {status}") };
        }
        // The reference server says 401 for a stream or connection outside the grant, too.
        (401, None | Some("context.active_false")) => return reauthorize(provider),
        (401, Some(code)) if !code.starts_with("context.") => return reauthorize(provider),
        _ => {}
    }
    let message = error.message.unwrap_or_else(|| format!("the server answers HTTP {status}"));
    let choices: Vec<ConnectionChoice> = error.available_connections.0.iter().filter_map(choice).collect();
    let message: String = message.chars().take(MESSAGE_CHARS).collect();
    SourceError::Refused(Box::new(Refusal {
        status,
        code: code.unwrap_or_else(|| format!("http_{status}")),
        message,
        param: error.param.filter(|param| param.len() <= 100),
        choices,
    }))
}

fn reauthorize(provider: &str) -> SourceError {
    SourceError::Reauthorize {
        problem: format!("{provider} no longer accepts the credential"),
        command: format!("pdpp connect {provider}"),
    }
}

/// A code is a word that programs compare. Anything else in its place is text.
fn is_code(code: &str) -> bool {
    !code.is_empty()
        && code.len() <= 64
        && code.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-'))
}

impl Refusal {
    /// Whether the server may have failed to decode the path: it found nothing there, or says so.
    pub(super) fn blames_path(&self) -> bool {
        match self.status {
            404 => true,
            400 | 500 => self.message.to_ascii_lowercase().contains("malformed"),
            _ => false,
        }
    }
}

// --- values --------------------------------------------------------------------------------------

fn parse<'a, Answer: Deserialize<'a>>(body: &'a [u8]) -> Result<Answer, SourceError> {
    serde_json::from_slice(body).map_err(|error| {
        let problem = match error.classify() {
            serde_json::error::Category::Eof => format!("it ends after {} bytes", body.len()),
            serde_json::error::Category::Data => return wrong_shape("object of the protocol's shape"),
            _ => format!("line {} column {}", error.line(), error.column()),
        };
        SourceError::FixServer(ProtocolFault::BrokenJson { problem })
    })
}

fn wrong_shape(missing: &'static str) -> SourceError {
    SourceError::FixServer(ProtocolFault::WrongShape { missing })
}

/// A value of an unexpected type counts as missing.
fn lenient<'de, D: Deserializer<'de>, T: DeserializeOwned + Default>(deserializer: D) -> Result<T, D::Error> {
    Ok(serde_json::from_value(Value::deserialize(deserializer)?).unwrap_or_default())
}

/// A list without its items of an unexpected shape; anything but a list is empty.
struct LenientList<T>(Vec<T>);

impl<T> Default for LenientList<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for LenientList<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Value::Array(items) = Value::deserialize(deserializer)? else { return Ok(Self::default()) };
        Ok(Self(items.into_iter().filter_map(|item| serde_json::from_value(item).ok()).collect()))
    }
}

/// The first of several spellings that is there.
fn first<'a, const N: usize>(spellings: [&'a Loose<'_>; N]) -> Option<&'a str> {
    spellings.into_iter().find_map(Loose::get)
}

/// A scalar as text; anything else as missing.
#[derive(Debug, Default)]
struct Loose<'a>(Option<Cow<'a, str>>);

impl Loose<'_> {
    fn get(&self) -> Option<&str> {
        self.0.as_deref()
    }
}

/// A snippet as text, or as an object with its field.
#[derive(Debug, Default)]
struct Snippet<'a> {
    field: Loose<'a>,
    text: Loose<'a>,
}

impl<'de: 'a, 'a> Deserialize<'de> for Loose<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(deserializer.deserialize_any(LooseVisitor)?.text)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Snippet<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(LooseVisitor)
    }
}

/// Accepts any value: scalars as text, an object by its `field` and `text`.
struct LooseVisitor;

fn scalar<'a>(text: impl Into<Cow<'a, str>>) -> Snippet<'a> {
    Snippet { field: Loose(None), text: Loose(Some(text.into())) }
}

impl<'de> Visitor<'de> for LooseVisitor {
    type Value = Snippet<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(scalar(text))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(scalar(text.to_owned()))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Self::Value, E> {
        Ok(scalar(if value { "true" } else { "false" }))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Self::Value, E> {
        Ok(scalar(value.to_string()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Self::Value, E> {
        Ok(scalar(value.to_string()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Self::Value, E> {
        Ok(scalar(value.to_string()))
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Snippet::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Snippet::default())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Self::Value, A::Error> {
        let mut snippet = Snippet::default();
        while let Some(name) = fields.next_key::<Cow<'de, str>>()? {
            match &*name {
                "field" | "field_path" => snippet.field = fields.next_value()?,
                "text" | "preview_text" => snippet.text = fields.next_value()?,
                _ => drop(fields.next_value::<IgnoredAny>()?),
            }
        }
        Ok(snippet)
    }
}
