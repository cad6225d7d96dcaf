//! `import json`: an array of objects, objects one after the other, or an object of such arrays.
//!
//! An item is first read as text, which needs no recursion, so an item that cannot be parsed is skipped alone.

use std::fmt;
use std::io::{BufReader, Read};
use std::path::Path;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use super::ImportError;
use super::depth::{MAX_DEPTH, is_deeper, too_deep};
use super::intake::{Draft, Intake, Repeated};
use super::meter::Meter;
use super::records::json_problem;
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

/// The fields of a record and the bytes of its text.
struct Item {
    data: RecordData,
    bytes: usize,
}

impl Items<'_, '_> {
    /// Imports an item, or rejects it with the reason: only a broken text of the file ends the import.
    fn take<E: serde::de::Error>(&mut self, stream: &str, item: Result<Item, String>) -> Result<(), E> {
        self.number += 1;
        let place = format!("item {}", self.number);
        let taken = match item.and_then(|item| self.keyed(item)) {
            Ok((key, Item { data, bytes })) => {
                let (data, repeated) = (Some(data), Repeated::Refused);
                let draft = Draft { stream, key: Some(key), data, emitted_at: None, bytes, repeated };
                self.intake.take(&place, draft)
            }
            Err(reason) => {
                self.intake.reject(&place, &reason);
                Ok(())
            }
        };
        taken.map_err(|error| {
            self.failed = Some(error);
            E::custom("the import ended")
        })
    }

    fn keyed(&self, item: Item) -> Result<(Value, Item), String> {
        let parts: Option<Vec<Value>> = self.key.iter().map(|field| item.data.get(field).cloned()).collect();
        let no_key = || format!("it has no field `{}`; name its key with --key", self.key.join("`, `"));
        Ok((Value::Array(parts.ok_or_else(no_key)?), item))
    }
}

/// Parses the text of an item.
fn read_item(text: &RawValue) -> Result<Item, String> {
    match read_value(text)? {
        Value::Object(data) => Ok(Item { data, bytes: text.get().len() }),
        _ => Err("it is not an object".to_owned()),
    }
}

/// Parses a value that is not nested too deep, so that no parser of an answer refuses the record.
fn read_value(text: &RawValue) -> Result<Value, String> {
    if is_deeper(text.get(), MAX_DEPTH) {
        return Err(too_deep());
    }
    serde_json::from_str(text.get()).map_err(|error| json_problem(&error))
}

/// Parses an array of objects; any other value is `None`.
fn read_table(text: &RawValue) -> Option<Vec<&RawValue>> {
    let items: Vec<&RawValue> = serde_json::from_str(text.get()).ok()?;
    items.iter().all(|item| item.get().starts_with('{')).then_some(items)
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
        while let Some(item) = items.next_element::<Box<RawValue>>()? {
            self.0.take(stream, read_item(&item))?;
            self.0.meter.record_starts();
        }
        self.0.meter.any_length();
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        let mut values: Vec<(String, Box<RawValue>)> = Vec::new();
        while let Some(field) = fields.next_entry()? {
            values.push(field);
        }
        let tables: Option<Vec<_>> = values.iter().map(|(_, value)| read_table(value)).collect();
        let Some(tables) = tables.filter(|tables| !tables.is_empty()) else {
            let bytes = values.iter().map(|(name, value)| name.len() + value.get().len()).sum();
            let data = values.iter().map(|(name, value)| Ok((name.clone(), read_value(value)?)));
            let item = data.collect::<Result<RecordData, String>>().map(|data| Item { data, bytes });
            return self.0.take(self.0.stream, item);
        };
        for ((stream, _), items) in values.iter().zip(tables) {
            for item in items {
                self.0.take(stream, read_item(item))?;
            }
        }
        Ok(())
    }
}
