//! Parser of search results.

use std::borrow::Cow;
use std::ops::Range;

use fetchwell_core::fit::{clip, first_bytes, passage};
use fetchwell_core::handle::{ConnectionId, Handle, RecordAddress};
use fetchwell_core::record::{Evidence, Excerpt, Hit, HitId, WebLink, fallback_title, is_title_field};
use fetchwell_source::{Accuracy, Count, SearchPage, SearchPosition, SourceError};
use serde::de::{IgnoredAny, MapAccess, SeqAccess};

use super::tolerant::{Any, Text, Tolerant};
use super::{parse, wrong_shape};

/// Bytes of text that are kept on either side of a match.
const EXCERPT_RADIUS: usize = 400;

/// Maximum length of a time in bytes.
const MAX_TIME: usize = 64;

/// Maximum size of a title in bytes of JSON. No answer has more, and positions contain hits.
const MAX_TITLE: usize = 1_000;

/// Maximum size of a connection's label in bytes of JSON.
const MAX_LABEL: usize = 100;

/// Maximum number of words of a snippet in a title, and its size in bytes of JSON.
const SNIPPET_WORDS: usize = 12;
const SNIPPET_TITLE: usize = 90;

/// Maximum number of hits of one response. No page has more than a hundred, and a server that ignores the limit could
/// send millions.
const MAX_HITS: usize = 1_000;

/// Parses a page of search results: the list under `data`, `results`, `hits`, `data.results` or `data.data`.
pub fn search_page(body: &[u8]) -> Result<SearchPage, SourceError> {
    let Any(outer) = parse::<Any<Envelope<'_>>>(body)?;
    let levels = || std::iter::successors(Some(&outer), |level| level.inner.as_deref());
    let HitList { hits, is_cut } =
        levels().find_map(|level| level.list.as_ref()).ok_or(wrong_shape("list of hits"))?;
    let cursor = levels().find_map(|level| level.next_cursor.get());
    let ended = levels().any(|level| level.has_more.get() == Some("false"));
    Ok(SearchPage {
        hits: hits.iter().map(hit).collect(),
        next: cursor.filter(|_| !ended).map(|cursor| SearchPosition(cursor.to_owned())),
        windowed: *is_cut || levels().any(|level| level.meta.recall.is_window()),
        count: levels().find_map(|level| level.meta.count()),
        lexical_instead: levels().any(|level| level.meta.warnings.lexical_instead),
        ..SearchPage::default()
    })
}

/// List of hits with the members beside it. Servers nest the list, and sometimes everything, one level down.
#[derive(Default)]
struct Envelope<'a> {
    list: Option<HitList<'a>>,
    inner: Option<Box<Self>>,
    next_cursor: Text<'a>,
    has_more: Text<'a>,
    meta: Meta<'a>,
}

impl<'de: 'a, 'a> Tolerant<'de> for Envelope<'a> {
    fn from_map<A: MapAccess<'de>>(mut fields: A) -> Result<Self, A::Error> {
        let mut envelope = Self::default();
        while let Some(name) = fields.next_key::<Cow<'de, str>>()? {
            match &*name {
                "data" | "results" | "hits" => match fields.next_value::<Any<Slot<'_>>>()?.0 {
                    Slot::List(list) => envelope.list = Some(list),
                    Slot::Inner(inner) => envelope.inner = Some(inner),
                    Slot::Neither => {}
                },
                "next_cursor" | "nextCursor" => envelope.next_cursor.or(fields.next_value()?),
                "has_more" | "hasMore" => envelope.has_more.or(fields.next_value()?),
                "meta" => envelope.meta = fields.next_value::<Any<_>>()?.0,
                _ => drop(fields.next_value::<IgnoredAny>()?),
            }
        }
        Ok(envelope)
    }
}

/// First hits of a list.
#[derive(Default)]
struct HitList<'a> {
    hits: Vec<WireHit<'a>>,
    /// True if the list was longer.
    is_cut: bool,
}

