//! The document of a record: whole, or one part of it within the budget.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use fetchwell_callers::RecordPages;
use fetchwell_core::fit::{PageBudget, clip};
use fetchwell_core::handle::{ConnectionId, Handle, PartId, TextVersion};
use fetchwell_core::hex::hexadecimal;
use fetchwell_core::record::{
    DocumentText, Hit, Record, authored_at, document_with_attachments, fallback_title, own_link, own_title,
};
use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::request::Request;
use crate::answer::{LongText, Payload, json_of, within};
use crate::cache::Parts;
use crate::error::{Overrun, ToolError};
use crate::profile::Profile;
use crate::resource::record_uri;

/// Maximum length of a title, in bytes of JSON.
const MAX_TITLE_BYTES: usize = 300;

/// Maximum length of a label or key in the metadata, in bytes of JSON.
const MAX_LABEL_BYTES: usize = 200;

/// Maximum length of a record URL in the metadata, in bytes. A longer one is omitted, never truncated.
const MAX_RECORD_URL_BYTES: usize = 2_500;

/// Maximum length of an id in a hint, in bytes. A hint refers to a longer one without repeating it.
const MAX_QUOTED_ID_BYTES: usize = 600;

/// Maximum number of fields that a hint names with their sizes.
const MAX_LARGEST_FIELDS: usize = 3;

/// Maximum length of the name of a field in a hint, in bytes of JSON.
const MAX_FIELD_NAME_BYTES: usize = 80;

/// The part of a call that a document depends on, apart from the record.
pub(super) struct DocumentContext {
    /// Cache of the ends of parts.
    pub(super) parts: Parts,
    pub(super) budget: PageBudget,
    /// Record pages, for the link of a record without one.
    pub(super) pages: Option<RecordPages>,
    pub(super) profile: Profile,
    /// Set when the call is dropped.
    pub(super) stop: Arc<AtomicBool>,
}

/// The answer of `fetch`.
#[derive(Debug, Clone, Serialize)]
struct Document<'a> {
    id: &'a str,
    title: &'a str,
    text: &'a str,
    url: &'a str,
    metadata: Metadata,
}

/// Facts about a record next to its text.
#[derive(Debug, Clone, Default, Serialize)]
struct Metadata {
    #[serde(skip_serializing_if = "Option::is_none")]
    connection_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    connector_key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    display_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    authored_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    emitted_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    record_url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    total_chars: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    warning: Option<&'static str>,
}

/// Warning of a part of a text that changed after the part before was read.
const CHANGED: &str = "the record changed after the part before was read; its parts belong together only if all are fetched again";

/// Builds the answer of a record: the whole document, or the requested part if it exceeds the budget.
pub(super) fn document(
    DocumentContext { parts, budget, pages, profile, stop }: &DocumentContext,
    request: &Request,
    record: &Record,
) -> Result<Payload, ToolError> {
    let DocumentText { text, attachments } = document_with_attachments(&record.data);
    let text = text + &related_text(record);
    let handle = Handle::mint(&record.address);
    let title = title(record);
    let id = handle.as_ref().map_or(request.id.as_str(), Handle::as_str);
    let page = || pages.as_ref().zip(handle.as_ref()).and_then(|(pages, handle)| pages.link(handle));
    let link = own_link(&record.data).map(|link| link.to_string()).or_else(page);
    let url = link.unwrap_or_else(|| match profile {
        Profile::OpenAi => address_url(record, id),
        Profile::Standard | Profile::Docs => String::new(),
    });
    let whole =
        Document { id, title: &title, text: &text, url: &url, metadata: metadata(record, *profile, &url) };
    // A text that exceeds the budget by itself is not written as JSON first.
    if request.part == 0
        && text.len() <= budget.bytes
        && let Some(payload) = Payload::if_within(&whole, *budget)?
    {
        return Ok(payload);
    }
    let Some((handle, longest_part)) =
        handle.as_ref().and_then(|handle| Some((handle, handle.with_part(u32::MAX)?)))
    else {
        let hint = hint_without_parts(*profile, request, record);
        return Err(ToolError::ResponseTooLarge { overrun: overrun(&whole, *budget)?, hint });
    };
    if !(request.fields.is_empty() && request.expand.is_empty()) {
        let id = if id.len() <= MAX_QUOTED_ID_BYTES { format!("`{id}`") } else { "the same id".to_owned() };
        let hint = format!("Fetch {id} without `fields` and `expand`: it comes in parts.");
        return Err(ToolError::ResponseTooLarge { overrun: overrun(&whole, *budget)?, hint });
    }
    let mut part = whole;
    part.metadata.total_chars = Some(text.chars().count().to_string());
    let version = record.has_versioned_parts.then(|| version_of(&text));
    // The end of a part must not depend on its number, so every part is measured with the longest number.
    let longest = PartId { handle: longest_part.clone(), version: version.clone() };
    part.metadata.next = Some(longest.to_string());
    part.id = longest_part.as_str();
    // Nor on whether there is a warning.
    part.metadata.warning = version.as_ref().map(|_| CHANGED);
    // Nor on the random key in the link of a record page: one token is reserved for each of its characters.
    let steady = pages.as_ref().map_or(url.as_str(), |pages| pages.without_key(&url));
    let without_text = json_of(&Document { text: "", url: steady, ..part.clone() })?;
    let sections: Vec<Range<usize>> = attachments.into_iter().map(|attachment| attachment.range).collect();
    let sections = sections.as_slice();
    let long = LongText { parts, handle, text: &text, sections, number: request.part, budget: *budget };
    let (start, end) = long.bounds(&without_text, url.len() - steady.len(), stop)?;
    let own_id = long.id();
    let has_changed = request.part > 0 && request.version.is_some() && request.version != version;
    part.metadata.warning = part.metadata.warning.filter(|_| has_changed);
    part.metadata.next = long.next(end).map(|handle| PartId { handle, version }.to_string());
    part.id = &own_id;
    part.text = text.get(start..end).unwrap_or_default();
    Ok(Payload::within(&part, *budget)?.cut_from(&text, part.text))
}

