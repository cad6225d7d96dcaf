//! Division of a record into columns, and the choice of the fields that get one.
//!
//! The name of a column is a digest of its path, so that paths of any length and with any character are column names. A value
//! that has no column marks its record by a digest of the path, and covers everything inside of it.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use fetchwell_core::record::{FieldPath, RecordData};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::time;

/// Maximum number of columns of a store.
pub const MAX_COLUMNS: usize = 1_000;

/// Maximum number of columns that one stream adds during a session of a writer.
const MAX_STREAM_COLUMNS: usize = 200;

/// A field gets a column if at least one of this many records has it.
const MIN_SHARE: u64 = 100;

/// Maximum number of paths of a stream that are counted until they get a column.
const MAX_COUNTED: usize = 2_000;

/// Maximum number of paths whose digests are kept.
const MAX_DIGESTS: usize = 20_000;

/// Maximum number of names in the path of a column.
const MAX_DEPTH: usize = 4;

/// Maximum bytes of a text in a column.
const MAX_TEXT: usize = 100;

/// Maximum number of items of a list in columns.
const MAX_ITEMS: usize = 16;

/// Maximum number of marks of a record. A record with more is read as JSON for every field.
const MAX_MARKS: usize = 200;

/// Separates the names of a path.
const SEPARATOR: char = '\u{2}';

/// Value in a column.
#[derive(Debug, Clone, PartialEq)]
pub enum ColumnValue {
    /// A boolean value.
    Bool(bool),
    /// A whole number.
    Whole(i64),
    /// A number that is written as a floating point number.
    Part(f64),
    /// A timestamp or date, as its number.
    Time(i64),
    /// A text that is not empty.
    Text(String),
}

/// Kind of a value that is not in a column of values alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// A list of scalars, whose items are values.
    List,
    /// An object, whose fields have columns of their own.
    Object,
    /// The empty text.
    Empty,
}

impl Shape {
    /// Returns the number of the shape in its column.
    pub fn number(self) -> u64 {
        match self {
            Self::List => 1,
            Self::Object => 2,
            Self::Empty => 3,
        }
    }

    /// Returns the shape of a number.
    pub fn from_number(number: u64) -> Option<Self> {
        [Self::List, Self::Object, Self::Empty].into_iter().find(|shape| shape.number() == number)
    }
}

/// Columns of one record.
#[derive(Debug, Default)]
pub struct RecordColumns {
    /// Values with the names of their columns.
    pub values: Vec<(Arc<str>, ColumnValue)>,
    /// Shapes with the names of their columns.
    pub shapes: Vec<(Arc<str>, Shape)>,
    /// Marks of the paths whose values have to be read as JSON.
    pub unread: Vec<u64>,
}

/// Path of a field that a query asks for, as columns know it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnPath {
    /// Name of the column.
    pub column: String,
    /// Marks of the records that are read as JSON for this field.
    pub marks: Vec<u64>,
}

impl ColumnPath {
    /// Returns the column of a field, by its name or by the path to a value inside of it; `None` for a path with steps of
    /// lists.
    pub fn for_field(name: &str) -> Option<Self> {
        let path = path_inside(name);
        let names = match &path {
            Some(path) => path.names()?,
            None => vec![name],
        };
        let mut marks = vec![PathDigest::new("").mark];
        let mut joined = String::new();
        for name in &names {
            if !joined.is_empty() {
                joined.push(SEPARATOR);
            }
            joined.push_str(name);
            marks.push(PathDigest::new(&joined).mark);
        }
        if path.is_some() {
            marks.push(PathDigest::new(name).mark);
        }
        Some(Self { column: PathDigest::new(&joined).column.to_string(), marks })
    }
}

/// Returns the path inside of a field that a name may mean.
fn path_inside(name: &str) -> Option<FieldPath> {
    name.parse::<FieldPath>().ok().filter(|path| path.root() != name)
}

/// Digests of a path.
#[derive(Debug, Clone)]
struct PathDigest {
    column: Arc<str>,
    mark: u64,
    /// True if the path, as the name of a field, can be that of another field's inner value, too.
    is_ambiguous: bool,
    /// True if the path is known to have a column.
    has_column: bool,
}

impl PathDigest {
    fn new(path: &str) -> Self {
        let digest = Sha256::digest(path);
        let column: String = digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        let mark = digest.iter().rev().take(8).fold(0, |mark, byte| mark << 8 | u64::from(*byte));
        Self { column: column.into(), mark, is_ambiguous: path_inside(path).is_some(), has_column: false }
    }
}

/// Paths of a stream that were seen.
#[derive(Debug, Default)]
struct StreamPaths {
    records: u64,
    added: usize,
    seen: HashMap<Arc<str>, u64>,
}

