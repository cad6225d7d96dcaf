//! Paths to values inside a record: `guestAddress.city`, `guests[].name`, `payments[-1].amount`, `"a.b".c`.

use std::fmt;
use std::str::FromStr;

use serde_json::Value;

use super::RecordData;

/// Maximum length of a path in bytes.
const MAX_PATH_BYTES: usize = 500;

/// Maximum number of steps in a path.
const MAX_STEPS: usize = 16;

/// The path to a value, or to several values in lists. It is printed as it is parsed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FieldPath {
    /// Name of the record's field.
    field: String,
    steps: Vec<Step>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Step {
    /// A field of an object.
    Field(String),
    /// Every item of a list.
    Each,
    /// One item of a list, counted from the end when negative.
    Item(i64),
}

/// A reason to reject a string as a path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{quoted}` is no path of fields: {problem}; write `field`, `field.inner`, `list[].inner`, `list[-1]` or `\"a.b\".inner`"
)]
pub struct InvalidPath {
    quoted: String,
    problem: &'static str,
}

impl FieldPath {
    /// Returns the path to a field of the record itself. The name may contain any character.
    #[must_use]
    pub fn field(name: &str) -> Self {
        Self { field: name.to_owned(), steps: Vec::new() }
    }

    /// Returns the name of the record's field that the path starts at.
    #[must_use]
    pub fn root(&self) -> &str {
        &self.field
    }

    /// Returns the path to the field `name` of the value at this path.
    #[must_use]
    pub fn then(&self, name: &str) -> Self {
        let mut path = self.clone();
        path.steps.push(Step::Field(name.to_owned()));
        path
    }

    /// Returns an upper bound for the bytes of the path's names in JSON.
    #[must_use]
    pub fn names_len(&self) -> usize {
        let inner = self.steps.iter().map(|step| match step {
            Step::Field(name) => written_len(name),
            Step::Each | Step::Item(_) => 0,
        });
        written_len(&self.field) + inner.sum::<usize>()
    }

    /// Returns true if a JSON Schema of the record's fields declares every step of the path.
    #[must_use]
    pub fn is_declared_in(&self, properties: &RecordData) -> bool {
        let step = |schema: Option<&'_ Value>, step: &Step| -> Option<Value> {
            match step {
                Step::Field(name) => schema?.get("properties")?.get(name).cloned(),
                Step::Each | Step::Item(_) => schema?.get("items").cloned(),
            }
        };
        let first = properties.get(&self.field).cloned();
        self.steps.iter().fold(first, |schema, next| step(schema.as_ref(), next)).is_some()
    }

    /// Returns the value at the path inside of `root`, the value of the record's field. A list on the way, with or
    /// without `[]`, gives the values of all its items. Returns `None` if there is no value.
    #[must_use]
    pub fn value_in(&self, root: Value) -> Option<Value> {
        value_at(root, &self.steps)
    }

    /// Returns the names on the path, that of the record's field first; `None` for a path with steps of lists.
    #[must_use]
    pub fn names(&self) -> Option<Vec<&str>> {
        let names = self.steps.iter().map(|step| match step {
            Step::Field(name) => Some(name.as_str()),
            Step::Each | Step::Item(_) => None,
        });
        std::iter::once(Some(self.field.as_str())).chain(names).collect()
    }

    /// Returns true if the path is a whole field of the record.
    #[must_use]
    pub fn is_whole_field(&self) -> bool {
        self.steps.is_empty()
    }
}

fn value_at(value: Value, steps: &[Step]) -> Option<Value> {
    let Some((step, rest)) = steps.split_first() else { return Some(value) };
    let of_items = |items: Vec<Value>, steps: &[Step]| {
        let mut found = Vec::new();
        for item in items {
            match value_at(item, steps) {
                Some(Value::Array(values)) => found.extend(values),
                Some(value) => found.push(value),
                None => {}
            }
        }
        Some(found).filter(|found| !found.is_empty()).map(Value::Array)
    };
    match (step, value) {
        (Step::Field(name), Value::Object(mut fields)) => value_at(fields.remove(name)?, rest),
        (Step::Field(_), Value::Array(items)) => of_items(items, steps),
        (Step::Each, Value::Array(items)) => of_items(items, rest),
        (Step::Item(number), Value::Array(mut items)) => {
            let at = match usize::try_from(*number) {
                Ok(at) => at,
                Err(_negative) => items.len().checked_sub(usize::try_from(number.unsigned_abs()).ok()?)?,
            };
            (at < items.len()).then(|| items.swap_remove(at)).and_then(|item| value_at(item, rest))
        }
        _ => None,
    }
}

/// Returns the values at some paths, with the objects and lists around them and nothing else. Fields come in the
/// order of the paths, items in the order of their list.
#[must_use]
pub fn project(data: &RecordData, paths: &[FieldPath]) -> RecordData {
    let mut selection = Selection::default();
    for FieldPath { field, steps } in paths {
        selection.field(field).add(steps);
    }
    selection.select_fields(data)
}

