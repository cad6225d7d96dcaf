//! Records that are too large even when all of them was asked for: long values give way to marks that say where to read
//! them.

use percent_encoding::utf8_percent_encode;
use serde_json::Value;

use super::BASE;
use crate::fit::{FIELD_WIDTHS, FieldWidth, PageBudget, narrow, tokens_within};
use crate::handle::Handle;
use crate::http::v1::SEGMENT;
use crate::record::{FieldPath, Record, RecordData};

/// Where the text of a field is read chunk by chunk.
pub(super) fn content_url(handle: &Handle, field: &str) -> String {
    let encoded = |text: &str| utf8_percent_encode(text, SEGMENT).to_string();
    format!("{BASE}/content/{}?field={}", encoded(handle.as_str()), encoded(field))
}

/// The fields of a record in a budget, the longest values as marks; nothing when not even its id fits. Says whether any
/// of it is a mark, or missing.
pub(super) fn within(
    record: &Record,
    data: &RecordData,
    declared: &[FieldPath],
    budget: PageBudget,
) -> Option<(String, bool)> {
    let handle = Handle::mint(&record.address);
    FIELD_WIDTHS.into_iter().find_map(|width| {
        let shown = match narrow(data, width, declared).0 {
            Some(shown) => shown.into_owned(),
            None => only_id(record, data),
        };
        let mut marked = shown;
        if let Some(handle) = handle.as_ref().filter(|_| width != FieldWidth::Whole) {
            add_urls(&mut marked, data, handle);
        }
        let json = serde_json::to_string(&marked).ok()?;
        let fits = json.len() <= budget.bytes && tokens_within(&json, budget.tokens).is_ok();
        fits.then_some((json, width != FieldWidth::Whole))
    })
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