/// Value at the place where the list is expected.
#[derive(Default)]
enum Slot<'a> {
    List(HitList<'a>),
    Inner(Box<Envelope<'a>>),
    #[default]
    Neither,
}

impl<'de: 'a, 'a> Tolerant<'de> for Slot<'a> {
    fn from_list<A: SeqAccess<'de>>(mut items: A) -> Result<Self, A::Error> {
        let mut list = HitList::default();
        while list.hits.len() < MAX_HITS {
            let Some(Any(item)) = items.next_element()? else { return Ok(Self::List(list)) };
            list.hits.push(item);
        }
        while items.next_element::<IgnoredAny>()?.is_some() {
            list.is_cut = true;
        }
        Ok(Self::List(list))
    }

    fn from_map<A: MapAccess<'de>>(fields: A) -> Result<Self, A::Error> {
        Envelope::from_map(fields).map(|inner| Self::Inner(Box::new(inner)))
    }
}

#[derive(Default)]
struct Meta<'a> {
    recall: Recall<'a>,
    count: Text<'a>,
    accuracy: Text<'a>,
    warnings: Warnings,
}

impl<'de: 'a, 'a> Tolerant<'de> for Meta<'a> {
    fn from_map<A: MapAccess<'de>>(mut fields: A) -> Result<Self, A::Error> {
        let mut meta = Self::default();
        while let Some(name) = fields.next_key::<Cow<'de, str>>()? {
            match &*name {
                "warnings" => meta.warnings = fields.next_value::<Any<_>>()?.0,
                "recall" => meta.recall = fields.next_value::<Any<_>>()?.0,
                "count" => meta.count.or(fields.next_value()?),
                "count_accuracy" | "countAccuracy" => meta.accuracy.or(fields.next_value()?),
                _ => drop(fields.next_value::<IgnoredAny>()?),
            }
        }
        Ok(meta)
    }
}

impl Meta<'_> {
    /// Returns the total number of matches. Without an accuracy it is a lower bound.
    fn count(&self) -> Option<Count> {
        let value = self.count.get()?.parse().ok()?;
        let accuracy = match self.accuracy.get() {
            Some("exact") => Accuracy::Exact,
            Some("estimated") => Accuracy::Estimated,
            _ => Accuracy::LowerBound,
        };
        Some(Count { value, accuracy })
    }
}

/// Warnings of a page.
#[derive(Default)]
struct Warnings {
    /// True if the server has no embeddings and ran a lexical search instead.
    lexical_instead: bool,
}

impl<'de> Tolerant<'de> for Warnings {
    fn from_list<A: SeqAccess<'de>>(mut items: A) -> Result<Self, A::Error> {
        let mut warnings = Self::default();
        while let Some(Any(WarningCode(code))) = items.next_element()? {
            warnings.lexical_instead |= code.get() == Some(SEMANTIC_UNAVAILABLE);
        }
        Ok(warnings)
    }
}

/// Warning code of fetchwell's own `/v1/search/semantic` and `/v1/search/hybrid`.
const SEMANTIC_UNAVAILABLE: &str = "semantic_unavailable";

#[derive(Default)]
struct WarningCode<'a>(Text<'a>);

impl<'de: 'a, 'a> Tolerant<'de> for WarningCode<'a> {
    fn from_map<A: MapAccess<'de>>(mut fields: A) -> Result<Self, A::Error> {
        let mut code = Self::default();
        while let Some(name) = fields.next_key::<Cow<'de, str>>()? {
            match &*name {
                "code" => code.0.or(fields.next_value()?),
                _ => drop(fields.next_value::<IgnoredAny>()?),
            }
        }
        Ok(code)
    }
}

#[derive(Default)]
struct Recall<'a> {
    complete: Text<'a>,
    truncated: Text<'a>,
}

impl<'de: 'a, 'a> Tolerant<'de> for Recall<'a> {
    fn from_map<A: MapAccess<'de>>(mut fields: A) -> Result<Self, A::Error> {
        let mut recall = Self::default();
        while let Some(name) = fields.next_key::<Cow<'de, str>>()? {
            match &*name {
                "complete" => recall.complete.or(fields.next_value()?),
                "truncated" => recall.truncated.or(fields.next_value()?),
                _ => drop(fields.next_value::<IgnoredAny>()?),
            }
        }
        Ok(recall)
    }
}

impl Recall<'_> {
    /// Returns true if only a window of the matches was ranked.
    fn is_window(&self) -> bool {
        self.complete.get() == Some("false") || self.truncated.get() == Some("true")
    }
}

