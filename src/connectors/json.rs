//! `import json`: an array of objects, objects one after the other, or an object of such arrays.

use std::fmt;
use std::io::{BufReader, Read};
use std::path::Path;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use super::ImportError;
use super::intake::{Draft, Intake, Repeated};
use super::meter::Meter;
use crate::record::RecordData;

const EXPECTED: &str = "a JSON file of objects";

/// Imports every object into `stream`, or, from an object of arrays, into the stream of each array's
/// name. The key is the value of the `key` fields. An array is read item by item, so its length does not
/// matter to memory.
///
/// # Errors
///
/// The JSON is broken, the store cannot be written, or the user stopped the import. Objects before the
/// broken place stay imported.
pub fn import_json(
    reader: impl Read,
    path: &Path,
    stream: &str,
    key: &[String],
    intake: &mut Intake<'_>,
) -> Result<(), ImportError> {
    let meter = Meter::default();
    let mut json = serde_json::Deserializer::from_reader(BufReader::new(meter.watch(reader)));
    let mut items = Items { stream, key, intake, meter, number: 0, failed: None };
    loop {
        let read = TopLevel(&mut items).deserialize(&mut json);
        if let Some(error) = items.failed.take() {
            return Err(error);
        }
        read.map_err(|error| ImportError::WrongKind {
            path: path.to_owned(),
            expected: EXPECTED,
            problem: match items.intake.taken() {
                0 => error.to_string(),
                _ => format!("{error}; items before that place are imported"),
            },
        })?;
        if json.end().is_ok() {
            return Ok(());
        }
    }
}

struct Items<'a, 'b> {
    stream: &'a str,
    key: &'a [String],
    intake: &'a mut Intake<'b>,
    meter: Meter,
    number: u64,
    /// Set when the import has to end; the parser only knows its own errors.
    failed: Option<ImportError>,
}

impl Items<'_, '_> {
    fn take(&mut self, stream: &str, item: Value) -> Result<(), ImportError> {
        self.number += 1;
        let place = format!("item {}", self.number);
        let Value::Object(data) = item else {
            self.intake.reject(&place, "it is not an object");
            return Ok(());
        };
        let parts: Option<Vec<Value>> = self.key.iter().map(|field| data.get(field).cloned()).collect();
        let Some(parts) = parts else {
            let reason = format!("it has no field `{}`; name its key with --key", self.key.join("`, `"));
            self.intake.reject(&place, &reason);
            return Ok(());
        };
        let bytes = data.iter().map(|(name, value)| name.len() + size_of(value)).sum();
        let key = Some(Value::Array(parts));
        let repeated = Repeated::Refused;
        self.intake.take(&place, Draft { stream, key, data: Some(data), emitted_at: None, bytes, repeated })
    }

    fn take_or_stop<E: serde::de::Error>(&mut self, stream: &str, item: Value) -> Result<(), E> {
        self.take(stream, item).map_err(|error| {
            self.failed = Some(error);
            E::custom("the import ended")
        })
    }
}

/// About how much text a value takes.
fn size_of(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(size_of).sum::<usize>() + 2,
        Value::Object(fields) => {
            fields.iter().map(|(name, value)| name.len() + size_of(value)).sum::<usize>() + 2
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => 16,
    }
}

/// One value of the file: an array of records, a record, or an object of arrays of records.
struct TopLevel<'a, 'b, 'c>(&'a mut Items<'b, 'c>);

impl<'de> DeserializeSeed<'de> for TopLevel<'_, '_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for TopLevel<'_, '_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object, or an array of objects")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let stream = self.0.stream;
        self.0.meter.record_starts();
        while let Some(item) = items.next_element::<Value>()? {
            self.0.take_or_stop(stream, item)?;
            self.0.meter.record_starts();
        }
        self.0.meter.any_length();
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        let mut data = RecordData::new();
        while let Some((name, value)) = fields.next_entry::<String, Value>()? {
            data.insert(name, value);
        }
        let is_table =
            |value: &Value| value.as_array().is_some_and(|items| items.iter().all(Value::is_object));
        if data.is_empty() || !data.values().all(is_table) {
            return self.0.take_or_stop(self.0.stream, Value::Object(data));
        }
        for (stream, items) in data {
            for item in items.as_array().into_iter().flatten() {
                self.0.take_or_stop(&stream, item.clone())?;
            }
        }
        Ok(())
    }
}