/// Choice of the fields that get a column: those that at least one of a hundred records of a stream has, within limits. Fields of
/// other records mark them.
#[derive(Debug, Default)]
pub struct ColumnPlan {
    /// Names of the columns that there are.
    known: HashSet<Arc<str>>,
    digests: HashMap<String, PathDigest>,
    streams: HashMap<i64, StreamPaths>,
}

impl ColumnPlan {
    /// Creates a plan for an index that has columns.
    pub fn new(known: impl IntoIterator<Item = String>) -> Self {
        Self { known: known.into_iter().map(Arc::from).collect(), ..Self::default() }
    }

    /// Returns the names of the columns that there are.
    pub fn known(&self) -> impl Iterator<Item = &str> {
        self.known.iter().map(AsRef::as_ref)
    }

    /// Divides a record of a stream into columns.
    pub fn divide(&mut self, stream: i64, data: &RecordData) -> RecordColumns {
        self.streams.entry(stream).or_default().records += 1;
        let mut columns = RecordColumns::default();
        let mut path = String::new();
        for (name, value) in data {
            path.clear();
            path.push_str(name);
            if name.is_empty() || name.contains(|c: char| c < ' ') {
                columns.unread.push(self.digest("").mark);
            } else {
                self.add(stream, &mut path, 1, value, &mut columns);
            }
        }
        columns.unread.sort_unstable();
        columns.unread.dedup();
        if columns.unread.len() > MAX_MARKS {
            return RecordColumns { unread: vec![self.digest("").mark], ..RecordColumns::default() };
        }
        columns
    }

    /// Adds the value at a path of `depth` names.
    fn add(
        &mut self,
        stream: i64,
        path: &mut String,
        depth: usize,
        value: &Value,
        columns: &mut RecordColumns,
    ) {
        let digest = self.digest(path);
        let is_ambiguous = depth == 1 && digest.is_ambiguous;
        if value.is_null() && !is_ambiguous {
            return;
        }
        if is_ambiguous || !is_columnar(value, depth) || !self.has_column(stream, path, &digest) {
            columns.unread.push(digest.mark);
            return;
        }
        let column = digest.column;
        match value {
            Value::Object(fields) => {
                columns.shapes.push((column, Shape::Object));
                let length = path.len();
                for (name, value) in fields {
                    path.push(SEPARATOR);
                    path.push_str(name);
                    self.add(stream, path, depth + 1, value, columns);
                    path.truncate(length);
                }
            }
            Value::Array(items) => {
                columns.shapes.push((Arc::clone(&column), Shape::List));
                let values = items.iter().filter_map(column_value);
                columns.values.extend(values.map(|value| (Arc::clone(&column), value)));
            }
            Value::String(text) if text.is_empty() => columns.shapes.push((column, Shape::Empty)),
            scalar => columns.values.extend(column_value(scalar).map(|value| (column, value))),
        }
    }

    fn digest(&mut self, path: &str) -> PathDigest {
        if let Some(known) = self.digests.get(path) {
            return known.clone();
        }
        if self.digests.len() >= MAX_DIGESTS {
            self.digests.clear();
        }
        let digest = PathDigest::new(path);
        self.digests.insert(path.to_owned(), digest.clone());
        digest
    }

    /// Returns true if a path of a stream has a column or gets one, which is when a second record has it and it is frequent
    /// enough.
    fn has_column(&mut self, stream: i64, path: &str, digest: &PathDigest) -> bool {
        if digest.has_column {
            return true;
        }
        let has_column = self.is_known_or_added(stream, &digest.column);
        if has_column && let Some(digest) = self.digests.get_mut(path) {
            digest.has_column = true;
        }
        has_column
    }

    fn is_known_or_added(&mut self, stream: i64, column: &Arc<str>) -> bool {
        if self.known.contains(column) {
            return true;
        }
        let is_full = self.known.len() >= MAX_COLUMNS;
        let paths = self.streams.entry(stream).or_default();
        if is_full || paths.added >= MAX_STREAM_COLUMNS {
            return false;
        }
        if paths.seen.len() >= MAX_COUNTED && !paths.seen.contains_key(column) {
            return false;
        }
        let seen = paths.seen.entry(Arc::clone(column)).or_default();
        *seen += 1;
        if *seen < 2 || *seen * MIN_SHARE < paths.records {
            return false;
        }
        paths.added += 1;
        paths.seen.remove(column);
        self.known.insert(Arc::clone(column));
        true
    }
}

