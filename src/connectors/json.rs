//! `import json`: an array of objects, objects one after the other, or an object of such arrays.
//!
//! An item is first read as text, which needs no recursion, so an item that cannot be parsed is skipped alone. A file with an
//! object a line is read line by line, so that a broken line is skipped alone, too.

use std::collections::HashMap;
use std::fmt;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use super::ImportError;
use super::depth::{MAX_DEPTH, is_deeper, too_deep};
use super::field_names::{FieldNames, KEY_FIELDS, value_at};
use super::intake::{Draft, Intake, Repeated};
use super::lines::{Lines, NumberedLine};
use super::meter::Meter;
use super::records::json_problem;
use super::text_input::TextInput;
use crate::record::RecordData;

const EXPECTED: &str = "a JSON file of objects";

/// The objects of a JSON-LD document.
const GRAPH: &str = "@graph";

/// Names of fields that an error lists.
const MAX_FIELDS_LISTED: usize = 20;

/// Imports every object into `stream`, or, from an object of arrays, into the stream of each array's
/// name. The key is the value of the key fields of `names`, else of a field such as `id`, else the number of the object.
/// An array is read item by item, so its length does not matter to memory.
///
/// # Errors
///
/// The JSON is broken, the store cannot be written, or the user stopped the import. Objects before the
/// broken place stay imported.
pub fn import_json(
    reader: impl Read,
    path: &Path,
    stream: &str,
    names: &FieldNames,
    intake: &mut Intake<'_>,
) -> Result<(), ImportError> {
    let text = TextInput::read(reader, path)
        .map_err(|error| ImportError::Unreadable { path: path.to_owned(), problem: error.to_string() })?;
    let has_lines = has_object_lines(path, &text);
    let meter = Meter::default();
    let mut items = Items {
        stream,
        names,
        intake,
        meter,
        number: 0,
        tables: HashMap::new(),
        unkeyed: None,
        failed: None,
    };
    let read = if has_lines {
        items.read_lines(&mut BufReader::new(text.into_reader()), path)
    } else {
        let reader = items.meter.watch(text.into_reader());
        let mut json = serde_json::Deserializer::from_reader(BufReader::new(reader));
        items.read_values(&mut json).and_then(|read| {
            read.map_err(|error| ImportError::WrongKind {
                path: path.to_owned(),
                expected: EXPECTED,
                problem: match items.intake.taken() {
                    0 => error.to_string(),
                    _ => format!("{error}; items before that place are imported"),
                },
            })
        })
    };
    items.reject_unkeyed();
    read
}

/// Returns whether a file has an object a line: its name says so, or its start has more lines that are an object than
/// others that begin with one.
fn has_object_lines(path: &Path, text: &TextInput<'_>) -> bool {
    let ending = path.extension().map(|ending| ending.to_ascii_lowercase());
    if ending.is_some_and(|ending| ending == "ndjson" || ending == "jsonl") {
        return true;
    }
    let lines = text.head().split_inclusive(|byte| *byte == b'\n');
    let whole = lines.filter(|line| !text.is_longer || line.ends_with(b"\n"));
    let objects = whole.filter(|line| line.starts_with(b"{") && line.trim_ascii() != b"{");
    let (complete, broken): (Vec<&[u8]>, Vec<&[u8]>) =
        objects.take(20).partition(|line| serde_json::from_slice::<HashMap<String, &RawValue>>(line).is_ok());
    complete.len() + broken.len() > 1 && complete.len() > broken.len()
}

struct Items<'a, 'b> {
    stream: &'a str,
    names: &'a FieldNames,
    intake: &'a mut Intake<'b>,
    meter: Meter,
    number: u64,
    /// The streams that items went into.
    tables: HashMap<String, Table>,
    /// Items without a key.
    unkeyed: Option<Unkeyed>,
    /// Set when the import has to end; the parser only knows its own errors.
    failed: Option<ImportError>,
}

/// A stream that items go into.
#[derive(Debug, Default)]
struct Table {
    /// The items that were read, rejected ones too: a corrected file keeps the numbers of the others.
    items: u64,
    /// True if items without a key are identified by their number, because the first item has no field that is usually a key.
    is_numbered: Option<bool>,
}

/// Items without a key, of which one line of the report tells.
#[derive(Debug)]
struct Unkeyed {
    count: u64,
    first: u64,
    fields: Vec<String>,
}

/// The fields of a record and the bytes of its text.
struct Item {
    data: RecordData,
    bytes: usize,
}