/// Search result with each field under any of its names.
#[derive(Default)]
struct WireHit<'a> {
    id: Text<'a>,
    record: Text<'a>,
    stream: Text<'a>,
    connection: Text<'a>,
    label: Text<'a>,
    title: Text<'a>,
    link: Text<'a>,
    authored_at: Text<'a>,
    emitted_at: Text<'a>,
    snippet: Snippet<'a>,
    mode: Text<'a>,
    found_by: FoundBy,
}

/// The searches that found a hit.
#[derive(Default)]
struct FoundBy {
    /// True if only the search by meaning did.
    meaning_alone: bool,
}

impl<'de> Tolerant<'de> for FoundBy {
    fn from_list<A: SeqAccess<'de>>(mut items: A) -> Result<Self, A::Error> {
        let (mut meaning, mut other) = (false, false);
        while let Some(Any(source)) = items.next_element::<Any<Text<'_>>>()? {
            let is_meaning = source.get() == Some("semantic");
            meaning |= is_meaning;
            other |= !is_meaning;
        }
        Ok(Self { meaning_alone: meaning && !other })
    }
}

impl<'de: 'a, 'a> Tolerant<'de> for WireHit<'a> {
    fn from_map<A: MapAccess<'de>>(mut fields: A) -> Result<Self, A::Error> {
        let mut hit = Self::default();
        while let Some(name) = fields.next_key::<Cow<'de, str>>()? {
            let field = match &*name {
                "snippet" => {
                    hit.snippet = fields.next_value::<Any<_>>()?.0;
                    continue;
                }
                "retrieval_sources" | "retrievalSources" => {
                    hit.found_by = fields.next_value::<Any<_>>()?.0;
                    continue;
                }
                "retrieval_mode" | "retrievalMode" => &mut hit.mode,
                "text" | "excerpt" | "preview" => &mut hit.snippet.text,
                "id" => &mut hit.id,
                "record_key" | "recordKey" | "record_id" | "recordId" => &mut hit.record,
                "stream" | "stream_name" | "streamName" => &mut hit.stream,
                "connection_id" | "connectionId" | "connector_instance_id" | "connectorInstanceId" => {
                    &mut hit.connection
                }
                "display_name" | "displayName" => &mut hit.label,
                "title" => &mut hit.title,
                "url" | "link" => &mut hit.link,
                "authored_at" | "authoredAt" => &mut hit.authored_at,
                "emitted_at" | "emittedAt" => &mut hit.emitted_at,
                _ => {
                    fields.next_value::<IgnoredAny>()?;
                    continue;
                }
            };
            field.or(fields.next_value()?);
        }
        Ok(hit)
    }
}

/// Snippet as a string, or as an object with its field.
#[derive(Default)]
struct Snippet<'a> {
    field: Text<'a>,
    text: Text<'a>,
}

impl<'de: 'a, 'a> Tolerant<'de> for Snippet<'a> {
    fn from_text(text: Cow<'de, str>) -> Self {
        Self { field: Text::default(), text: Text::from_text(text) }
    }

    fn from_map<A: MapAccess<'de>>(mut fields: A) -> Result<Self, A::Error> {
        let mut snippet = Self::default();
        while let Some(name) = fields.next_key::<Cow<'de, str>>()? {
            match &*name {
                "field" | "field_path" | "fieldPath" => snippet.field.or(fields.next_value()?),
                "text" | "preview_text" | "previewText" => snippet.text.or(fields.next_value()?),
                _ => drop(fields.next_value::<IgnoredAny>()?),
            }
        }
        Ok(snippet)
    }
}

