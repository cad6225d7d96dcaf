//! Reads selected fields of a JSON object and skips the rest.
//!
//! Filters and aggregates need one or two fields of every record of a stream; parsing the records completely would
//! take most of the time and megabytes of memory.

use std::borrow::Cow;
use std::fmt;

use fetchwell_core::record::FieldPath;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;

/// Reader of selected fields of a JSON object. Each field is there once.
#[derive(Debug, Default)]
pub(crate) struct FieldReader {
    fields: Vec<SelectedField>,
}

#[derive(Debug)]
struct SelectedField {
    name: String,
    /// Path inside of a field of the record, if the name can be one.
    path: Option<FieldPath>,
}

/// Values of one record in the order of the selected fields; `None` for a missing field.
pub(super) type FieldValues = Vec<Option<Value>>;

impl FieldReader {
    /// Adds a field, by its name or by the path to a value inside of it, and returns the index of its value in the
    /// result. A record's field with this very name is preferred to a path.
    pub(crate) fn select(&mut self, name: &str) -> usize {
        if let Some(at) = self.fields.iter().position(|field| field.name == name) {
            return at;
        }
        let path = name.parse::<FieldPath>().ok().filter(|path| path.root() != name);
        self.fields.push(SelectedField { name: name.to_owned(), path });
        self.fields.len() - 1
    }

    /// Returns the names of the selected fields.
    pub(crate) fn names(&self) -> Vec<&str> {
        self.fields.iter().map(|field| field.name.as_str()).collect()
    }

    /// Reads the selected fields of a JSON object. A field that cannot be parsed counts as missing.
    pub(crate) fn read(&self, json: &str, values: &mut FieldValues) {
        values.clear();
        values.resize(self.fields.len(), None);
        let mut deserializer = serde_json::Deserializer::from_str(json);
        // Parsing stops at the last selected field, which the parser reports as an unfinished object; the values read
        // so far are already in place.
        let _ = FieldVisitor { fields: &self.fields, values }.deserialize(&mut deserializer);
    }
}

struct FieldVisitor<'a> {
    fields: &'a [SelectedField],
    values: &'a mut FieldValues,
}

impl FieldVisitor<'_> {
    /// Stores a field of the record in the `users` places that it is selected for. Returns the number of values that are
    /// final.
    fn store(&mut self, name: &str, value: Value, users: usize) -> usize {
        let (mut value, mut left, mut settled) = (Some(value), users, 0);
        for (field, place) in self.fields.iter().zip(self.values.iter_mut()) {
            if !field.uses(name) {
                continue;
            }
            left -= 1;
            let value = if left == 0 { value.take() } else { value.clone() };
            if field.name == name {
                *place = value;
                settled += 1;
            } else if place.is_none() {
                *place = value.and_then(|value| field.path.as_ref()?.value_in(value));
            }
        }
        settled
    }
}

impl SelectedField {
    /// Returns true if the value is a field of the record, or inside of it.
    fn uses(&self, name: &str) -> bool {
        self.name == name || self.path.as_ref().is_some_and(|path| path.root() == name)
    }
}

impl<'de> DeserializeSeed<'de> for FieldVisitor<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for FieldVisitor<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a record")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut fields: A) -> Result<(), A::Error> {
        let mut left = self.fields.len();
        while left > 0 {
            let Some(name) = fields.next_key::<Cow<'de, str>>()? else { break };
            match self.fields.iter().filter(|field| field.uses(&name)).count() {
                0 => drop(fields.next_value::<IgnoredAny>()?),
                users => left = left.saturating_sub(self.store(&name, fields.next_value()?, users)),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_selected_fields_are_read() {
        let mut reader = FieldReader::default();
        assert_eq!((reader.select("b"), reader.select("z"), reader.select("b")), (0, 1, 0));
        let mut values = Vec::new();
        reader.read(r#"{"a":{"b":1},"b":[2],"c":3}"#, &mut values);
        assert_eq!(values, [Some(json!([2])), None]);
        reader.read(r#"{"\u0062":"\n"}"#, &mut values);
        assert_eq!(values, [Some(json!("\n")), None]);
        reader.read("[1]", &mut values);
        assert_eq!(values, [None, None]);
    }

    #[test]
    fn a_path_reads_inside_of_a_field() {
        let mut reader = FieldReader::default();
        for name in ["from.address", "a.b", "a.c", "a", "l[].x"] {
            reader.select(name);
        }
        let mut values = Vec::new();
        reader.read(
            r#"{"a":{"b":1,"c":2},"from":{"address":"in"},"from.address":"own","l":[{"x":3}]}"#,
            &mut values,
        );
        let expect = [json!("own"), json!(1), json!(2), json!({"b": 1, "c": 2}), json!([3])];
        assert_eq!(values, expect.map(Some));
        reader.read(r#"{"from.address":"own","from":{"address":"in"}}"#, &mut values);
        assert_eq!(values[0], Some(json!("own")));
    }

    #[test]
    fn empty_selection_reads_nothing() {
        let mut values = Vec::new();
        FieldReader::default().read("not even JSON", &mut values);
        assert!(values.is_empty());
    }
}
