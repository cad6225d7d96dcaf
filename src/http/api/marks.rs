//! Records that are too large even when all of them was asked for: long values give way to marks that say where to read
//! them.

use percent_encoding::utf8_percent_encode;
use serde_json::Value;

use super::BASE;
use crate::fit::{FIELD_WIDTHS, PageBudget, json_len, narrow, shortened, tokens_within};
use crate::handle::Handle;
use crate::http::v1::SEGMENT;
use crate::record::{FieldPath, Record, RecordData};

/// How much of a long text its mark shows, in bytes of JSON with all that is in the mark.
const MARKED_TEXT: usize = 200;

/// Where the text of a field is read chunk by chunk.
pub(super) fn content_url(handle: &Handle, field: &str) -> String {
    let encoded = |text: &str| utf8_percent_encode(text, SEGMENT).to_string();
    format!("{BASE}/content/{}?field={}", encoded(handle.as_str()), encoded(field))
}

/// The fields of a record in a budget: the longest values give way to marks, as few as will do, then the ladder of lists
/// goes on. Nothing when not even its id fits. Says whether any of it is a mark, or missing.
pub(super) fn within(
    record: &Record,
    data: &RecordData,
    declared: &[FieldPath],
    budget: PageBudget,
) -> Option<(String, bool)> {
    let handle = Handle::mint(&record.address);
    let written = |shown: RecordData| {
        let json = serde_json::to_string(&shown).ok()?;
        let tokens = tokens_within(&json, budget.tokens);
        (json.len() <= budget.bytes).then_some((json, tokens))
    };
    let mut room = budget.bytes;
    while room > 0 {
        let Some((json, tokens)) = marked(data, handle.as_ref(), room).and_then(|(shown, _)| written(shown))
        else {
            break;
        };
        match tokens {
            Ok(_) => return Some((json, true)),
            // Tokens are spread unevenly; each round takes at least a twentieth, so it ends.
            Err(tokens) => room = room.min(json.len()) * budget.tokens / tokens.max(1) * 19 / 20,
        }
    }
    FIELD_WIDTHS.into_iter().find_map(|width| {
        let mut shown = match narrow(data, width, declared).0 {
            Some(shown) => shown.into_owned(),
            None => only_id(record, data),
        };
        if let Some(handle) = &handle {
            add_urls(&mut shown, data, handle);
        }
        let (json, tokens) = written(shown)?;
        tokens.is_ok().then_some((json, true))
    })
}

/// The record in at most `room` bytes, its longest values marked; nothing when all of them marked is too much.
fn marked(data: &RecordData, handle: Option<&Handle>, room: usize) -> Option<(RecordData, usize)> {
    let sized = |(name, value): (&String, &Value)| {
        let bytes = serde_json::to_string(value).map_or(0, |json| json.len());
        (name.clone(), bytes)
    };
    let mut sizes: Vec<(String, usize)> = data.iter().map(sized).collect();
    let mut taken: usize = sizes.iter().map(|(name, bytes)| json_len(name) + bytes + "\"\":,".len()).sum();
    sizes.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
    let mut longest = std::collections::HashMap::new();
    for (name, bytes) in sizes {
        if taken <= room {
            break;
        }
        let Some(mark) = data.get(&name).and_then(|value| mark(&name, value, handle)) else { continue };
        let less = serde_json::to_string(&mark).map_or(bytes, |json| json.len());
        if less < bytes {
            taken -= bytes - less;
            longest.insert(name, mark);
        }
    }
    let count = longest.len();
    let shown = |(name, value): (&String, &Value)| {
        (name.clone(), longest.remove(name).unwrap_or_else(|| value.clone()))
    };
    (taken <= room).then(|| (data.iter().map(shown).collect(), count))
}

/// What stands for a value that is read elsewhere.
fn mark(name: &str, value: &Value, handle: Option<&Handle>) -> Option<Value> {
    let mut mark = match shortened(value, MARKED_TEXT) {
        Value::Object(mark) if mark.len() <= 2 => mark,
        _ => return None,
    };
    if let Some(handle) = handle {
        mark.insert("read".to_owned(), content_url(handle, name).into());
    }
    Some(Value::Object(mark))
}

/// What is left of a record of which nothing else fits.
pub(super) fn only_id(record: &Record, data: &RecordData) -> RecordData {
    let id = data.get("id").filter(|id| !id.is_array() && !id.is_object()).cloned();
    RecordData::from_iter([("id".to_owned(), id.unwrap_or_else(|| record.address.record.as_str().into()))])
}

fn add_urls(marked: &mut RecordData, data: &RecordData, handle: &Handle) {
    for (name, value) in marked {
        if data.get(name).is_some_and(|whole| whole != value)
            && let Value::Object(mark) = value
        {
            mark.insert("read".to_owned(), content_url(handle, name).into());
        }
    }
}