fn hit(wire: &WireHit<'_>) -> Hit {
    let stream = wire.stream.get();
    let (text, focus) = without_marks(wire.snippet.text.get().unwrap_or_default());
    // The marked text can be as long as the snippet.
    let marked = first_bytes(text.get(focus.clone()).unwrap_or_default(), EXCERPT_RADIUS);
    let (piece, focus) = passage(&text, focus.start..focus.start + marked.len(), EXCERPT_RADIUS);
    let excerpt = Excerpt::new(piece, focus);
    // A snippet that is the whole subject is the title, if the server sends none.
    let is_whole = |text: &str| !text.starts_with('…') && !text.ends_with('…') && !text.ends_with("...");
    let from_snippet = wire.snippet.field.get().filter(|field| is_title_field(field)).map(|_| excerpt.text());
    let own = wire.title.get().filter(|title| !title.trim().is_empty());
    let own = own.or(from_snippet.filter(|text| !text.is_empty() && is_whole(text)));
    let time = wire.authored_at.get().or(wire.emitted_at.get());
    let title = match own {
        Some(own) => clip(own, MAX_TITLE),
        None => first_words(&text)
            .unwrap_or_else(|| clip(&fallback_title(wire.label.get(), stream, time), MAX_TITLE)),
    };
    let link: Option<WebLink> = wire.link.get().and_then(|text| text.parse().ok());
    let excerpt = if excerpt.text() == title { Excerpt::default() } else { excerpt };
    // A longer string is no time.
    let time = time.filter(|time| time.len() <= MAX_TIME).map(str::to_owned);
    let emitted_at = wire.emitted_at.get().filter(|time| time.len() <= MAX_TIME).map(str::to_owned);
    let evidence = Evidence { emitted_at, ..Evidence::default() };
    let account = wire.label.get().map(|label| clip(label, MAX_LABEL));
    let id = hit_id(wire, stream, link.as_ref());
    // A marked match is a word of the query, whatever found the record.
    let has_words = !excerpt.focus().is_empty();
    let by_meaning = !has_words && (wire.found_by.meaning_alone || wire.mode.get() == Some("semantic"));
    Hit { time, account, by_meaning, evidence, link, excerpt, ..Hit::new(id, title) }
}

/// Returns the first words of a snippet, or `None` if it has none.
fn first_words(snippet: &str) -> Option<String> {
    let start = snippet.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, '.' | '…'));
    let words: Vec<&str> = start.split_whitespace().take(SNIPPET_WORDS + 1).collect();
    let joined = words.join(" ");
    let clipped = clip(&joined, SNIPPET_TITLE);
    if clipped == joined && words.len() <= SNIPPET_WORDS {
        return Some(joined).filter(|title| !title.is_empty());
    }
    // Drops the last word, which is beyond the maximum or truncated.
    let whole = clipped.trim_end_matches('…').trim_end();
    Some(format!("{}…", whole.rsplit_once(' ').map_or(whole, |(whole, _)| whole)))
}

/// Returns the id for fetching a hit. Names that the server does not send stay unknown.
fn hit_id(wire: &WireHit<'_>, stream: Option<&str>, link: Option<&WebLink>) -> HitId {
    let connection: Option<ConnectionId> = match wire.connection.get().map(str::parse).transpose() {
        Ok(connection) => connection,
        Err(_no_name) => return HitId::Nameless,
    };
    let address = |record: &str, stream: &str| {
        Some(RecordAddress {
            connection: connection.clone(),
            stream: stream.parse().ok()?,
            record: record.parse().ok()?,
        })
    };
    let id = wire.id.get();
    // An id that is a handle of this stream (`messages:m1`) names that record.
    let written = id.and_then(|id| id.parse::<Handle>().ok()).map(|handle| handle.address().clone());
    let written = written.filter(|written| stream.is_none_or(|stream| written.stream.as_str() == stream));
    let found = match (wire.record.get(), stream, written, id) {
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

/// Removes `<mark>` and `</mark>`, and returns the byte range of the first marked text.
fn without_marks(marked: &str) -> (Cow<'_, str>, Range<usize>) {
    const OPEN: &str = "<mark>";
    const CLOSE: &str = "</mark>";
    let Some((before, rest)) = marked.split_once(OPEN) else { return (Cow::Borrowed(marked), 0..0) };
    let (inside, after) = rest.split_once(CLOSE).unwrap_or((rest, ""));
    let after = after.replace(OPEN, "").replace(CLOSE, "");
    let focus = before.len()..before.len() + inside.len();
    (Cow::Owned(format!("{before}{inside}{after}")), focus)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(snippet: &str, expect: Option<&str>) {
        assert_eq!(first_words(snippet).as_deref(), expect, "{snippet}");
    }

    #[test]
    fn titles_are_the_first_words_of_snippets() {
        check("", None);
        check(" ...\n", None);
        check("...the invoice\n\nof May", Some("the invoice of May"));
        check("a b c d e f g h i j k l", Some("a b c d e f g h i j k l"));
        check("a b c d e f g h i j k l m", Some("a b c d e f g h i j k l…"));
        check(&format!("Hello {}", "x".repeat(100)), Some("Hello…"));
        check(&"日本語".repeat(20), Some(&format!("{}…", "日本語".repeat(9) + "日本")));
    }
}
