//! The title, link and time of a record, found by the names of its fields.
//!
//! Connectors name these fields in a few dozen ways. The lists are in order of preference and contain the names that
//! known connectors use. Case, `_`, `-` and spaces are ignored (`createdAt`, `Created at`). If a record has none of
//! the fields, the lookup continues in the wrapper objects that APIs put around fields (`snippet.title`).

use serde_json::Value;

use super::{RecordData, WebLink};

const TITLE_FIELDS: FieldList = FieldList::new(&[
    "title",
    "subject",
    "headline",
    "name",
    "summary",
    "display_name",
    "full_name",
    "filename",
    "file_name",
    "label",
    "topic",
    "question",
]);

const LINK_FIELDS: FieldList = FieldList::new(&[
    "url",
    "html_url",
    "web_url",
    "link",
    "permalink",
    "webViewLink",
    "web_link",
    "source_url",
    "canonical_url",
    "href",
    "@id",
]);

const AUTHORED_FIELDS: FieldList = FieldList::new(&[
    "authored_at",
    "sent_at",
    "received_at",
    "published_at",
    "created_at",
    "date",
    "timestamp",
    "time",
    "occurred_at",
    "start_time",
    "observed_at",
    "updated_at",
    "modified_at",
    "created",
    "created_time",
    "created_date",
    "date_created",
    "creation_date",
    "published",
    "date_published",
    "publish_date",
    "modified",
    "modified_time",
    "date_modified",
    "last_modified",
    "updated",
]);

const AUTHOR_FIELDS: FieldList = FieldList::new(&[
    "from",
    "from_name",
    "from_email",
    "sender",
    "sender_name",
    "sender_email",
    "author",
    "authors",
    "author_name",
    "creator",
    "created_by",
    "owner",
    "organizer",
    "user",
    "username",
    "posted_by",
]);

/// Maximum number of fields with loosely compared names. Comparing thousands would make each list slow.
const MAX_FIELDS_COMPARED: usize = 200;

/// Names of objects that APIs wrap the fields of a record in.
const WRAPPERS: FieldList =
    FieldList::new(&["fields", "attributes", "properties", "snippet", "data", "item", "node", "object"]);

/// Names of fields with a role, the preferred first, and a filter that excludes most other names.
#[derive(Debug, Clone, Copy)]
struct FieldList {
    names: &'static [&'static str],
    /// Bits of the first letters of the names.
    first_letters: u64,
    /// Bits of the numbers of letters of the names.
    letter_counts: u64,
}

impl FieldList {
    const fn new(names: &'static [&'static str]) -> Self {
        let (mut first_letters, mut letter_counts) = (0, 0);
        let mut rest = names;
        while let [name, others @ ..] = rest {
            let (first, count) = outline(name);
            first_letters |= first;
            letter_counts |= count;
            rest = others;
        }
        Self { names, first_letters, letter_counts }
    }

    /// Returns false if no name of the list is equal to this one apart from case and separators.
    fn may_have(&self, name: &str) -> bool {
        let (first, count) = outline(name);
        self.first_letters & first != 0 && self.letter_counts & count != 0
    }

    /// Returns true if a name of the list is equal to this one apart from case and separators.
    fn has(&self, name: &str) -> bool {
        self.may_have(name) && self.names.iter().any(|known| is_same_name(name, known))
    }
}

/// Length in bytes of a name from which on it is compared without an outline.
const MAX_NAME_BYTES: usize = 128;

/// Returns a bit for the first letter of a name, and one for the number of its letters. A long name has all bits.
const fn outline(name: &str) -> (u64, u64) {
    let (mut first, mut letters) = (0, 0_u32);
    let mut rest = name.as_bytes();
    if rest.len() > MAX_NAME_BYTES {
        return (u64::MAX, u64::MAX);
    }
    while let [byte, others @ ..] = rest {
        if !is_separator(*byte) {
            if letters == 0 {
                first = 1 << (byte.to_ascii_lowercase() % 64);
            }
            letters += 1;
        }
        rest = others;
    }
    (first, 1 << (letters % 64))
}

const fn is_separator(byte: u8) -> bool {
    matches!(byte, b'_' | b'-' | b' ')
}

/// Returns the record's own title: the first title field that contains text.
#[must_use]
pub fn own_title(data: &RecordData) -> Option<&str> {
    texts(data, &TITLE_FIELDS).next()
}

/// Returns true if a field of this name holds a title.
#[must_use]
pub fn is_title_field(name: &str) -> bool {
    TITLE_FIELDS.has(name)
}

/// Returns true if a field of this name holds the author or sender.
#[must_use]
pub fn is_author_field(name: &str) -> bool {
    AUTHOR_FIELDS.has(name)
}

/// Returns true if a field of this name holds the time at which a record was written.
#[must_use]
pub fn is_time_field(name: &str) -> bool {
    AUTHORED_FIELDS.has(name)
}

/// Returns the record's own link: the first link field with a URL that a person can open.
#[must_use]
pub fn own_link(data: &RecordData) -> Option<WebLink> {
    texts(data, &LINK_FIELDS).find_map(|text| text.parse().ok())
}

/// Returns the time at which the record was written: the first time field with a value that looks like a date.
#[must_use]
pub fn authored_at(data: &RecordData) -> Option<&str> {
    texts(data, &AUTHORED_FIELDS).find(|text| looks_like_a_date(text))
}

/// Returns the values of all fields that name the author or sender, the preferred first, of any type.
pub fn author_values(data: &RecordData) -> impl Iterator<Item = &Value> {
    values(data, &AUTHOR_FIELDS)
}