/// Returns the version of a text.
fn version_of(text: &str) -> TextVersion {
    TextVersion::from_hash(&hexadecimal(Sha256::digest(text).iter().take(4)))
}

/// Returns the citation of a record without a link and without a page, since ChatGPT cites only what has one: the URL on its
/// record server, or else its resource.
fn address_url(record: &Record, id: &str) -> String {
    let own = record.record_url.clone().filter(|url| url.len() <= MAX_RECORD_URL_BYTES);
    own.unwrap_or_else(|| record_uri(id))
}

/// Returns by how much a document exceeds its budget. A document of megabytes is not written as JSON for that.
fn overrun(whole: &Document<'_>, budget: PageBudget) -> Result<Overrun, ToolError> {
    if whole.text.len() > budget.bytes {
        return Ok(Overrun::Bytes { bytes: whole.text.len(), budget: budget.bytes });
    }
    Ok(within(&json_of(whole)?, budget).err().unwrap_or(Overrun::Unmeasured { budget: budget.tokens }))
}

/// Writes related records, each with its id and fields.
fn related_text(record: &Record) -> String {
    let mut text = String::new();
    for relation in &record.expanded {
        text.push_str(&format!("\n\n{}:", relation.relation));
        for related in &relation.records {
            let id = Handle::mint(&related.address).map(|handle| handle.to_string()).unwrap_or_default();
            let fields = serde_json::to_string(&related.data).unwrap_or_default();
            text.push_str(&format!("\n- {id} {fields}"));
        }
        if relation.has_more {
            text.push_str("\n- and more: list them with query_records");
        }
        if relation.records.is_empty() {
            text.push_str(" none");
        }
    }
    text
}

/// Returns the hint for a long record that cannot be read in parts, because it has no connection, or because its key
/// leaves no room for the number of a part.
fn hint_without_parts(profile: Profile, request: &Request, record: &Record) -> String {
    let mut sizes: Vec<(&str, usize)> =
        record.data.iter().map(|(name, value)| (name.as_str(), field_bytes(value))).collect();
    sizes.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
    let largest: Vec<String> = sizes
        .iter()
        .take(MAX_LARGEST_FIELDS)
        .map(|(name, bytes)| format!("`{}` ({bytes} bytes)", clip(name, MAX_FIELD_NAME_BYTES)))
        .collect();
    let largest = largest.join(", ");
    match (profile, record.address.connection.is_some()) {
        (_, false) => {
            "Search for the record and fetch the id of the result: it names the account, and by it a long record \
             comes in parts."
                .to_owned()
        }
        (Profile::OpenAi, true) => {
            "Its id leaves no room for the number of a part, so it can be read only where `fetch` takes `fields`."
                .to_owned()
        }
        (Profile::Standard | Profile::Docs, true) if request.fields.is_empty() => {
            format!("Its id leaves no room for the number of a part. Name the `fields` to fetch; the largest are {largest}.")
        }
        (Profile::Standard | Profile::Docs, true) => format!("Name fewer or smaller `fields`; the largest of these are {largest}."),
    }
}

/// Estimates the size of a field in a document, in bytes.
fn field_bytes(value: &Value) -> usize {
    value.as_str().map_or_else(|| value.to_string().len(), str::len)
}

/// Returns the title of a record: its own, or its account, stream and time.
fn title(record: &Record) -> String {
    let when = authored_at(&record.data).or(record.emitted_at.as_deref());
    let fallback =
        || fallback_title(record.display_name.as_deref(), Some(record.address.stream.as_str()), when);
    let title = own_title(&record.data).map_or_else(fallback, str::to_owned);
    clip(title.trim(), MAX_TITLE_BYTES)
}

/// Returns the metadata of a record. Values that another key already has are omitted.
fn metadata(record: &Record, profile: Profile, url: &str) -> Metadata {
    let label = |text: &Option<String>| text.as_ref().map(|text| clip(text, MAX_LABEL_BYTES));
    let connection_id = record.address.connection.as_ref().map(ConnectionId::to_string);
    let authored_at = authored_at(&record.data).map(str::to_owned);
    // It opens only with a bearer token, which no tool of ChatGPT can send.
    let record_url = record.record_url.clone().filter(|_| profile == Profile::Standard);
    Metadata {
        display_name: label(&record.display_name).filter(|name| Some(name) != connection_id.as_ref()),
        emitted_at: label(&record.emitted_at).filter(|time| Some(time) != authored_at.as_ref()),
        connection_id,
        connector_key: label(&record.connector_key),
        stream: Some(record.address.stream.to_string()),
        authored_at,
        record_url: record_url.filter(|own| own.len() <= MAX_RECORD_URL_BYTES && own != url),
        next: None,
        total_chars: None,
        warning: None,
    }
}

/// Builds the answer for a search hit with an id of the source's own: what the search returned.
pub(super) fn hit_document(
    id: &str,
    hit: &Hit,
    profile: Profile,
    budget: PageBudget,
) -> Result<Payload, ToolError> {
    let title = clip(&hit.title, MAX_TITLE_BYTES);
    let url = match (&hit.link, profile) {
        (Some(link), _) => link.to_string(),
        (None, Profile::OpenAi) => record_uri(id),
        (None, Profile::Standard | Profile::Docs) => String::new(),
    };
    let document =
        Document { id, title: &title, text: hit.excerpt.text(), url: &url, metadata: Metadata::default() };
    Payload::within(&document, budget)
}
