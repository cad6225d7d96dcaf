//! Reads lines of a JSON file that are one record, as most are, without a copy of each value's text.

use std::fmt;

use fetchwell_core::record::RecordData;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::Value;

use super::depth::MAX_DEPTH;

/// The objects of a JSON-LD document.
pub(crate) const GRAPH: &str = "@graph";

/// Number of fields that a record has room for from the start.
const USUAL_FIELDS: usize = 8;

/// Parses a line that is one record. Returns `None` for any other line, which is read value by value.
pub(crate) fn read_record_line(line: &[u8]) -> Option<RecordData> {
    // A line with few brackets is not nested deep.
    let brackets = line.iter().filter(|byte| matches!(byte, b'{' | b'[')).count();
    if brackets > MAX_DEPTH {
        return None;
    }
    let mut json = serde_json::Deserializer::from_slice(line);
    let data = json.deserialize_map(RecordLine).ok()?;
    json.end().ok()?;
    let is_table = |value: &Value| value.as_array().is_some_and(|items| items.iter().all(Value::is_object));
    let has_tables = !data.is_empty() && data.values().all(is_table);
    (!has_tables && !data.contains_key(GRAPH)).then_some(data)
}

/// The fields of a record.
struct RecordLine;

impl<'de> Visitor<'de> for RecordLine {
    type Value = RecordData;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<RecordData, A::Error> {
        let mut data = RecordData::with_capacity(USUAL_FIELDS);
        while let Some((name, value)) = fields.next_entry()? {
            data.insert(name, value);
        }
        Ok(data)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_record_unless_it_is_something_else() {
        let deep = |levels: usize| format!("{{\"a\":{}1{}}}", "[".repeat(levels), "]".repeat(levels));
        for line in ["{}", r#" {"a":1,"b":[{}],"a":2} "#, r#"{"a":[{},1]}"#, &deep(MAX_DEPTH - 1)] {
            let data: RecordData = serde_json::from_str(line).unwrap();
            let found = read_record_line(line.as_bytes()).unwrap();
            assert_eq!(serde_json::to_string(&found).unwrap(), serde_json::to_string(&data).unwrap());
        }
        let others = [
            "",
            "1",
            "[{}]",
            r#"{"a":[]}"#,
            r#"{"a":[{}],"b":[{},{}]}"#,
            r#"{"a":1,"a":[{}]}"#,
            r#"{"@graph":[{}],"b":1}"#,
            r#"{"a":1}{"a":2}"#,
            r#"{"a":1"#,
            r#"{"a":1e999}"#,
            &deep(MAX_DEPTH),
        ];
        for line in others {
            assert_eq!(read_record_line(line.as_bytes()), None, "{line}");
        }
    }
}
