//! Narrowing of records: complete, then without long values, then the most informative fields, then none.
//!
//! A page has one budget for all of its records. The largest are narrowed first: every record is returned at the
//! widest step that stays below one common size, and that size is the largest with which the page fits.

use std::borrow::Cow;

use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};

use super::cut::{clip, clipped_len, json_len, value_len};
use crate::record::{FieldPath, project};

/// Width at which the fields of a record are returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldWidth {
    /// All fields and values.
    Whole,
    /// Every field. A value of more than this many bytes of JSON is replaced by a placeholder with its length.
    Values(usize),
    /// The first few short fields, with values up to this many bytes.
    Preview(usize),
    /// No fields at all.
    None,
}

/// All widths, from the widest on. Each takes no more than the one before.
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

/// Size of values that every width but previews returns, in bytes.
const SHORTEST: usize = 60;

/// Number of fields in a preview without declared fields.
const PREVIEW_FIELDS: usize = 5;

/// Maximum number of declared fields in a preview within a list.
const PREVIEW_FIELDS_DECLARED: usize = 8;

/// Name of the field that identifies a record.
const ID: &str = "id";

/// Bytes of a text's placeholder beside its preview: `{"preview":"","chars":12345678}`.
const MARK: usize = 32;

/// Name and value of a field, or its placeholder.
type ShownField<'a> = (&'a str, Cow<'a, Value>);

/// Fields of a record at some width, serialized as an object.
#[derive(Debug, Clone)]
pub enum NarrowedFields<'a> {
    /// All fields as they are.
    Whole(&'a Map<String, Value>),
    /// Selected fields in order, with long values as placeholders.
    Fields(Vec<ShownField<'a>>),
}

impl NarrowedFields<'_> {
    /// Returns true if a field is among them.
    #[must_use]
    pub fn contains(&self, name: &str) -> bool {
        match self {
            Self::Whole(data) => data.contains_key(name),
            Self::Fields(fields) => fields.iter().any(|(known, _)| *known == name),
        }
    }

    /// Returns the names and values, in order.
    pub fn pairs(&self) -> impl Iterator<Item = (&str, &Value)> {
        let (whole, fields) = match self {
            Self::Whole(data) => (Some(data.iter()), None),
            Self::Fields(fields) => (None, Some(fields.iter())),
        };
        let whole = whole.into_iter().flatten().map(|(name, value)| (name.as_str(), value));
        let fields = fields.into_iter().flatten();
        whole.chain(fields.map(|(name, value)| (*name, value.as_ref())))
    }

    /// Returns the fields as a map.
    #[must_use]
    pub fn into_map(self) -> Map<String, Value> {
        match self {
            Self::Whole(data) => data.clone(),
            Self::Fields(fields) => {
                fields.into_iter().map(|(name, value)| (name.to_owned(), value.into_owned())).collect()
            }
        }
    }
}

impl Serialize for NarrowedFields<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.pairs())
    }
}

/// Narrows a record's fields, and returns them with the number of omitted fields, or `None` if none are returned. A
/// preview has the `declared` fields that the record has.
#[must_use]
pub fn narrow<'a>(
    data: &'a Map<String, Value>,
    width: FieldWidth,
    declared: &[FieldPath],
) -> (Option<NarrowedFields<'a>>, usize) {
    let shortened =
        |(name, value): (&'a String, &'a Value), max_bytes| (name.as_str(), shortened(value, max_bytes));
    let shown: Vec<ShownField<'a>> = match width {
        FieldWidth::Whole => return (Some(NarrowedFields::Whole(data)), 0),
        FieldWidth::None => return (None, data.len()),
        FieldWidth::Values(max_bytes) => data.iter().map(|field| shortened(field, max_bytes)).collect(),
        FieldWidth::Preview(max_bytes) => {
            let declared = declared_fields(data, declared);
            if declared.is_empty() {
                telling(data, max_bytes).map(|field| shortened(field, max_bytes)).collect()
            } else {
                let declared = declared.into_iter().filter(|(name, _)| name.len() <= max_bytes);
                declared.map(|(name, value)| (name, shortened_part(value, max_bytes))).collect()
            }
        }
    };
    let left_out = data.len() - shown.len();
    (Some(NarrowedFields::Fields(shown)), left_out)
}

