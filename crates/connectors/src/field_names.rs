//! The fields of a file that hold the key, title, time and URL of its records.

use fetchwell_core::fit::clip;
use fetchwell_core::record::{RecordData, authored_values, field_named};
use serde_json::Value;

use super::values::time_of_value;

/// Fields used as the key if the command names none, the preferred first.
pub(crate) const KEY_FIELDS: [&str; 5] = ["id", "@id", "_id", "uuid", "guid"];

/// Names that an error lists at most.
const MAX_NAMES_LISTED: usize = 20;

/// Bytes of a name in a list at most, as JSON.
const MAX_LISTED_NAME_LEN: usize = 60;

/// The fields that a command names. A name is that of a field, compared without case, or a path into objects
/// (`snippet.title`).
#[derive(Debug, Clone, Default)]
pub struct FieldNames {
    /// Fields of the key. If empty, common names are tried.
    pub key: Vec<String>,
    /// Field of the title.
    pub title: Option<String>,
    /// Field of the time. If `None`, common names are tried.
    pub time: Option<String>,
    /// Field of the URL.
    pub url: Option<String>,
}

impl FieldNames {
    /// Iterates over all names.
    pub(crate) fn all(&self) -> impl Iterator<Item = &String> {
        self.key.iter().chain(&self.title).chain(&self.time).chain(&self.url)
    }

    /// Sets `title` and `url` of a record from the named fields. Returns the time at which the record was written.
    pub(crate) fn apply(&self, data: &mut RecordData) -> Option<String> {
        let time = match &self.time {
            Some(name) => value_at(data, name).and_then(time_of_value),
            None => authored_values(data).find_map(time_of_value),
        };
        for (field, name) in [("url", &self.url), ("title", &self.title)] {
            let value = name.as_ref().and_then(|name| value_at(data, name)).and_then(text_of);
            if let Some(value) = value.filter(|value| data.get(field) != Some(value)) {
                // A field that already has this name is kept under another.
                if let Some(other) = data.shift_remove(field) {
                    data.insert(format!("original_{field}"), other);
                }
                data.shift_insert(0, field.to_owned(), value);
            }
        }
        time
    }
}

/// Returns the first names of the fields of a file for an error, and the number of the others.
pub(crate) fn list_names<'a>(names: impl Iterator<Item = &'a String>) -> String {
    let mut names = names.fuse();
    let listed: Vec<_> =
        names.by_ref().take(MAX_NAMES_LISTED).map(|name| clip(name, MAX_LISTED_NAME_LEN)).collect();
    match names.count() {
        0 => listed.join(", "),
        more => format!("{} and {more} more", listed.join(", ")),
    }
}

/// Returns a number or a string as a string.
fn text_of(value: &Value) -> Option<Value> {
    match value {
        Value::String(text) => Some(text.as_str().into()),
        Value::Number(number) => Some(number.to_string().into()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Returns the value of a field, or of a field of an object in the record.
pub(crate) fn value_at<'a>(data: &'a RecordData, name: &str) -> Option<&'a Value> {
    field_named(data, name).or_else(|| {
        let (outer, inner) = name.split_once('.')?;
        value_at(field_named(data, outer)?.as_object()?, inner)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(names: &FieldNames, data: Value, expect: &Value, time: Option<&str>) {
        let mut data = serde_json::from_value(data).unwrap();
        assert_eq!(names.apply(&mut data).as_deref(), time);
        assert_eq!(serde_json::to_string(&data).unwrap(), expect.to_string());
    }

    #[test]
    fn fields_are_found_without_case_and_by_paths() {
        let name = |name: &str| Some(name.to_owned());
        let names = FieldNames {
            title: name("info.headline"),
            time: name("SEEN"),
            url: name("Page"),
            ..FieldNames::default()
        };
        check(
            &names,
            json!({"id": 1, "info": {"headline": "h"}, "seen": 1_775_037_600, "page": "https://x.test"}),
            &json!({"title": "h", "url": "https://x.test", "id": 1, "info": {"headline": "h"}, "seen": 1_775_037_600, "page": "https://x.test"}),
            Some("2026-04-01T10:00:00Z"),
        );
        let names = FieldNames { title: name("no"), ..FieldNames::default() };
        check(
            &names,
            json!({"no": 7, "title": "t", "updatedAt": "01.04.2026"}),
            &json!({"title": "7", "no": 7, "updatedAt": "01.04.2026", "original_title": "t"}),
            Some("2026-04-01"),
        );
        check(&FieldNames::default(), json!({"a": "2026-04-01"}), &json!({"a": "2026-04-01"}), None);
    }

    #[test]
    fn lists_of_names_are_bounded() {
        let names = |count: usize| (0..count).map(|number| format!("n{number}")).collect::<Vec<_>>();
        assert_eq!(list_names(names(3).iter()), "n0, n1, n2");
        assert!(list_names(names(23).iter()).ends_with("n18, n19 and 3 more"));
        assert_eq!(list_names(["x".repeat(1000)].iter()).len(), MAX_LISTED_NAME_LEN);
    }
}
