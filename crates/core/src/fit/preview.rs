//! Preview of a record: the fields that its stream declares as informative, then those with the most information for
//! their bytes.
//!
//! A preview answers common questions about a record and states the size of each omitted part, so that one call reads
//! the part and not the whole record.

use serde_json::{Map, Value};

use super::cut::{bytes_of, clip, field_len, json_len};
use crate::record::{FieldPath, project};

/// Maximum number of candidates for a preview.
const MAX_PATHS: usize = 256;

/// Depth up to which fields of objects are candidates of their own.
const MAX_DEPTH: usize = 3;

/// Maximum length of a complete text in bytes of JSON. A longer text is truncated and has its length beside it.
const MAX_TEXT: usize = 400;

/// Bytes of the placeholder of a long text beside its start.
const MARK: usize = 40;

/// Preview with a list of omitted fields.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Preview {
    /// Fields of the preview.
    pub summary: Map<String, Value>,
    /// Omitted or truncated fields, in the record's order.
    pub left_out: Vec<OmittedField>,
}

/// Field that a preview lacks or truncates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OmittedField {
    /// Name of the field.
    pub field: String,
    /// Size in bytes of JSON.
    pub bytes: usize,
    /// Number of items of a list.
    pub items: Option<usize>,
}

/// Part of a record that the preview may contain.
struct Candidate {
    path: FieldPath,
    bytes: usize,
    /// Estimated information, without a unit; a name has ten.
    worth: usize,
}

/// Returns a preview in at most `room` bytes of JSON: first the `declared` fields, in their order, then those with
/// the most information for their bytes.
#[must_use]
pub fn preview(data: &Map<String, Value>, declared: &[FieldPath], room: usize) -> Preview {
    let mut room = room.saturating_sub("{}".len());
    let mut chosen: Vec<FieldPath> = Vec::new();
    for path in declared.iter().take(MAX_PATHS) {
        let picked = project(data, std::slice::from_ref(path));
        let bytes = bytes_of_fields(&shortened(picked));
        if bytes > 0 && bytes <= room && !chosen.contains(path) {
            room -= bytes;
            chosen.push(path.clone());
        }
    }
    let mut candidates = Vec::new();
    for (name, value) in data {
        offer(&FieldPath::field(name), name, value, 0, &mut candidates);
    }
    candidates.retain(|candidate| !chosen.contains(&candidate.path));
    // Sorted by information per byte, compared by cross-multiplication; equal ones stay in the record's order.
    candidates.sort_by(|a, b| (b.worth * a.bytes).cmp(&(a.worth * b.bytes)));
    for Candidate { path, bytes, .. } in candidates {
        if chosen.len() >= MAX_PATHS {
            break;
        }
        if bytes <= room {
            room -= bytes;
            chosen.push(path);
        }
    }
    let summary = shortened(project(data, &chosen));
    let left_out = left_out(data, &summary);
    Preview { summary, left_out }
}

/// Returns the fields of a record that a preview lacks or truncates.
#[must_use]
pub fn left_out(data: &Map<String, Value>, shown: &Map<String, Value>) -> Vec<OmittedField> {
    let cut = data.iter().filter(|(name, value)| shown.get(*name) != Some(value));
    cut.map(|(name, value)| OmittedField {
        field: name.clone(),
        bytes: bytes_of(value),
        items: value.as_array().map(Vec::len),
    })
    .collect()
}

/// Adds a value as a candidate, and the members of an object one by one.
fn offer(path: &FieldPath, name: &str, value: &Value, depth: usize, candidates: &mut Vec<Candidate>) {
    let worth = match value {
        Value::Null => 1,
        Value::Bool(_) | Value::Number(_) => 6,
        Value::String(text) if text.is_empty() => 1,
        Value::String(_) => worth_of_name(name),
        // Items of a list have less and less information, and a list of objects is rarely needed as a whole.
        Value::Array(items) => 4 + items.len().min(8),
        Value::Object(fields) => {
            if depth < MAX_DEPTH {
                for (name, value) in fields.iter().take(MAX_PATHS) {
                    offer(&path.then(name), name, value, depth + 1, candidates);
                }
                return;
            }
            4 + fields.len().min(8)
        }
    };
    // Every name on the path is counted each time, so the result is too large rather than too small.
    let bytes = path.names_len() + bytes_of(&short(value)) + ",{}[]".len() * (depth + 1);
    candidates.push(Candidate { path: path.clone(), bytes, worth: worth.saturating_sub(depth).max(1) });
}