/// The selected parts of a value, as a tree of paths.
#[derive(Debug, Clone, Default)]
struct Selection {
    whole: bool,
    fields: Vec<(String, Self)>,
    each: Option<Box<Self>>,
    items: Vec<(i64, Self)>,
}

impl Selection {
    fn add(&mut self, steps: &[Step]) {
        match steps.split_first() {
            None => self.whole = true,
            Some((Step::Field(name), rest)) => self.field(name).add(rest),
            Some((Step::Each, rest)) => self.each.get_or_insert_default().add(rest),
            Some((Step::Item(number), rest)) => {
                let mut item = Self::default();
                item.add(rest);
                self.items.push((*number, item));
            }
        }
    }

    fn field(&mut self, name: &str) -> &mut Self {
        entry(&mut self.fields, name)
    }

    /// Adds the selection of `other` to this one.
    fn absorb(&mut self, other: &Self) {
        self.whole |= other.whole;
        for (name, selection) in &other.fields {
            self.field(name).absorb(selection);
        }
        if let Some(each) = &other.each {
            self.each.get_or_insert_default().absorb(each);
        }
        self.items.extend(other.items.iter().cloned());
    }

    fn select_fields(&self, fields: &RecordData) -> RecordData {
        let picked =
            |(name, selection): &(String, Self)| Some((name.clone(), selection.select(fields.get(name)?)?));
        self.fields.iter().filter_map(picked).collect()
    }

    /// Returns the selected parts of a value, or `None` if it has none of them.
    fn select(&self, value: &Value) -> Option<Value> {
        match value {
            value if self.whole => Some(value.clone()),
            Value::Object(fields) => {
                Some(self.select_fields(fields)).filter(|some| !some.is_empty()).map(Value::Object)
            }
            Value::Array(items) => {
                let picked: Vec<Value> = items
                    .iter()
                    .enumerate()
                    .filter_map(|(at, item)| self.for_item(at, items.len()).select(item))
                    .collect();
                Some(picked).filter(|some| !some.is_empty()).map(Value::Array)
            }
            _ => None,
        }
    }

    /// Returns the selection for item number `at` of a list of `items`.
    fn for_item(&self, at: usize, items: usize) -> Self {
        let mut selection = self.each.as_deref().cloned().unwrap_or_default();
        let is_it = |number: i64| match usize::try_from(number) {
            Ok(number) => number == at,
            Err(_negative) => {
                usize::try_from(number.unsigned_abs()).is_ok_and(|back| items.checked_sub(back) == Some(at))
            }
        };
        self.items.iter().filter(|(number, _)| is_it(*number)).for_each(|(_, item)| selection.absorb(item));
        selection
    }
}

/// Returns the selection of the field `name`, which is added if it is missing.
fn entry<'a>(fields: &'a mut Vec<(String, Selection)>, name: &str) -> &'a mut Selection {
    let at = fields.iter().position(|(known, _)| known == name).unwrap_or_else(|| {
        fields.push((name.to_owned(), Selection::default()));
        fields.len() - 1
    });
    #[expect(clippy::indexing_slicing, reason = "it was found or made there")]
    &mut fields[at].1
}

/// Returns the maximum bytes of a name as a JSON key, with quotes and colon.
fn written_len(name: &str) -> usize {
    let escaped: usize = name
        .bytes()
        .map(|byte| if byte < 0x20 { 6 } else { 1 + usize::from(matches!(byte, b'"' | b'\\')) })
        .sum();
    escaped + "\"\":".len()
}

impl FromStr for FieldPath {
    type Err = InvalidPath;

    fn from_str(text: &str) -> Result<Self, InvalidPath> {
        let fault = |problem| InvalidPath { quoted: text.chars().take(80).collect(), problem };
        if text.len() > MAX_PATH_BYTES {
            return Err(fault("it is too long"));
        }
        let (field, mut rest) = name(text).map_err(fault)?;
        let mut steps = Vec::new();
        while !rest.is_empty() {
            if steps.len() == MAX_STEPS {
                return Err(fault("it has too many steps"));
            }
            if let Some(inner) = rest.strip_prefix('.') {
                let (field, after) = name(inner).map_err(fault)?;
                steps.push(Step::Field(field));
                rest = after;
            } else if let Some(inner) = rest.strip_prefix('[') {
                let (number, after) = inner.split_once(']').ok_or_else(|| fault("a `[` has no `]`"))?;
                steps.push(match number {
                    "" => Step::Each,
                    number => {
                        let is_number =
                            number.strip_prefix('-').unwrap_or(number).bytes().all(|b| b.is_ascii_digit());
                        let number = number.parse().ok().filter(|_| is_number);
                        Step::Item(number.ok_or_else(|| fault("what stands in `[]` is no number"))?)
                    }
                });
                rest = after;
            } else {
                return Err(fault("a `.` or `[` is missing"));
            }
        }
        Ok(Self { field, steps })
    }
}

