//! `import json`: an array of objects, objects one after the other, or an object of such arrays.
//!
//! An item is first read as text, which needs no recursion, so an item that cannot be parsed is skipped alone. A file with an
//! object a line is read line by line, so that a broken line is skipped alone, too.

use std::collections::HashMap;
use std::fmt;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use fetchwell_core::record::RecordData;
use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use super::ImportError;
use super::depth::{MAX_DEPTH, is_deeper, too_deep};
use super::field_names::{FieldNames, KEY_FIELDS, list_names, value_at};
use super::intake::{Draft, DuplicatePolicy, Intake, Piece, PieceSink, parse_ahead};
use super::json_line::{GRAPH, read_record_line};
use super::json_target::JsonTarget;
use super::lines::{Lines, NumberedLine};
use super::meter::Meter;
use super::records::json_problem;
use super::text_input::TextInput;

const EXPECTED: &str = "a JSON file of objects";

/// Size in bytes of a line of which each item is parsed alone, so that few are in memory as values.
const MAX_PARSED_LINE: usize = 1024 * 1024;

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
    import_into(reader, path, JsonTarget { stream, origin: None }, names, intake)
}

/// Imports the objects of a file in a folder or archive. Its path precedes their keys, which are unique only in it.
pub(crate) fn read_json(reader: impl Read, path: &str, intake: &mut Intake<'_>) -> Result<(), ImportError> {
    let target = JsonTarget { stream: "items", origin: Some(path) };
    import_into(reader, Path::new(path), target, &FieldNames::default(), intake)
}

fn import_into(
    reader: impl Read,
    path: &Path,
    target: JsonTarget<'_>,
    names: &FieldNames,
    intake: &mut Intake<'_>,
) -> Result<(), ImportError> {
    let text = TextInput::read(reader, path)
        .map_err(|error| ImportError::Unreadable { path: path.to_owned(), problem: error.to_string() })?;
    let has_lines = has_object_lines(path, &text);
    let mut broken = None;
    let read = |send: &mut PieceSink<'_, Place, Content>| {
        let mut sender = Sender { send, meter: Meter::default(), sent: 0 };
        if has_lines {
            return send_lines(&mut BufReader::new(text.into_reader()), path, &mut sender);
        }
        let reader = sender.meter.watch(text.into_reader());
        let mut json = serde_json::Deserializer::from_reader(BufReader::new(reader));
        broken = read_values(&mut json, &mut sender)?.err();
        Ok(())
    };
    let stop = intake.stop_flag();
    let mut items = Items { target, names, intake, number: 0, tables: HashMap::new(), unkeyed: None };
    let parse = |content: Content| Ok(content.parse(names));
    let imported = parse_ahead(stop, &parse, read, &mut |place, parsed| items.take(place, parsed));
    items.reject_unkeyed();
    imported?;
    broken.map_or(Ok(()), |error| {
        let problem = match intake.taken() {
            0 => error.to_string(),
            _ => format!("{error}; items before that place are imported"),
        };
        Err(ImportError::WrongKind { path: path.to_owned(), expected: EXPECTED, problem })
    })
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

/// A piece of the file to parse.
enum Content {
    Line(Vec<u8>),
    /// An item of an array, with the stream that it names.
    Item(Option<String>, Box<RawValue>),
    /// A record, with the text of its fields.
    Object(Vec<(String, Box<RawValue>)>),
}

/// The place of a piece.
#[derive(Debug, Clone, Copy)]
enum Place {
    /// A line, and true if items of it were sent before.
    Line(u64, bool),
    Item,
}

/// The items of a piece, and the error of a line after them.
struct ParsedPiece {
    items: Vec<ParsedItem>,
    problem: Option<String>,
}

struct ParsedItem {
    /// Stream that the file names.
    stream: Option<String>,
    item: Result<Item, String>,
}