fn worth_of_name(name: &str) -> usize {
    let name = name.to_ascii_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
    match () {
        () if has(&["title", "name", "subject", "status", "state"]) => 10,
        () if has(&["date", "time", "_at", "amount", "price", "total", "city", "email", "phone"]) => 8,
        () if has(&["id", "type", "kind", "currency"]) => 7,
        () => 5,
    }
}

/// Truncates long texts in fields.
fn shortened(fields: Map<String, Value>) -> Map<String, Value> {
    fields.into_iter().map(|(name, value)| (name, short(&value))).collect()
}

fn short(value: &Value) -> Value {
    match value {
        Value::String(text) if json_len(text) > MAX_TEXT => serde_json::json!({
            "preview": clip(text, MAX_TEXT - MARK),
            "chars": text.chars().count(),
        }),
        Value::Object(fields) => Value::Object(shortened(fields.clone())),
        other => other.clone(),
    }
}

/// Returns the bytes of fields as JSON, with their commas and without the braces.
fn bytes_of_fields(fields: &Map<String, Value>) -> usize {
    fields.iter().map(|(name, value)| field_len(name, value)).sum()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn paths(texts: &[&str]) -> Vec<FieldPath> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    fn of(data: &Value, declared: &[&str], room: usize) -> Preview {
        preview(data.as_object().unwrap(), &paths(declared), room)
    }

    fn booking() -> Value {
        json!({
            "amenities": (0..30).map(|n| format!("amenity number {n}")).collect::<Vec<_>>(),
            "id": "BK1", "status": "confirmed", "notes": "n".repeat(2_000),
            "guestAddress": {"city": "Lisbon", "street": "Rua ".repeat(80)},
            "messages": (0..60).map(|n| json!({"text": format!("message {n}")})).collect::<Vec<_>>(),
            "cancelled": false,
        })
    }

    #[test]
    fn what_is_declared_comes_first_and_what_is_left_is_named() {
        let shown = of(&booking(), &["status", "guestAddress.city", "gone"], 60);
        assert_eq!(
            Value::Object(shown.summary),
            json!({"status": "confirmed", "guestAddress": {"city": "Lisbon"}})
        );
        let left: Vec<(&str, Option<usize>)> =
            shown.left_out.iter().map(|left| (left.field.as_str(), left.items)).collect();
        assert_eq!(
            left,
            [
                ("amenities", Some(30)),
                ("id", None),
                ("notes", None),
                ("guestAddress", None),
                ("messages", Some(60)),
                ("cancelled", None)
            ]
        );
        assert_eq!(shown.left_out[2].bytes, 2_002);
    }

    #[test]
    fn the_rest_is_filled_by_what_tells_most_for_its_bytes() {
        let shown = of(&booking(), &[], 120).summary;
        assert_eq!(shown.keys().collect::<Vec<_>>(), ["id", "status", "cancelled", "guestAddress"]);
        let more = of(&booking(), &[], 1_200);
        assert!(more.summary.contains_key("amenities") && !more.summary.contains_key("messages"), "{more:?}");
        assert_eq!(more.summary["notes"]["chars"], 2_000);
        let all = of(&booking(), &[], 10_000);
        let left: Vec<&str> = all.left_out.iter().map(|left| left.field.as_str()).collect();
        assert_eq!(left, ["notes"]);
    }

    #[test]
    fn ten_thousand_fields_are_no_trouble() {
        let data: Map<String, Value> = (0..10_000).map(|n| (format!("field {n}"), json!(n))).collect();
        let shown = preview(&data, &[], 2_000);
        assert!(bytes_of(&Value::Object(shown.summary.clone())) <= 2_000);
        assert_eq!(shown.summary.len() + shown.left_out.len(), 10_000);
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            "\\PC{0,40}".prop_map(Value::from),
            "[a-z\"\n]{300,900}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 48, 6, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                proptest::collection::vec(("\\PC{0,9}", inner), 0..6)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn rule_a_preview_fits_and_has_only_what_is_there(
            fields in proptest::collection::vec(("\\PC{0,9}|id|status|a\\.b", value()), 0..12),
            declared in proptest::sample::subsequence(vec!["id", "status", "\"a.b\"", "a[].x", "id[-1]"], 0..5),
            room in 0_usize..3_000,
        ) {
            let data: Map<String, Value> = fields.into_iter().collect();
            let shown = preview(&data, &paths(&declared), room);
            prop_assert!(shown.summary.is_empty() || bytes_of(&Value::Object(shown.summary.clone())) <= room);
            prop_assert!(shown.summary.keys().all(|name| data.contains_key(name)));
            for (name, value) in &data {
                let whole = shown.summary.get(name) == Some(value);
                let left = shown.left_out.iter().any(|left| left.field == *name);
                prop_assert!(whole != left, "{name}");
            }
        }
    }
}
