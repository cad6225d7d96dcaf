//! The texts of the fields of a record.

use std::borrow::Cow;

use fetchwell_core::record::RecordData;
use serde_json::Value;

/// Returns the texts of a record with the names of their fields. The index has numbers of fields, too.
pub(super) fn texts_of(data: &RecordData) -> Vec<(&str, Cow<'_, str>)> {
    let mut texts: Vec<(&str, Cow<'_, str>)> = Vec::new();
    for (name, value) in data {
        let mut inside = Vec::new();
        collect_texts(value, &mut inside);
        texts.extend(inside.into_iter().map(|text| (name.as_str(), Cow::Borrowed(text))));
        if let Value::Number(number) = value {
            texts.push((name.as_str(), Cow::Owned(number.to_string())));
        }
    }
    texts
}

/// Collects every string inside a value, in order.
pub(super) fn collect_texts<'a>(value: &'a Value, texts: &mut Vec<&'a str>) {
    match value {
        Value::String(text) => texts.push(text),
        Value::Array(items) => items.iter().for_each(|item| collect_texts(item, texts)),
        Value::Object(fields) => fields.values().for_each(|field| collect_texts(field, texts)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