impl Items<'_, '_> {
    /// Imports all values of a parser. An error of the JSON is the inner one.
    fn read_values<'de, R: serde_json::de::Read<'de>>(
        &mut self,
        json: &mut serde_json::Deserializer<R>,
    ) -> Result<Result<(), serde_json::Error>, ImportError> {
        loop {
            let read = TopLevel(self).deserialize(&mut *json);
            if let Some(error) = self.failed.take() {
                return Err(error);
            }
            if read.is_err() || json.end().is_ok() {
                return Ok(read);
            }
        }
    }

    /// Imports all lines, and rejects those that are broken.
    fn read_lines(&mut self, reader: &mut impl BufRead, path: &Path) -> Result<(), ImportError> {
        let mut lines = Lines::new(reader, path);
        while let Some(NumberedLine { number, text }) = lines.next()? {
            let items_before = self.number;
            let read = match text {
                Ok(line) => self
                    .read_values(&mut serde_json::Deserializer::from_slice(line))?
                    .map_err(|error| json_problem(&error)),
                Err(reason) => Err(reason),
            };
            if let Err(reason) = read {
                self.intake.reject(&number, &reason);
                if self.number == items_before {
                    self.table(self.stream).items += 1;
                }
            }
        }
        Ok(())
    }

    /// Imports an item, or rejects it with the reason: only a broken text of the file ends the import.
    fn take<E: serde::de::Error>(&mut self, stream: &str, item: Result<Item, String>) -> Result<(), E> {
        self.number += 1;
        let place = format!("item {}", self.number);
        self.table(stream).items += 1;
        let taken = match item {
            Ok(Item { mut data, bytes }) => {
                let Some(key) = self.key_of(stream, &data) else {
                    self.note_unkeyed(&data);
                    return Ok(());
                };
                let emitted_at = self.names.apply(&mut data);
                let (key, data, repeated) = (Some(key), Some(data), Repeated::Refused);
                self.intake.take(&place, Draft { stream, key, data, emitted_at, bytes, repeated })
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

    fn table(&mut self, stream: &str) -> &mut Table {
        if !self.tables.contains_key(stream) {
            self.tables.insert(stream.to_owned(), Table::default());
        }
        self.tables.entry(stream.to_owned()).or_default()
    }

    /// Returns the key of an item; `None` when it has none.
    fn key_of(&mut self, stream: &str, data: &RecordData) -> Option<Value> {
        let usual = KEY_FIELDS.into_iter().find_map(|field| value_at(data, field));
        let table = self.table(stream);
        let is_numbered = *table.is_numbered.get_or_insert(usual.is_none());
        let number = is_numbered.then(|| table.items.into());
        if self.names.key.is_empty() {
            return usual.cloned().or(number);
        }
        let parts = self.names.key.iter().map(|field| value_at(data, field).cloned());
        parts.collect::<Option<Vec<Value>>>().map(Value::Array)
    }

    fn note_unkeyed(&mut self, data: &RecordData) {
        let first = self.number;
        let fields = || data.keys().take(MAX_FIELDS_LISTED).cloned().collect();
        self.unkeyed.get_or_insert_with(|| Unkeyed { count: 0, first, fields: fields() }).count += 1;
    }

    /// Rejects all items without a key in one line, which says the fields that there are.
    fn reject_unkeyed(&mut self) {
        let Some(Unkeyed { count, first, fields }) = self.unkeyed.take() else { return };
        let key = if self.names.key.is_empty() { "id".to_owned() } else { self.names.key.join("`, `") };
        let fields = if fields.is_empty() { "no fields".to_owned() } else { fields.join(", ") };
        let (place, reason) = match count {
            1 => (
                format!("item {first}"),
                format!("it has no field `{key}`; name its key with --key; its fields are {fields}"),
            ),
            more => (
                format!("item {first} and {} more", more - 1),
                format!(
                    "they have no field `{key}`; name their key with --key; the fields of item {first} are {fields}"
                ),
            ),
        };
        self.intake.reject_many(count, &place, &reason);
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
        let stream = self.0.stream;
        let graph = values.iter().find(|(name, _)| name == GRAPH).and_then(|(_, value)| read_table(value));
        if let Some(graph) = graph {
            for item in graph {
                self.0.take(stream, read_item(item))?;
            }
            return Ok(());
        }
        let tables: Option<Vec<_>> = values.iter().map(|(_, value)| read_table(value)).collect();
        let Some(tables) = tables.filter(|tables| !tables.is_empty()) else {
            let bytes = values.iter().map(|(name, value)| name.len() + value.get().len()).sum();
            let data = values.iter().map(|(name, value)| Ok((name.clone(), read_value(value)?)));
            let item = data.collect::<Result<RecordData, String>>().map(|data| Item { data, bytes });
            return self.0.take(stream, item);
        };
        for ((stream, _), items) in values.iter().zip(tables) {
            for item in items {
                self.0.take(stream, read_item(item))?;
            }
        }
        Ok(())
    }
}