/// Returns true if columns can hold a value. Objects are held by the columns of their fields.
fn is_columnar(value: &Value, depth: usize) -> bool {
    match value {
        Value::Object(fields) => {
            let is_plain = |name: &String| !name.is_empty() && !name.contains(|c: char| c < ' ');
            depth < MAX_DEPTH && fields.keys().all(is_plain)
        }
        Value::Array(items) => {
            items.len() <= MAX_ITEMS
                && items.iter().all(|item| item.is_null() || column_value(item).is_some())
        }
        Value::String(text) => text.len() <= MAX_TEXT,
        scalar => column_value(scalar).is_some(),
    }
}

/// Returns a scalar as it is in a column; `None` if the column cannot give it back.
fn column_value(value: &Value) -> Option<ColumnValue> {
    match value {
        Value::Bool(value) => Some(ColumnValue::Bool(*value)),
        Value::Number(number) if number.is_f64() => {
            // -0.0 equals 0.0 and is written differently.
            let part =
                number.as_f64().filter(|part| part.is_finite() && (*part != 0.0 || part.is_sign_positive()));
            part.map(ColumnValue::Part)
        }
        Value::Number(number) => number.as_i64().map(ColumnValue::Whole),
        Value::String(text) if text.is_empty() || text.len() > MAX_TEXT => None,
        Value::String(text) => Some(match time::encode(text) {
            Some(number) => ColumnValue::Time(number),
            None => ColumnValue::Text(text.clone()),
        }),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Divides records of one stream, and returns the marks of the last one that are those of a path.
    fn marked(records: &[Value], fields: &[&str]) -> Vec<bool> {
        let mut plan = ColumnPlan::default();
        let divided: Vec<RecordColumns> =
            records.iter().map(|record| plan.divide(1, record.as_object().unwrap())).collect();
        let last = divided.last().unwrap();
        let is_marked = |field: &&str| {
            let path = ColumnPath::for_field(field).unwrap();
            path.marks.iter().any(|mark| last.unread.contains(mark))
        };
        fields.iter().map(is_marked).collect()
    }

    #[test]
    fn values_that_columns_cannot_hold_mark_their_record() {
        let long = "x".repeat(101);
        let record = json!({"a": 1, "b": long, "c": {"d": {"e": {"f": {"g": 1}}}}, "h": [1, [2]], "i": u64::MAX, "j": -0.0,
            "k": [1, "x", null], "l": {"m": "x", "n": vec![1; 17]}, "o.p": 1, "o": {"p": 2, "q": 1}});
        let fields = [
            "a",
            "b",
            "c.d.e",
            "c.d.e.f",
            "c.d.e.f.g",
            "h",
            "h.x",
            "i",
            "j",
            "k",
            "l.m",
            "l.n",
            "o.p",
            "o.q",
            "z",
        ];
        let expect =
            [false, true, false, true, true, true, true, true, true, false, false, true, true, false, false];
        // An object has a column one record before its fields.
        assert_eq!(marked(&vec![record; 6], &fields), expect);
        let nameless = json!({"": 1, "a": 1});
        assert_eq!(marked(&[nameless.clone(), nameless], &["a", "b"]), [true, true]);
    }

    #[test]
    fn rare_fields_get_no_column() {
        let mut records: Vec<Value> =
            (0..300).map(|number| json!({"a": number, (format!("x{number}")): 1})).collect();
        assert_eq!(marked(&records, &["a", "x299", "x298"]), [false, true, false]);
        records.extend((0..2).map(|_| json!({"late": 1})));
        assert_eq!(marked(&records, &["late"]), [true]);
        records.extend((0..2).map(|_| json!({"late": 1})));
        assert_eq!(marked(&records, &["late"]), [false]);
        let wide: serde_json::Map<String, Value> =
            (0..500).map(|number| (format!("f{number}"), json!(1))).collect();
        // An index that is opened again gets no columns of records that come one by one.
        let mut known = vec!["other".to_owned()];
        for number in 0..30 {
            let mut plan = ColumnPlan::new(known);
            plan.divide(1, json!({(format!("x{number}")): 1}).as_object().unwrap());
            known = plan.known().map(str::to_owned).collect();
        }
        assert_eq!(known, ["other"]);
        // A record with too many marks is read as JSON for every field.
        assert_eq!(marked(&[Value::Object(wide)], &["f0", "f499", "none"]), [true; 3]);
    }

    #[test]
    fn paths_with_steps_of_lists_have_no_column() {
        assert_eq!(ColumnPath::for_field("a[].b"), None);
        assert_eq!(ColumnPath::for_field("a[0]"), None);
        assert_eq!(
            ColumnPath::for_field("\"a\"").unwrap().column,
            ColumnPath::for_field("a").unwrap().column
        );
    }
}