/// Returns the values of all time fields, the preferred first, of any type.
pub fn authored_values(data: &RecordData) -> impl Iterator<Item = &Value> {
    values(data, &AUTHORED_FIELDS)
}

/// Returns the value of a field of this name: an exact match, or else one that ignores case and separators.
pub fn field_named<'a>(data: &'a RecordData, name: &str) -> Option<&'a Value> {
    data.get(name)
        .or_else(|| data.iter().find(|(field, _)| is_same_name(field, name)).map(|(_, value)| value))
}

/// Returns true if two names are equal apart from case and separators.
pub fn is_same_name(one: &str, other: &str) -> bool {
    letters_of(one).eq(letters_of(other))
}

fn letters_of(name: &str) -> impl Iterator<Item = u8> {
    name.bytes().filter(|byte| !is_separator(*byte)).map(|byte| byte.to_ascii_lowercase())
}

fn texts<'a>(data: &'a RecordData, list: &'static FieldList) -> impl Iterator<Item = &'a str> {
    values(data, list).filter_map(Value::as_str).filter(|text| !text.trim().is_empty())
}

fn values<'a>(data: &'a RecordData, list: &'static FieldList) -> impl Iterator<Item = &'a Value> {
    let wrapped = std::iter::once_with(|| exact(data, &WRAPPERS)).flatten().filter_map(Value::as_object);
    std::iter::once(data).chain(wrapped).flat_map(move |fields| {
        exact(fields, list).chain(std::iter::once_with(move || similar(fields, list)).flatten())
    })
}

/// Returns the values of fields with these names, in the order of the list.
fn exact<'a>(fields: &'a RecordData, list: &'static FieldList) -> impl Iterator<Item = &'a Value> {
    // Most records have few fields, of which none is in the list, so that no name of it has to be looked up.
    let may_have = fields.len() > MAX_FIELDS_COMPARED || fields.keys().any(|field| list.may_have(field));
    let names = if may_have { list.names } else { &[] };
    names.iter().filter_map(|name| fields.get(*name))
}

/// Returns the values of fields with almost these names, in the order of the list.
fn similar<'a>(fields: &'a RecordData, list: &FieldList) -> Vec<&'a Value> {
    let rank = |field: &str| list.names.iter().position(|name| *name != field && is_same_name(field, name));
    let found = fields.iter().take(MAX_FIELDS_COMPARED).filter(|(field, _)| list.may_have(field));
    let mut found: Vec<_> = found.filter_map(|(field, value)| Some((rank(field)?, value))).collect();
    found.sort_by_key(|(rank, _)| *rank);
    found.into_iter().map(|(_, value)| value).collect()
}

/// Returns true for `2026-04-01` with or without a time. Other formats stay in the record's text.
fn looks_like_a_date(text: &str) -> bool {
    let mut bytes = text.bytes();
    let day = [b'0', b'0', b'0', b'0', b'-', b'0', b'0', b'-', b'0', b'0'];
    day.iter().all(|shape| match bytes.next() {
        Some(byte) if *shape == b'0' => byte.is_ascii_digit(),
        other => other == Some(*shape),
    }) && text.len() <= 40
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn data(value: Value) -> RecordData {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn the_best_title_field_wins_over_the_first() {
        assert_eq!(own_title(&data(json!({"name": "n", "title": "t"}))), Some("t"));
        assert_eq!(own_title(&data(json!({"title": "  ", "subject": "s"}))), Some("s"));
        assert_eq!(own_title(&data(json!({"title": 7, "body": "b"}))), None);
    }

    #[test]
    fn a_link_that_cannot_be_opened_is_skipped() {
        let record = data(json!({"url": "/api/1", "html_url": "https://example.com/1"}));
        assert_eq!(own_link(&record).unwrap().as_str(), "https://example.com/1");
        assert_eq!(own_link(&data(json!({"url": "urn:x"}))), None);
    }

    #[test]
    fn names_are_known_in_any_case_and_in_wrappers() {
        assert_eq!(own_title(&data(json!({"Title": "t", "Name": "n"}))), Some("t"));
        assert_eq!(own_title(&data(json!({"Display Name": "n"}))), Some("n"));
        assert_eq!(own_link(&data(json!({"URL": "https://x.test/1"}))).unwrap().as_str(), "https://x.test/1");
        assert_eq!(authored_at(&data(json!({"createdAt": "2026-04-01"}))), Some("2026-04-01"));
        assert_eq!(authored_at(&data(json!({"modifiedTime": "2026-04-01"}))), Some("2026-04-01"));
        let nested = data(json!({"id": 1, "snippet": {"title": "t", "publishedAt": "2026-04-01"}}));
        assert_eq!((own_title(&nested), authored_at(&nested)), (Some("t"), Some("2026-04-01")));
        assert_eq!(own_title(&data(json!({"name": "n", "fields": {"title": "t"}}))), Some("n"));
        assert_eq!(own_title(&data(json!({"author": {"name": "n"}}))), None);
    }

    #[test]
    fn an_authored_time_is_shaped_like_a_date() {
        assert_eq!(
            authored_at(&data(json!({"date": "yesterday", "created_at": "2026-04-01T00:00:00Z"}))),
            Some("2026-04-01T00:00:00Z")
        );
        assert_eq!(authored_at(&data(json!({"date": "2026-04-01"}))), Some("2026-04-01"));
        assert_eq!(authored_at(&data(json!({"date": "2026/04/01"}))), None);
        assert_eq!(authored_at(&data(json!({"date": 1_710_000_000}))), None);
    }
}