/// Splits a text into the name that it starts with and the rest.
fn name(text: &str) -> Result<(String, &str), &'static str> {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find(['.', '[', ']', '"']).unwrap_or(text.len());
        return match text.split_at_checked(end) {
            Some((name, rest)) if !name.is_empty() => Ok((name.to_owned(), rest)),
            _ => Err("a name is empty"),
        };
    };
    let mut name = String::new();
    let mut characters = quoted.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Ok((name, quoted.get(at + 1..).unwrap_or_default())),
            '\\' => match characters.next() {
                Some((_, escaped @ ('"' | '\\'))) => name.push(escaped),
                _ => return Err("a `\\` stands before neither `\"` nor `\\`"),
            },
            other => name.push(other),
        }
    }
    Err("a `\"` is not closed")
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let quoted = |name: &str| {
            if name.is_empty() || name.contains(['.', '[', ']', '"', ',']) {
                format!("\"{}\"", name.replace('\\', "\\\\").replace('"', "\\\""))
            } else {
                name.to_owned()
            }
        };
        f.write_str(&quoted(&self.field))?;
        for step in &self.steps {
            match step {
                Step::Field(name) => write!(f, ".{}", quoted(name))?,
                Step::Each => f.write_str("[]")?,
                Step::Item(number) => write!(f, "[{number}]")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn data(value: Value) -> RecordData {
        match value {
            Value::Object(data) => data,
            other => panic!("{other}"),
        }
    }

    #[track_caller]
    fn check(paths: &[&str], expect: &Value) {
        let booking = data(json!({
            "id": "BK1", "guest.name": "Jo", "note": null,
            "guestAddress": {"city": "Lisbon", "zip": "1000", "geo": {"lat": 1}},
            "guests": [{"name": "Ann", "age": 7}, {"name": "Bob"}, "loose"],
            "payments": [{"amount": 1}, {"amount": 2}],
        }));
        let paths: Vec<FieldPath> = paths.iter().map(|path| path.parse().unwrap()).collect();
        assert_eq!(Value::Object(project(&booking, &paths)), *expect);
    }

    #[test]
    fn values_keep_what_is_around_them() {
        check(&["id"], &json!({"id": "BK1"}));
        check(&["note"], &json!({"note": null}));
        check(&["guestAddress.city"], &json!({"guestAddress": {"city": "Lisbon"}}));
        check(
            &["guestAddress.geo.lat", "id", "guestAddress.zip"],
            &json!({"guestAddress": {"geo": {"lat": 1}, "zip": "1000"}, "id": "BK1"}),
        );
        check(&["guests[].name"], &json!({"guests": [{"name": "Ann"}, {"name": "Bob"}]}));
        check(&["payments[-1].amount"], &json!({"payments": [{"amount": 2}]}));
        check(&["payments[0]", "payments[-1]"], &json!({"payments": [{"amount": 1}, {"amount": 2}]}));
        check(
            &["guests[].name", "guests[0].age"],
            &json!({"guests": [{"name": "Ann", "age": 7}, {"name": "Bob"}]}),
        );
        check(&["\"guest.name\""], &json!({"guest.name": "Jo"}));
        check(
            &["missing", "id.inner", "guestAddress[].city", "payments.amount", "payments[9]", "payments[-9]"],
            &json!({}),
        );
    }

    #[test]
    fn a_value_is_found_through_lists() {
        let booking =
            json!({"lines": [{"price": 1, "tags": ["a"]}, {"price": 2, "tags": ["b", "c"]}, 7], "n": 1});
        for (path, expect) in [
            ("b.n", Some(json!(1))),
            ("b.lines.price", Some(json!([1, 2]))),
            ("b.lines[].tags", Some(json!(["a", "b", "c"]))),
            ("b.lines[-2].tags", Some(json!(["b", "c"]))),
            ("b.lines[3]", None),
            ("b.lines[-4]", None),
            ("b.lines.none", None),
            ("b.n.m", None),
        ] {
            assert_eq!(path.parse::<FieldPath>().unwrap().value_in(booking.clone()), expect, "{path}");
        }
    }

    #[test]
    fn invalid_paths_are_rejected() {
        for text in
            ["", ".", "a.", "a..b", "a[", "a[x]", "a[+1]", "a[]b", "a]", "\"a", "\"a\\n\"", "a\"b\"", "[]"]
        {
            let problem = text.parse::<FieldPath>().unwrap_err().to_string();
            assert!(problem.starts_with(&format!("`{text}` is no path")), "{problem}");
        }
        assert!("x".repeat(501).parse::<FieldPath>().is_err());
        assert!(format!("a{}", ".a".repeat(17)).parse::<FieldPath>().is_err());
    }

    proptest! {
        #[test]
        fn a_path_is_written_as_it_is_read(text in "\\PC{0,20}|[a-c.\\[\\]\"0-9-]{0,12}") {
            if let Ok(path) = text.parse::<FieldPath>() {
                prop_assert_eq!(path.to_string().parse::<FieldPath>(), Ok(path));
            }
        }

        #[test]
        fn any_field_has_a_path(name in "\\PC{1,30}") {
            let path = FieldPath::field(&name);
            prop_assert_eq!(path.to_string().parse::<FieldPath>(), Ok(path));
        }
    }
}