/// The fields of a record, with what identifies it.
struct Item {
    data: RecordData,
    emitted_at: Option<String>,
    /// Bytes of its text.
    bytes: usize,
    /// Value of a field that is usually a key.
    usual_key: Option<Value>,
    /// Values of the key fields that the command names.
    named_key: Option<Value>,
}

impl Content {
    fn parse(self, names: &FieldNames) -> ParsedPiece {
        // Most pieces are one record. A list that grows has room for four, which the allocator treats as a large block.
        let mut parser = Parser { names, items: Vec::with_capacity(1) };
        let problem = match self {
            Self::Line(line) => match read_record_line(&line) {
                Some(data) => {
                    parser.push(None, Ok((data, line.len())));
                    None
                }
                None => match read_values(&mut serde_json::Deserializer::from_slice(&line), &mut parser) {
                    Ok(read) => read.err().map(|error| json_problem(&error)),
                    Err(ended) => Some(ended.to_string()),
                },
            },
            Self::Item(stream, text) => {
                parser.push(stream, read_item(&text));
                None
            }
            Self::Object(fields) => {
                parser.push(None, read_object(&fields));
                None
            }
        };
        ParsedPiece { items: parser.items, problem }
    }
}

/// A receiver of the items of a value.
trait ItemSink {
    /// Takes an item of an array.
    fn item(&mut self, stream: Option<&str>, text: &RawValue) -> Result<(), ImportError>;

    /// Takes a record that is no item of an array.
    fn object(&mut self, fields: Vec<(String, Box<RawValue>)>) -> Result<(), ImportError>;

    /// Notes that an item starts, or that there are none any more.
    fn item_starts(&mut self, _has_more: bool) {}
}

/// Parses items at once.
struct Parser<'a> {
    names: &'a FieldNames,
    items: Vec<ParsedItem>,
}

impl Parser<'_> {
    fn push(&mut self, stream: Option<String>, read: Result<(RecordData, usize), String>) {
        let item = read.map(|(mut data, bytes)| {
            let usual_key = KEY_FIELDS.into_iter().find_map(|field| value_at(&data, field)).cloned();
            let parts = self.names.key.iter().map(|field| value_at(&data, field).cloned());
            let named_key = parts.collect::<Option<Vec<Value>>>().map(Value::Array);
            let emitted_at = self.names.apply(&mut data);
            Item { data, emitted_at, bytes, usual_key, named_key }
        });
        self.items.push(ParsedItem { stream, item });
    }
}

impl ItemSink for Parser<'_> {
    fn item(&mut self, stream: Option<&str>, text: &RawValue) -> Result<(), ImportError> {
        self.push(stream.map(str::to_owned), read_item(text));
        Ok(())
    }

    fn object(&mut self, fields: Vec<(String, Box<RawValue>)>) -> Result<(), ImportError> {
        self.push(None, read_object(&fields));
        Ok(())
    }
}

/// Sends items to the parsers.
struct Sender<'a, 's> {
    send: &'a mut PieceSink<'s, Place, Content>,
    meter: Meter,
    sent: u64,
}

impl ItemSink for Sender<'_, '_> {
    fn item(&mut self, stream: Option<&str>, text: &RawValue) -> Result<(), ImportError> {
        self.sent += 1;
        let (bytes, content) = (text.get().len(), Content::Item(stream.map(str::to_owned), text.to_owned()));
        (self.send)(Piece { place: Place::Item, content: Ok(content), bytes })
    }

    fn object(&mut self, fields: Vec<(String, Box<RawValue>)>) -> Result<(), ImportError> {
        self.sent += 1;
        let bytes = text_bytes(&fields);
        (self.send)(Piece { place: Place::Item, content: Ok(Content::Object(fields)), bytes })
    }

    fn item_starts(&mut self, has_more: bool) {
        if has_more { self.meter.record_starts() } else { self.meter.any_length() }
    }
}

