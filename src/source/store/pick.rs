//! Reading a few fields of a record without the rest.
//!
//! Filters and figures look at a field or two of every record of a stream. Reading these records whole
//! would take most of the time and megabytes for nothing.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;

/// The names of the fields that are wanted, each once.
#[derive(Debug, Default)]
pub(super) struct Picker {
    names: Vec<String>,
}

/// The values of one record, in the order of the names; `None` where there is none.
pub(super) type Picked = Vec<Option<Value>>;

impl Picker {
    /// Wants a field, and says where its value will be.
    pub(super) fn want(&mut self, name: &str) -> usize {
        if let Some(at) = self.names.iter().position(|wanted| wanted == name) {
            return at;
        }
        self.names.push(name.to_owned());
        self.names.len() - 1
    }

    /// Reads the wanted fields of a JSON object. What cannot be read has none.
    pub(super) fn pick(&self, json: &str, picked: &mut Picked) {
        picked.clear();
        picked.resize(self.names.len(), None);
        let mut deserializer = serde_json::Deserializer::from_str(json);
        // It stops at the last wanted field, which the parser takes for an unfinished object: what was
        // read is already in its place.
        let _ = Into { names: &self.names, picked }.deserialize(&mut deserializer);
    }
}

struct Into<'a> {
    names: &'a [String],
    picked: &'a mut Picked,
}

impl<'de> DeserializeSeed<'de> for Into<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Into<'_> {
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
                    if let Some(place) = self.picked.get_mut(at) {
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
    fn only_what_is_wanted_is_read() {
        let mut picker = Picker::default();
        assert_eq!((picker.want("b"), picker.want("z"), picker.want("b")), (0, 1, 0));
        let mut picked = Vec::new();
        picker.pick(r#"{"a":{"b":1},"b":[2],"c":3}"#, &mut picked);
        assert_eq!(picked, [Some(json!([2])), None]);
        picker.pick(r#"{"\u0062":"\n"}"#, &mut picked);
        assert_eq!(picked, [Some(json!("\n")), None]);
        picker.pick("[1]", &mut picked);
        assert_eq!(picked, [None, None]);
    }

    #[test]
    fn nothing_wanted_is_nothing_read() {
        let mut picked = Vec::new();
        Picker::default().pick("not even JSON", &mut picked);
        assert!(picked.is_empty());
    }
}
