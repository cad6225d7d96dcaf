//! The objects of a JSON array, one by one, so that the length of the array does not matter to memory.

use std::io::BufReader;

use fetchwell_core::fit::first_characters;
use fetchwell_core::record::RecordData;
use jiff::Timestamp;
use serde::de::{Deserializer, SeqAccess, Visitor};
use serde_json::Value;

use super::super::item::{Item, ReadError};
use super::super::meter::Meter;

/// Calls `visit` with each object of an array and its number from 1.
///
/// # Errors
///
/// The file is no array of objects, an object is longer than a record may be, or `visit` failed.
pub(super) fn each_object(
    item: Item<'_>,
    visit: &mut dyn FnMut(u64, RecordData) -> Result<(), ReadError>,
) -> Result<(), ReadError> {
    let meter = Meter::default();
    meter.record_starts();
    let reader = BufReader::with_capacity(1 << 16, meter.watch(item.into_reader()));
    let mut json = serde_json::Deserializer::from_reader(reader);
    let mut objects = Objects { meter: meter.clone(), visit, failed: None };
    let read = json.deserialize_seq(&mut objects);
    match (objects.failed, read) {
        (Some(error), _) => Err(error),
        (None, Err(error)) => Err(format!("its JSON is broken: {error}").into()),
        (None, Ok(())) => Ok(()),
    }
}

struct Objects<'v> {
    meter: Meter,
    visit: &'v mut dyn FnMut(u64, RecordData) -> Result<(), ReadError>,
    /// Error of `visit`; the parser only knows its own errors.
    failed: Option<ReadError>,
}

impl<'de> Visitor<'de> for &mut Objects<'_> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an array of objects")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let mut number = 0;
        while let Some(object) = items.next_element::<RecordData>()? {
            number += 1;
            self.meter.record_starts();
            if let Err(error) = (self.visit)(number, object) {
                self.failed = Some(error);
                return Err(serde::de::Error::custom("stopped"));
            }
        }
        Ok(())
    }
}

/// Returns the first line of a text that is not blank, or the name of its first file, truncated as a title.
pub(super) fn title_from<'a>(text: &'a str, file: &'a str) -> &'a str {
    const MAX_TITLE: usize = 80;
    let first = text.lines().map(str::trim).find(|line| !line.is_empty());
    first_characters(first.unwrap_or(file), MAX_TITLE)
}

/// Returns a text of an object, or an empty text.
pub(super) fn text_at<'a>(object: &'a RecordData, field: &str) -> &'a str {
    object.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// Returns the objects in a list of an object.
pub(super) fn objects_at<'a>(object: &'a RecordData, field: &str) -> impl Iterator<Item = &'a RecordData> {
    object.get(field).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_object)
}

/// Returns a number of seconds since 1970 as a time in RFC 3339.
pub(super) fn time_of_seconds(seconds: f64) -> Option<String> {
    let millis = format!("{:.0}", seconds * 1_000.0).parse().ok()?;
    Timestamp::from_millisecond(millis).ok().map(|time| time.to_string())
}