/// Reads all values of a parser. An error of the JSON is the inner one.
fn read_values<'de, R: serde_json::de::Read<'de>>(
    json: &mut serde_json::Deserializer<R>,
    sink: &mut dyn ItemSink,
) -> Result<Result<(), serde_json::Error>, ImportError> {
    let mut failed = None;
    loop {
        let read = TopLevel { sink: &mut *sink, failed: &mut failed }.deserialize(&mut *json);
        if let Some(error) = failed.take() {
            return Err(error);
        }
        if read.is_err() || json.end().is_ok() {
            return Ok(read);
        }
    }
}

/// Sends all lines. The items of a long line are sent one by one.
fn send_lines(
    reader: &mut impl BufRead,
    path: &Path,
    sender: &mut Sender<'_, '_>,
) -> Result<(), ImportError> {
    let mut lines = Lines::new(reader, path);
    while let Some(NumberedLine { number, text }) = lines.next()? {
        let (content, bytes, sent) = match text {
            Ok(line) if line.len() > MAX_PARSED_LINE => {
                let before = sender.sent;
                let Err(error) = read_values(&mut serde_json::Deserializer::from_slice(line), sender)? else {
                    continue;
                };
                (Err(json_problem(&error)), 0, sender.sent - before)
            }
            Ok(line) => (Ok(Content::Line(line.to_vec())), line.len(), 0),
            Err(reason) => (Err(reason), 0, 0),
        };
        (sender.send)(Piece { place: Place::Line(number, sent > 0), content, bytes })?;
    }
    Ok(())
}

/// Numbers the items and passes them to the intake.
struct Items<'a, 'b> {
    target: JsonTarget<'a>,
    names: &'a FieldNames,
    intake: &'a mut Intake<'b>,
    number: u64,
    /// The streams that items went into.
    tables: HashMap<String, Table>,
    /// Items without a key.
    unkeyed: Option<UnkeyedItems>,
}

/// A stream that items go into.
#[derive(Debug, Default)]
struct Table {
    /// The items that were read, rejected ones too: a corrected file keeps the numbers of the others.
    items: u64,
    /// True if items without a key are identified by their number, because the first item has no field that is usually a key.
    is_numbered: Option<bool>,
}

impl Table {
    /// Returns the key of the item that was read last, from the value of a field that is usually a key.
    fn key(&mut self, usual: Option<Value>) -> Option<Value> {
        let is_numbered = *self.is_numbered.get_or_insert(usual.is_none());
        usual.or_else(|| is_numbered.then(|| self.items.into()))
    }
}

/// Items without a key, of which one line of the report tells.
#[derive(Debug)]
struct UnkeyedItems {
    count: u64,
    first: u64,
    fields: String,
}

impl Items<'_, '_> {
    /// Imports the items of a piece, or rejects them with the reason.
    fn take(&mut self, place: Place, parsed: Result<ParsedPiece, String>) -> Result<(), ImportError> {
        let ParsedPiece { items, problem } = match (parsed, place) {
            (Ok(parsed), _) => parsed,
            (Err(reason), Place::Line(..)) => ParsedPiece { items: Vec::new(), problem: Some(reason) },
            (Err(reason), Place::Item) => {
                return self.take_item(ParsedItem { stream: None, item: Err(reason) });
            }
        };
        let is_empty = items.is_empty();
        items.into_iter().try_for_each(|item| self.take_item(item))?;
        if let (Some(reason), Place::Line(number, has_items)) = (problem, place) {
            self.intake.reject(&self.target.place(&number), &reason);
            if is_empty && !has_items {
                self.tables.entry(self.target.stream.to_owned()).or_default().items += 1;
            }
        }
        Ok(())
    }