/// Returns the declared fields that a record has, each with its declared parts only.
fn declared_fields<'a>(data: &'a Map<String, Value>, declared: &[FieldPath]) -> Vec<ShownField<'a>> {
    let declared = declared.get(..PREVIEW_FIELDS_DECLARED).unwrap_or(declared);
    let mut fields: Vec<ShownField<'a>> = Vec::with_capacity(declared.len());
    for path in declared {
        let Some((name, value)) = data.get_key_value(path.root()) else { continue };
        if fields.iter().any(|(known, _)| known == name) {
            continue;
        }
        let of_field = declared.iter().filter(|path| path.root() == name);
        if of_field.clone().any(FieldPath::is_whole_field) {
            fields.push((name, Cow::Borrowed(value)));
        } else {
            let paths: Vec<FieldPath> = of_field.cloned().collect();
            let parts = project(data, &paths).into_iter();
            fields.extend(parts.map(|(_, parts)| (name.as_str(), Cow::Owned(parts))));
        }
    }
    fields
}

/// Returns the fields of a preview without declared fields.
fn telling(data: &Map<String, Value>, max_bytes: usize) -> impl Iterator<Item = (&String, &Value)> {
    let is_short = |value: &Value| !matches!(value, Value::Null | Value::Array(_) | Value::Object(_));
    let fields = data.iter().filter(move |(name, value)| name.len() <= max_bytes && is_short(value));
    fields.take(PREVIEW_FIELDS)
}

/// Size of a record's fields at some width.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FieldsSize {
    /// Bytes of the fields as JSON; 0 if none are returned.
    pub bytes: usize,
    /// Number of omitted fields.
    pub left_out: usize,
    /// True if the field `id` is among them.
    pub has_id: bool,
}

/// Fields of a record, each measured once.
#[derive(Debug)]
pub struct MeasuredFields<'a> {
    data: &'a Map<String, Value>,
    /// Bytes of all fields with the same value at every width but previews, and of the names of the others.
    steady: usize,
    long: Vec<SizedValue<'a>>,
}

impl<'a> MeasuredFields<'a> {
    /// Measures the fields of a record.
    #[must_use]
    pub fn new(data: &'a Map<String, Value>) -> Self {
        let mut steady = 0;
        let mut long: Vec<SizedValue<'_>> = Vec::new();
        for (name, value) in data {
            steady += json_len(name) + "\"\":,".len();
            match value_len(value) {
                bytes if bytes <= SHORTEST => steady += bytes,
                bytes => long.push(SizedValue::new(value, bytes)),
            }
        }
        Self { data, steady, long }
    }

    /// Returns the bytes of all fields as JSON.
    #[must_use]
    pub fn whole(&self) -> usize {
        self.at_most(usize::MAX)
    }

    /// Returns the size of the fields at every width of [`FIELD_WIDTHS`], without building any of them.
    #[must_use]
    pub fn widths(&self, declared: &[FieldPath]) -> [FieldsSize; FIELD_WIDTHS.len()] {
        let declared = declared_fields(self.data, declared);
        let has_id = self.data.contains_key(ID);
        let values = |max_bytes| FieldsSize { bytes: self.at_most(max_bytes), left_out: 0, has_id };
        FIELD_WIDTHS.map(|width| match width {
            FieldWidth::Whole => values(usize::MAX),
            FieldWidth::Values(max_bytes) => values(max_bytes),
            FieldWidth::Preview(max_bytes) => {
                if declared.is_empty() {
                    self.preview(
                        telling(self.data, max_bytes).map(|(name, value)| (name.as_str(), value)),
                        max_bytes,
                    )
                } else {
                    let declared = declared.iter().filter(|(name, _)| name.len() <= max_bytes);
                    self.preview(declared.map(|(name, value)| (*name, value.as_ref())), max_bytes)
                }
            }
            FieldWidth::None => FieldsSize { bytes: 0, left_out: self.data.len(), has_id: false },
        })
    }

