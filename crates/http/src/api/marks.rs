//! Placeholders in records that are too large even when all fields were requested.
//!
//! Long values are replaced by placeholders with the URL at which the value can be read.

use fetchwell_core::fit::{
    FIELD_WIDTHS, FieldWidth, PageBudget, field_len, narrow, shortened, tokens_within,
};
use fetchwell_core::handle::Handle;
use fetchwell_core::record::{FieldPath, Record, RecordData};
use percent_encoding::utf8_percent_encode;
use serde_json::Value;

use super::call::BASE;
use super::fields::only_id;
use crate::encoding::SEGMENT;

/// Bytes of text that a placeholder shows, measured as JSON of the whole placeholder.
const PLACEHOLDER_TEXT_BYTES: usize = 200;

/// Maximum bytes of a value in a record with too many fields.
const MAX_SHORT_VALUE_BYTES: usize = 60;

/// Name of the placeholder for all fields of such a record.
const ALL_FIELDS: &str = "allFields";

/// Returns the URL at which a field, or the record as one text, is read by chunks.
fn content_url(handle: &Handle, field: Option<&str>) -> String {
    let encoded = |text: &str| utf8_percent_encode(text, SEGMENT).to_string();
    let field = field.map(|field| format!("?field={}", encoded(field)));
    format!("{BASE}/content/{}{}", encoded(handle.as_str()), field.unwrap_or_default())
}

/// Returns the fields of a record within a budget. Placeholders replace the longest values, as few as necessary. If
/// there are too many fields even then, the first of them stand for all. Returns `None` if not even the id fits.
pub(super) fn within(
    record: &Record,
    data: &RecordData,
    declared: &[FieldPath],
    budget: PageBudget,
) -> Option<RecordData> {
    let handle = Handle::mint(&record.address);
    let handle = handle.as_ref();
    let narrowed = || {
        let widths = FIELD_WIDTHS.into_iter().filter(|width| matches!(width, FieldWidth::Values(_)));
        let shown = |width| {
            let mut shown = narrow(data, width, declared).0?.into_map();
            if let Some(handle) = handle {
                add_urls(&mut shown, data, handle);
            }
            Some(shown).filter(|shown| fits(shown, budget).is_ok())
        };
        widths.into_iter().find_map(shown)
    };
    fitting(budget, |room| with_placeholders(data, handle, room))
        .or_else(narrowed)
        .or_else(|| fitting(budget, |room| Some(first_fields(record, data, handle, room))))
        .or_else(|| Some(only_id(record)).filter(|id| fits(id, budget).is_ok()))
}

/// Calls `make` with decreasing numbers of bytes until the result fits the budget.
fn fitting(budget: PageBudget, make: impl Fn(usize) -> Option<RecordData>) -> Option<RecordData> {
    let mut room = budget.bytes;
    while room > 0 {
        let shown = make(room)?;
        match fits(&shown, budget) {
            Ok(()) => return Some(shown),
            Err((bytes, tokens)) => room = budget.less_room(room, bytes, tokens),
        }
    }
    None
}

/// Checks that a record fits a budget; returns its bytes and tokens if it does not.
fn fits(shown: &RecordData, budget: PageBudget) -> Result<(), (usize, usize)> {
    let json = serde_json::to_string(shown).unwrap_or_default();
    match tokens_within(&json, budget.tokens) {
        Ok(_) if json.len() <= budget.bytes => Ok(()),
        Ok(_) => Err((json.len(), budget.tokens)),
        Err(tokens) => Err((json.len(), tokens)),
    }
}

/// Returns the id and the first fields of a record with too many fields, with their number and the URL of the whole
/// record.
fn first_fields(record: &Record, data: &RecordData, handle: Option<&Handle>, room: usize) -> RecordData {
    let mut shown = only_id(record);
    let mut all = RecordData::from_iter([("fields".to_owned(), data.len().into())]);
    all.extend(handle.map(|handle| ("read".to_owned(), content_url(handle, None).into())));
    let all = Value::Object(all);
    let taken: usize = shown.iter().map(|(name, value)| field_len(name, value)).sum();
    let mut left = room.saturating_sub(taken + field_len(ALL_FIELDS, &all));
    for (name, value) in data {
        let value = shortened(value, MAX_SHORT_VALUE_BYTES).into_owned();
        let taken = field_len(name, &value);
        if taken <= left && !shown.contains_key(name) {
            left -= taken;
            shown.insert(name.clone(), value);
        }
    }
    shown.insert(ALL_FIELDS.to_owned(), all);
    shown
}

/// Returns the record in at most `room` bytes, with placeholders for its longest values. Returns `None` if that is
/// not possible.
fn with_placeholders(data: &RecordData, handle: Option<&Handle>, room: usize) -> Option<RecordData> {
    let mut sizes: Vec<(&String, usize)> =
        data.iter().map(|(name, value)| (name, field_len(name, value))).collect();
    let mut taken: usize = sizes.iter().map(|(_, bytes)| bytes).sum();
    sizes.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
    let mut longest = std::collections::HashMap::new();
    for (name, bytes) in sizes {
        if taken <= room {
            break;
        }
        let Some(mark) = data.get(name).and_then(|value| placeholder(name, value, handle)) else { continue };
        let less = field_len(name, &mark);
        if less < bytes {
            taken -= bytes - less;
            longest.insert(name, mark);
        }
    }
    let mut shown = |(name, value): (&String, &Value)| {
        (name.clone(), longest.remove(name).unwrap_or_else(|| value.clone()))
    };
    (taken <= room).then(|| data.iter().map(&mut shown).collect())
}

/// Returns the placeholder of a value, with the URL at which it is read.
fn placeholder(name: &str, value: &Value, handle: Option<&Handle>) -> Option<Value> {
    let mut mark = match shortened(value, PLACEHOLDER_TEXT_BYTES).into_owned() {
        Value::Object(mark) if mark.len() <= 2 => mark,
        _ => return None,
    };
    mark.extend(handle.map(|handle| ("read".to_owned(), content_url(handle, Some(name)).into())));
    Some(Value::Object(mark))
}

fn add_urls(marked: &mut RecordData, data: &RecordData, handle: &Handle) {
    for (name, value) in marked {
        if data.get(name).is_some_and(|whole| whole != value)
            && let Value::Object(mark) = value
        {
            mark.insert("read".to_owned(), content_url(handle, Some(name)).into());
        }
    }
}
