//! Reads selected fields of a JSON object and skips the rest.
//!
//! Filters and aggregates need one or two fields of every record of a stream; parsing the records completely would
//! take most of the time and megabytes of memory.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;

/// Reader of selected fields of a JSON object. Each name is there once.
#[derive(Debug, Default)]
pub(in crate::source::store) struct FieldReader {
    names: Vec<String>,
}

/// Values of one record in the order of the selected names; `None` for a missing field.
pub(super) type FieldValues = Vec<Option<Value>>;

impl FieldReader {
    /// Adds a field and returns the index of its value in the result.
    pub(super) fn select(&mut self, name: &str) -> usize {
        if let Some(at) = self.names.iter().position(|wanted| wanted == name) {
            return at;
        }
        self.names.push(name.to_owned());
        self.names.len() - 1
    }

    /// Reads the selected fields of a JSON object. A field that cannot be parsed counts as missing.
    pub(in crate::source::store) fn read(&self, json: &str, values: &mut FieldValues) {
        values.clear();
        values.resize(self.names.len(), None);
        let mut deserializer = serde_json::Deserializer::from_str(json);
        // Parsing stops at the last selected field, which the parser reports as an unfinished object; the values read
        // so far are already in place.
        let _ = FieldVisitor { names: &self.names, values }.deserialize(&mut deserializer);
    }
}

struct FieldVisitor<'a> {
    names: &'a [String],
    values: &'a mut FieldValues,
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

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        let mut left = self.names.len();
        while left > 0 {
            let Some(name) = fields.next_key::<Cow<'de, str>>()? else { break };
            match self.names.iter().position(|wanted| *wanted == name) {
                Some(at) => {
                    let value = fields.next_value()?;
                    if let Some(place) = self.values.get_mut(at) {
                        *place = Some(value);
                    }
                    left -= 1;
                }
                None => drop(fields.next_value::<IgnoredAny>()?),
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
    fn empty_selection_reads_nothing() {
        let mut values = Vec::new();
        FieldReader::default().read("not even JSON", &mut values);
        assert!(values.is_empty());
    }
}