    /// Returns the bytes of all fields with values of at most `max_bytes` bytes, and placeholders for longer ones.
    #[must_use]
    pub fn at_most(&self, max_bytes: usize) -> usize {
        let long: usize = self.long.iter().map(|value| value.at_most(max_bytes)).sum();
        // Each field but the first has a comma, the first has a brace, and the other brace is added.
        if self.data.is_empty() { "{}".len() } else { self.steady + long + "{".len() }
    }

    fn preview<'b>(&self, shown: impl Iterator<Item = (&'b str, &'b Value)>, max_bytes: usize) -> FieldsSize {
        let (mut bytes, mut fields, mut has_id) = (0, 0, false);
        for (name, value) in shown {
            has_id |= name == ID;
            bytes += json_len(name) + "\"\":,".len() + shortened_len(value, max_bytes);
            fields += 1;
        }
        FieldsSize { bytes: "{}".len() + bytes.saturating_sub(1), left_out: self.data.len() - fields, has_id }
    }
}

/// Value with its size.
#[derive(Debug)]
struct SizedValue<'a> {
    value: &'a Value,
    bytes: usize,
    /// Number of digits of its length in characters, items or fields.
    digits: usize,
}

impl<'a> SizedValue<'a> {
    fn new(value: &'a Value, bytes: usize) -> Self {
        let count = match value {
            Value::String(text) => text.chars().count(),
            Value::Array(items) => items.len(),
            Value::Object(fields) => fields.len(),
            Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        };
        let digits = count.checked_ilog10().map_or(1, |digits| digits as usize + 1);
        Self { value, bytes, digits }
    }

    /// Returns its size if it is replaced by its placeholder above `max_bytes` bytes.
    fn at_most(&self, max_bytes: usize) -> usize {
        if self.bytes <= max_bytes {
            return self.bytes;
        }
        match self.value {
            Value::String(text) => {
                let shown = clipped_len(text, self.bytes - "\"\"".len(), max_bytes.saturating_sub(MARK));
                "{\"preview\":\"\",\"chars\":}".len() + shown + self.digits
            }
            Value::Array(_) => "{\"items\":}".len() + self.digits,
            Value::Object(_) => "{\"fields\":}".len() + self.digits,
            Value::Null | Value::Bool(_) | Value::Number(_) => self.bytes,
        }
    }
}

/// Returns the width of each record such that all together take at most `room` bytes, or `None` if not even the
/// narrowest fit. `sizes` has the bytes of each record at every width of [`FIELD_WIDTHS`].
#[must_use]
pub fn widths_within(sizes: &[[usize; FIELD_WIDTHS.len()]], room: usize) -> Option<Vec<FieldWidth>> {
    // Chooses the widest step of a record below a common size, otherwise the narrowest.
    let step = |own: &[usize; FIELD_WIDTHS.len()], max_bytes: usize| {
        own.iter().position(|size| *size <= max_bytes).unwrap_or(FIELD_WIDTHS.len() - 1)
    };
    let total = |max_bytes: usize| -> usize {
        sizes.iter().map(|own| own.get(step(own, max_bytes)).copied().unwrap_or(0)).sum()
    };
    if total(0) > room {
        return None;
    }
    let mut commons: Vec<usize> = sizes.iter().flatten().copied().collect();
    commons.sort_unstable();
    let fitting = commons.partition_point(|common| total(*common) <= room);
    let max_bytes = fitting.checked_sub(1).and_then(|last| commons.get(last)).copied().unwrap_or(0);
    Some(sizes.iter().filter_map(|own| FIELD_WIDTHS.get(step(own, max_bytes)).copied()).collect())
}

