//! The ladder for records: whole, then without long values, then the fields that tell most, then none.

use serde_json::{Map, Value, json};

use super::cut::{clip, json_len};

/// How much of a record is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldWidth {
    /// All of it.
    Whole,
    /// Every field, values longer than this many bytes of JSON by a mark that says how long they are.
    Values(usize),
    /// The first few fields that are short, values up to this many bytes.
    Preview(usize),
    /// None of it.
    None,
}

/// Every width, from the greatest on. Each takes no more than the one before.
pub const FIELD_WIDTHS: [FieldWidth; 12] = [
    FieldWidth::Whole,
    FieldWidth::Values(4_000),
    FieldWidth::Values(2_000),
    FieldWidth::Values(1_000),
    FieldWidth::Values(500),
    FieldWidth::Values(250),
    FieldWidth::Values(160),
    FieldWidth::Values(100),
    FieldWidth::Values(60),
    FieldWidth::Preview(60),
    FieldWidth::Preview(30),
    FieldWidth::None,
];

/// Fields of a preview.
const PREVIEW_FIELDS: usize = 5;

/// What the mark of a text takes beside its preview: `{"preview":"","chars":12345678}`.
const MARK: usize = 32;

/// A record's fields at some width; `None` when nothing is shown.
#[must_use]
pub fn narrow(data: &Map<String, Value>, width: FieldWidth) -> Option<Map<String, Value>> {
    let at_most =
        |most: usize| move |(name, value): (&String, &Value)| (name.clone(), shortened(value, most));
    match width {
        FieldWidth::Whole => Some(data.clone()),
        FieldWidth::Values(most) => Some(data.iter().map(at_most(most)).collect()),
        FieldWidth::Preview(most) => {
            let tells = |(name, value): &(&String, &Value)| {
                name.len() <= most && !matches!(value, Value::Null | Value::Array(_) | Value::Object(_))
            };
            Some(data.iter().filter(tells).take(PREVIEW_FIELDS).map(at_most(most)).collect())
        }
        FieldWidth::None => None,
    }
}

/// A value, or a mark in its place that says what and how long it is.
fn shortened(value: &Value, most: usize) -> Value {
    match value {
        Value::String(text) if json_len(text) + 2 > most => {
            let preview = clip(text, most.saturating_sub(MARK));
            json!({ "preview": preview, "chars": text.chars().count() })
        }
        Value::Array(items) if is_longer(value, most) => json!({ "items": items.len() }),
        Value::Object(fields) if is_longer(value, most) => json!({ "fields": fields.len() }),
        other => other.clone(),
    }
}

fn is_longer(value: &Value, most: usize) -> bool {
    serde_json::to_string(value).map_or(usize::MAX, |json| json.len()) > most
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn width_of(data: &Map<String, Value>, width: FieldWidth) -> usize {
        narrow(data, width).map_or(0, |data| serde_json::to_string(&data).unwrap().len())
    }

    #[test]
    fn long_values_give_way_to_marks() {
        let data = json!({"subject": "Hi", "body": "é".repeat(300), "tags": vec!["tag"; 50], "raw": {"a": "x".repeat(99)}, "n": 1});
        let data = data.as_object().unwrap();
        assert_eq!(narrow(data, FieldWidth::Whole).as_ref(), Some(data));
        let shown = Value::Object(narrow(data, FieldWidth::Values(60)).unwrap());
        assert_eq!(shown["subject"], "Hi");
        assert_eq!(shown["body"], json!({"preview": "éééééééééééé…", "chars": 300}));
        assert_eq!(shown["tags"], json!({"items": 50}));
        assert_eq!(shown["raw"], json!({"fields": 1}));
        let preview = Value::Object(narrow(data, FieldWidth::Preview(60)).unwrap());
        assert_eq!(preview.as_object().unwrap().keys().collect::<Vec<_>>(), ["subject", "body", "n"]);
        assert_eq!(narrow(data, FieldWidth::None), None);
    }

    proptest! {
        #[test]
        fn narrower_never_takes_more(values in proptest::collection::vec((".{0,90}", ".{0,5000}"), 0..8)) {
            let data: Map<String, Value> = values.into_iter().map(|(name, text)| (name, text.into())).collect();
            let widths: Vec<usize> = FIELD_WIDTHS.iter().map(|width| width_of(&data, *width)).collect();
            prop_assert!(widths.is_sorted_by(|wide, narrow| wide >= narrow), "{:?}", widths);
        }
    }
}
