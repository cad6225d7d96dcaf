//! The answer of `get_document`: the whole text, or one part of it within the budget.

use std::sync::atomic::AtomicBool;

use fetchwell_callers::RecordPages;
use fetchwell_core::fit::{PageBudget, clip, json_len};
use fetchwell_core::handle::{Handle, PartId, RecordAddress, TextVersion};
use fetchwell_source::documents::Document;
use serde::Serialize;

use crate::answer::{LongText, Payload, json_of};
use crate::cache::Parts;
use crate::error::ToolError;

/// Maximum length of a title in bytes of JSON.
const MAX_TITLE_BYTES: usize = 300;

/// Maximum size of the other fields of a document in bytes of JSON. Larger ones are left out; `fetch` has them.
const MAX_METADATA_BYTES: usize = 2_000;

/// A document and the part of it to answer with.
pub(super) struct DocumentPart {
    /// Cache of the ends of parts.
    pub(super) parts: Parts,
    pub(super) budget: PageBudget,
    /// Record pages, for the link of the document.
    pub(super) pages: Option<RecordPages>,
    pub(super) address: RecordAddress,
    pub(super) document: Document,
    pub(super) text: String,
    /// Number of the part, from 0.
    pub(super) number: u32,
    /// Version of the document of which the part before is; `None` if the call names none.
    pub(super) version: Option<TextVersion>,
    pub(super) warnings: Vec<String>,
}

/// The answer of the tool.
#[derive(Debug, Clone, Serialize)]
struct DocumentAnswer<'a> {
    id: &'a str,
    title: &'a str,
    text: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<&'a str>,
    document: &'a Document,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    total_chars: Option<usize>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    warnings: &'a [String],
}

/// Returns the version of a document's text, by which its parts notice a change.
fn version_of(document: &Document) -> TextVersion {
    TextVersion::from_hash(&document.content_hash)
}

/// Builds the answer: the whole document, or the requested part if it exceeds the budget.
pub(super) fn answer(part: &DocumentPart, stopped: &AtomicBool) -> Result<Payload, ToolError> {
    let DocumentPart { parts, budget, pages, address, text, number, version, .. } = part;
    let nameless = || ToolError::Internal { problem: "a document has no handle".to_owned() };
    let handle = Handle::mint(address).ok_or_else(nameless)?;
    let current = version_of(&part.document);
    // Parts of two versions do not fit together.
    if version.as_ref().is_some_and(|version| *version != current) {
        return Err(ToolError::DocumentChanged { first: handle.to_string() });
    }
    let longest = handle.with_part(u32::MAX).ok_or_else(nameless)?;
    let mut document = part.document.clone();
    let mut warnings = part.warnings.clone();
    if json_len(&json_of(&document.metadata)?) > MAX_METADATA_BYTES {
        document.metadata.clear();
        warnings.push("the metadata is left out because it is long".to_owned());
    }
    let title = clip(document.title.as_deref().unwrap_or(document.path.as_str()), MAX_TITLE_BYTES);
    let url = pages.as_ref().and_then(|pages| pages.link(&handle));
    let whole = DocumentAnswer {
        id: handle.as_str(),
        title: &title,
        text,
        url: url.as_deref(),
        document: &document,
        next: None,
        total_chars: None,
        warnings: &warnings,
    };
    // A text that exceeds the budget by itself is not written as JSON first.
    if *number == 0
        && text.len() <= budget.bytes
        && let Some(payload) = Payload::if_within(&whole, *budget)?
    {
        return Ok(payload);
    }
    // The end of a part must depend on the text alone, so every part is measured with the longest number, without the link,
    // which has a random key, and without warnings.
    let measured = DocumentAnswer {
        id: longest.as_str(),
        text: "",
        url: None,
        next: Some(PartId { handle: longest.clone(), version: Some(current.clone()) }.to_string()),
        total_chars: Some(text.chars().count()),
        warnings: &[],
        ..whole.clone()
    };
    let reserved = url.as_ref().map_or(0, |url| url.len() + "\"url\":\"\",".len())
        + warnings.iter().map(|warning| json_len(warning) + 16).sum::<usize>();
    let long = LongText { parts, handle: &handle, text, sections: &[], number: *number, budget: *budget };
    let (start, end) = long.bounds(&json_of(&measured)?, reserved, stopped)?;
    let id = long.id();
    let shown = DocumentAnswer {
        id: &id,
        text: text.get(start..end).unwrap_or_default(),
        next: long.next(end).map(|handle| PartId { handle, version: Some(current) }.to_string()),
        total_chars: measured.total_chars,
        ..whole
    };
    Ok(Payload::within(&shown, *budget)?.cut_from(text, shown.text))
}