    fn take_item(&mut self, ParsedItem { stream, item }: ParsedItem) -> Result<(), ImportError> {
        self.number += 1;
        let target = self.target;
        let number = format_args!("item {}", self.number);
        let place = target.place(&number);
        let stream = stream.as_deref().unwrap_or(target.stream);
        let table = match self.tables.get_mut(stream) {
            Some(table) => table,
            None => self.tables.entry(stream.to_owned()).or_default(),
        };
        table.items += 1;
        match item {
            Ok(Item { mut data, emitted_at, bytes, usual_key, named_key }) => {
                let key = table.key(usual_key);
                let Some(key) = (if self.names.key.is_empty() { key } else { named_key }) else {
                    self.note_unkeyed(&data);
                    return Ok(());
                };
                let key = target.own_key(key, &mut data);
                let (key, data, repeated) = (Some(key), Some(data), DuplicatePolicy::Refused);
                self.intake.take_ahead(&place, Draft { stream, key, data, emitted_at, bytes, repeated })
            }
            Err(reason) => {
                self.intake.reject(&place, &reason);
                Ok(())
            }
        }
    }

    fn note_unkeyed(&mut self, data: &RecordData) {
        let first = self.number;
        let fields = || list_names(data.keys());
        self.unkeyed.get_or_insert_with(|| UnkeyedItems { count: 0, first, fields: fields() }).count += 1;
    }

    /// Rejects all items without a key in one line, which says the fields that there are.
    fn reject_unkeyed(&mut self) {
        let Some(UnkeyedItems { count, first, fields }) = self.unkeyed.take() else { return };
        let key = if self.names.key.is_empty() { "id".to_owned() } else { self.names.key.join("`, `") };
        let fields = if fields.is_empty() { "no fields".to_owned() } else { fields };
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
        self.intake.reject_many(count, &self.target.place(&place), &reason);
    }
}

/// Parses the text of an item. Returns its fields and the bytes of its text.
fn read_item(text: &RawValue) -> Result<(RecordData, usize), String> {
    match read_value(text)? {
        Value::Object(data) => Ok((data, text.get().len())),
        _ => Err("it is not an object".to_owned()),
    }
}

/// Parses the texts of the fields of a record.
fn read_object(fields: &[(String, Box<RawValue>)]) -> Result<(RecordData, usize), String> {
    let data = fields.iter().map(|(name, value)| Ok((name.clone(), read_value(value)?)));
    Ok((data.collect::<Result<RecordData, String>>()?, text_bytes(fields)))
}

fn text_bytes(fields: &[(String, Box<RawValue>)]) -> usize {
    fields.iter().map(|(name, value)| name.len() + value.get().len()).sum()
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
struct TopLevel<'a> {
    sink: &'a mut dyn ItemSink,
    /// Set when the import has to end; the parser only knows its own errors.
    failed: &'a mut Option<ImportError>,
}

impl TopLevel<'_> {
    fn check<E: serde::de::Error>(&mut self, taken: Result<(), ImportError>) -> Result<(), E> {
        taken.map_err(|error| {
            *self.failed = Some(error);
            E::custom("the import ended")
        })
    }
}

impl<'de> DeserializeSeed<'de> for TopLevel<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for TopLevel<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object, or an array of objects")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<(), A::Error> {
        self.sink.item_starts(true);
        while let Some(item) = items.next_element::<Box<RawValue>>()? {
            let taken = self.sink.item(None, &item);
            self.check(taken)?;
            self.sink.item_starts(true);
        }
        self.sink.item_starts(false);
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut fields: A) -> Result<(), A::Error> {
        let mut values: Vec<(String, Box<RawValue>)> = Vec::new();
        while let Some(field) = fields.next_entry()? {
            values.push(field);
        }
        let graph = values.iter().find(|(name, _)| name == GRAPH).and_then(|(_, value)| read_table(value));
        if let Some(graph) = graph {
            for item in graph {
                let taken = self.sink.item(None, item);
                self.check(taken)?;
            }
            return Ok(());
        }
        let tables: Option<Vec<_>> = values.iter().map(|(_, value)| read_table(value)).collect();
        let Some(tables) = tables.filter(|tables| !tables.is_empty()) else {
            let taken = self.sink.object(values);
            return self.check(taken);
        };
        for ((stream, _), items) in values.iter().zip(tables) {
            for item in items {
                let taken = self.sink.item(Some(stream), item);
                self.check(taken)?;
            }
        }
        Ok(())
    }
}
