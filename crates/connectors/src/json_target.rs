//! The stream of the objects of a JSON file, and the place of the file in a folder.

use std::fmt::{self, Display};

use fetchwell_core::record::RecordData;
use serde_json::Value;

use super::key::canonical_key;

/// The stream of records, and the path of their file in a folder.
#[derive(Debug, Clone, Copy)]
pub(crate) struct JsonTarget<'a> {
    pub(crate) stream: &'a str,
    /// Path of a file in a folder. It precedes the keys of its records, which are unique only in the file.
    pub(crate) origin: Option<&'a str>,
}

impl<'a> JsonTarget<'a> {
    /// Returns a place in the file for reports, which names the file in a folder.
    pub(crate) fn place<'p>(self, place: &'p dyn Display) -> JsonPlace<'p>
    where
        'a: 'p,
    {
        JsonPlace { origin: self.origin, place }
    }

    /// Returns the key of a record. One of a file in a folder also gets the path of the file as a field.
    pub(crate) fn own_key(self, key: Value, data: &mut RecordData) -> Value {
        let Some(path) = self.origin else { return key };
        data.entry("path").or_insert_with(|| Value::from(path));
        // A key that is none is rejected later.
        canonical_key(key.clone()).map_or(key, |key| Value::from(format!("{path}/{key}")))
    }
}

/// A place in a JSON file.
pub(crate) struct JsonPlace<'p> {
    origin: Option<&'p str>,
    place: &'p dyn Display,
}

impl Display for JsonPlace<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.origin {
            Some(path) => write!(f, "{path}: {}", self.place),
            None => self.place.fmt(f),
        }
    }
}