/// Returns a value, or a placeholder with its kind and length.
#[must_use]
pub fn shortened(value: &Value, max_bytes: usize) -> Cow<'_, Value> {
    match value {
        Value::String(text) if json_len(text) + 2 > max_bytes => {
            let preview = clip(text, max_bytes.saturating_sub(MARK));
            Cow::Owned(json!({ "preview": preview, "chars": text.chars().count() }))
        }
        Value::Array(items) if is_longer(value, max_bytes) => Cow::Owned(json!({ "items": items.len() })),
        Value::Object(fields) if is_longer(value, max_bytes) => Cow::Owned(json!({ "fields": fields.len() })),
        other => Cow::Borrowed(other),
    }
}

/// Returns a part of a value, or a placeholder.
fn shortened_part(value: Cow<'_, Value>, max_bytes: usize) -> Cow<'_, Value> {
    match value {
        Cow::Borrowed(value) => shortened(value, max_bytes),
        Cow::Owned(value) => Cow::Owned(shortened(&value, max_bytes).into_owned()),
    }
}

/// Returns the bytes of a value, or of its placeholder.
fn shortened_len(value: &Value, max_bytes: usize) -> usize {
    match value_len(value) {
        bytes if bytes <= max_bytes => bytes,
        bytes => SizedValue::new(value, bytes).at_most(max_bytes),
    }
}

/// Returns true if a value takes more than `max_bytes` bytes. Serializes no more than that.
fn is_longer(value: &Value, max_bytes: usize) -> bool {
    serde_json::to_writer(Room(max_bytes), value).is_err()
}

/// Writer that stores nothing and fails beyond its limit.
struct Room(usize);

impl std::io::Write for Room {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 = self.0.checked_sub(bytes.len()).ok_or(std::io::ErrorKind::StorageFull)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::cut::bytes_of;
    use super::*;

    fn shown(data: &Map<String, Value>, width: FieldWidth) -> Option<Value> {
        narrow(data, width, &[]).0.map(|data| Value::Object(data.into_map()))
    }

    fn size(data: &Map<String, Value>, width: FieldWidth) -> usize {
        shown(data, width).map_or(0, |data| serde_json::to_string(&data).unwrap().len())
    }

    #[test]
    fn long_values_give_way_to_marks_and_lost_fields_are_counted() {
        let data = json!({"subject": "Hi", "body": "é".repeat(300), "tags": vec!["tag"; 50], "raw": {"a": "x".repeat(99)}, "n": 1});
        let whole = data.clone();
        let data = data.as_object().unwrap();
        assert_eq!(shown(data, FieldWidth::Whole), Some(whole));
        let values = shown(data, FieldWidth::Values(60)).unwrap();
        assert_eq!(values["subject"], "Hi");
        assert_eq!(values["body"], json!({"preview": "éééééééééééé…", "chars": 300}));
        assert_eq!(values["tags"], json!({"items": 50}));
        assert_eq!(values["raw"], json!({"fields": 1}));
        let preview = shown(data, FieldWidth::Preview(60)).unwrap();
        assert_eq!(preview.as_object().unwrap().keys().collect::<Vec<_>>(), ["subject", "body", "n"]);
        let left_out = [FieldWidth::Whole, FieldWidth::Values(60), FieldWidth::Preview(60), FieldWidth::None]
            .map(|width| narrow(data, width, &[]).1);
        assert_eq!(left_out, [0, 0, 2, 5]);
    }

    #[test]
    fn a_preview_shows_what_is_declared() {
        let data = json!({"a": 1, "id": "BK1", "address": {"city": "Lisbon", "street": "x".repeat(90)}, "text": "y".repeat(90)});
        let declared: Vec<FieldPath> =
            ["id", "address.city", "text", "gone"].map(|path| path.parse().unwrap()).into();
        let (shown, left_out) = narrow(data.as_object().unwrap(), FieldWidth::Preview(60), &declared);
        let text = json!({"preview": format!("{}…", "y".repeat(25)), "chars": 90});
        assert_eq!(
            Value::Object(shown.unwrap().into_map()),
            json!({"id": "BK1", "address": {"city": "Lisbon"}, "text": text})
        );
        assert_eq!(left_out, 1);
    }

    #[test]
    fn the_greatest_give_way_first() {
        let small = [10; FIELD_WIDTHS.len()];
        let mut great = [900; FIELD_WIDTHS.len()];
        great[9..].copy_from_slice(&[80, 40, 0]);
        let widths = |room| widths_within(&[small, great, small], room);
        assert_eq!(widths(1_000), Some(vec![FieldWidth::Whole; 3]));
        let narrowed = |width| Some(vec![FieldWidth::Whole, width, FieldWidth::Whole]);
        assert_eq!(widths(900), narrowed(FieldWidth::Preview(60)));
        assert_eq!(widths(99), narrowed(FieldWidth::Preview(30)));
        assert_eq!(widths(20), narrowed(FieldWidth::None));
        assert_eq!(widths_within(&[[30; FIELD_WIDTHS.len()]], 29), None);
    }

    proptest! {
        #[test]
        fn what_is_measured_is_what_is_shown(
            values in proptest::collection::vec((".{0,20}|id", ".{0,9}|[a-z\"\n]{0,5000}|\\PC{50,300}", 0_usize..4), 0..8),
        ) {
            let value = |text: String, kind| match kind {
                0 => json!(text.chars().map(String::from).collect::<Vec<_>>()),
                1 => json!({ "inner": text }),
                2 => json!(text.len()),
                _ => json!(text),
            };
            let data: Map<String, Value> =
                values.into_iter().map(|(name, text, kind)| (name, value(text, kind))).collect();
            let declared = [FieldPath::field("id")];
            for declared in [&declared[..], &[]] {
                let measured = MeasuredFields::new(&data);
                prop_assert_eq!(measured.whole(), bytes_of(&data));
                for (width, size) in FIELD_WIDTHS.into_iter().zip(measured.widths(declared)) {
                    let (shown, left_out) = narrow(&data, width, declared);
                    let bytes = shown.as_ref().map_or(0, bytes_of);
                    let has_id = shown.is_some_and(|shown| shown.contains(ID));
                    prop_assert_eq!(size, FieldsSize { bytes, left_out, has_id }, "{:?}", width);
                }
            }
        }

        #[test]
        fn narrower_never_takes_more(values in proptest::collection::vec((".{0,90}", ".{0,5000}"), 0..8)) {
            let data: Map<String, Value> = values.into_iter().map(|(name, text)| (name, text.into())).collect();
            let widths: Vec<usize> = FIELD_WIDTHS.iter().map(|width| size(&data, *width)).collect();
            prop_assert!(widths.is_sorted_by(|wide, narrow| wide >= narrow), "{:?}", widths);
        }

        #[test]
        fn what_is_chosen_fits(mut sizes in proptest::collection::vec(proptest::array::uniform12(0_usize..1_000), 0..20), room in 0_usize..9_000) {
            for own in &mut sizes {
                own.sort_unstable_by(|a, b| b.cmp(a));
            }
            let minimal: usize = sizes.iter().filter_map(|own| own.last()).sum();
            match widths_within(&sizes, room) {
                None => prop_assert!(minimal > room),
                Some(widths) => {
                    let at = |width: &FieldWidth| FIELD_WIDTHS.iter().position(|known| known == width).unwrap();
                    let total: usize = sizes.iter().zip(&widths).map(|(own, width)| own[at(width)]).sum();
                    prop_assert!(widths.len() == sizes.len() && total <= room);
                }
            }
        }
    }
}
