//! Filters, compiled for many records.
//!
//! A `Predicate` is a filter with values that are parsed once and then compared with many records. Numbers and texts
//! compare by meaning, since values in a URL and in CSV files are always text.

use std::cmp::Ordering;

use fetchwell_core::record::{
    Capability, FieldDetail, FieldPath, Numeric, Scalar, SortValue, StreamDetail, comparable, ordered,
};
use fetchwell_source::manifest::kinds::{NUMBER_TYPES, TIME_TYPES, is_day};
use fetchwell_source::{Condition, Filter, QueryFault, RangeOperator, SourceError, Test};
use serde_json::Value;

use super::address::is_same_address;
use super::field_reader::{FieldReader, FieldValues};

/// Conditions of a filter, each with the index of its field among the values that are read.
#[derive(Debug)]
pub(crate) struct Predicate(Vec<(usize, ParsedTest)>);

/// Test of a condition with parsed values.
#[derive(Debug)]
pub(super) enum ParsedTest {
    Equal(Vec<Comparand>),
    Range(RangeOperator, Comparand),
    /// Text in lower case.
    Contains(String),
    /// Text in lower case.
    Prefix(String),
    Exists(bool),
}

/// Parsed right-hand side of a condition.
#[derive(Debug)]
pub(super) enum Comparand {
    Bool(bool),
    /// Number, or `None` if JSON cannot represent it.
    Number(Option<Numeric>),
    Text(TextComparand),
}

/// Text to compare with. A value in a URL is text, whatever type it stands for.
#[derive(Debug)]
pub(super) struct TextComparand {
    pub(super) text: String,
    /// Text by which a range orders: a timestamp in UTC, otherwise the text itself.
    pub(super) ordered: String,
    number: Option<Numeric>,
    boolean: Option<bool>,
}

impl Predicate {
    pub(crate) fn new(filter: &Filter, reader: &mut FieldReader) -> Self {
        Self(
            filter
                .0
                .iter()
                .map(|Condition { field, test }| (reader.select(field), ParsedTest::new(test)))
                .collect(),
        )
    }

    /// Returns true if a record with these values passes. A missing field fails every condition but `exists: false`.
    pub(crate) fn passes(&self, values: &FieldValues) -> bool {
        self.0.iter().all(|(at, test)| test.passes(values.get(*at).and_then(Option::as_ref)))
    }

    /// Returns the tests, each with the place of its field among the values that are read.
    pub(super) fn tests(&self) -> impl Iterator<Item = (usize, &ParsedTest)> {
        self.0.iter().map(|(at, test)| (*at, test))
    }
}

impl ParsedTest {
    fn new(test: &Test) -> Self {
        match test {
            Test::Equal(value) => Self::Equal(vec![Comparand::new(value)]),
            Test::In(values) => Self::Equal(values.iter().map(Comparand::new).collect()),
            Test::Range(operator, value) => Self::Range(*operator, Comparand::new(value)),
            Test::Contains(text) => Self::Contains(text.to_lowercase()),
            Test::Prefix(text) => Self::Prefix(text.to_lowercase()),
            Test::Exists(exists) => Self::Exists(*exists),
        }
    }

    /// Returns true if a record with this value of the field passes.
    pub(super) fn passes(&self, value: Option<&Value>) -> bool {
        match (self, value) {
            (Self::Exists(exists), value) => value.is_some_and(|value| !value.is_null()) == *exists,
            (_, None) => false,
            (_, Some(Value::Array(items))) => items.iter().any(|item| self.passes(Some(item))),
            (Self::Equal(wanted), Some(value)) => wanted.iter().any(|wanted| wanted.equals(value)),
            (Self::Range(operator, bound), Some(value)) => {
                bound.compare(value).is_some_and(|ordering| accepts(*operator, ordering))
            }
            (Self::Contains(part), Some(value)) => lowercase(value).is_some_and(|text| text.contains(part)),
            (Self::Prefix(start), Some(value)) => {
                lowercase(value).is_some_and(|text| text.starts_with(start))
            }
        }
    }
}

/// Returns true if a value with an order relative to a bound is in the range.
pub(super) fn accepts(operator: RangeOperator, ordering: Ordering) -> bool {
    match operator {
        RangeOperator::GreaterOrEqual => ordering.is_ge(),
        RangeOperator::Greater => ordering.is_gt(),
        RangeOperator::LessOrEqual => ordering.is_le(),
        RangeOperator::Less => ordering.is_lt(),
    }
}

/// Returns a text or a number in lower case.
fn lowercase(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.to_lowercase()),
        Value::Number(number) => Some(number.to_string()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

impl Comparand {
    fn new(value: &Scalar) -> Self {
        match value {
            Scalar::Bool(value) => Self::Bool(*value),
            Scalar::Number(number) => Self::Number(Numeric::of_number(number)),
            Scalar::Text(text) => Self::Text(TextComparand {
                ordered: ordered(text),
                number: Numeric::of_text(text),
                boolean: text.parse().ok(),
                text: text.clone(),
            }),
        }
    }

    /// Returns true if a field's value equals this one. A day equals every time on it.
    fn equals(&self, value: &Value) -> bool {
        match (self, value) {
            (Self::Text(wanted), Value::String(text)) => wanted.equals(text),
            _ => self.compare(value).is_some_and(Ordering::is_eq),
        }
    }

    /// Compares a field's value with this one; returns `None` if their types do not compare. A number and a text that
    /// is a number compare as numbers, because values in a URL and in CSV files are always text.
    fn compare(&self, value: &Value) -> Option<Ordering> {
        match (self, value) {
            (Self::Bool(wanted), Value::Bool(value)) => Some(value.cmp(wanted)),
            (Self::Bool(wanted), Value::String(text)) => {
                (text.parse() == Ok(*wanted)).then_some(Ordering::Equal)
            }
            (Self::Number(wanted), value) => Some(Numeric::from_value(value)?.cmp(wanted.as_ref()?)),
            (Self::Text(wanted), Value::Bool(value)) => Some(value.cmp(&wanted.boolean?)),
            (Self::Text(wanted), Value::Number(number)) => {
                Some(Numeric::of_number(number)?.cmp(wanted.number.as_ref()?))
            }
            (Self::Text(wanted), Value::String(text)) => wanted.order(text),
            (Self::Bool(_) | Self::Text(_), _) => None,
        }
    }
}

impl TextComparand {
    /// Returns true if two texts are identical, the same time, or the same address: `01234` does not equal `1234`. A day
    /// equals every time on it. Times without a zone are in UTC.
    fn equals(&self, text: &str) -> bool {
        if *text == self.text {
            return true;
        }
        match comparable(text) {
            Some(time) if is_day(&self.text) => time.starts_with(&self.text),
            Some(time) => time == self.ordered,
            None => is_same_address(text, &self.text),
        }
    }

    /// Compares two texts in a range. In a range of numbers, texts that are not numbers never match, except timestamps
    /// and dates, because `2026` can be the start of a range of days.
    fn order(&self, text: &str) -> Option<Ordering> {
        if *text == self.text {
            return Some(Ordering::Equal);
        }
        if let Some(wanted) = &self.number
            && let Some(number) = Numeric::of_text(text)
        {
            return Some(number.cmp(wanted));
        }
        let time = comparable(text);
        if self.number.is_some() && time.is_none() && !is_day(text) {
            return None;
        }
        Some(time.as_deref().unwrap_or(text).cmp(&self.ordered))
    }
}

/// Returns the conditions on the cursor field that SQLite can apply to sort values: every record that passes the
/// filter is inside them. Texts that are numbers or booleans are left out, because they also match values of those
/// types, which sort separately from texts. Of equal values, only times and days are used: a text can equal an address
/// that is written otherwise.
pub(crate) fn bounds(filter: &Filter, cursor_field: &str) -> Vec<(RangeOperator, SortValue)> {
    let mut bounds = Vec::new();
    for Condition { test, .. } in filter.0.iter().filter(|condition| condition.field == cursor_field) {
        let (Test::Equal(value) | Test::Range(_, value)) = test else { continue };
        let Comparand::Text(TextComparand { text, number: None, boolean: None, .. }) = Comparand::new(value)
        else {
            continue;
        };
        // Earlier releases stored times without a zone as they were written, so all times of a day are inside.
        let day = |text: &str| text.get(..10).map(str::to_owned);
        // A text such as `2026-04-01T` is compared with the times of its day.
        let begins_with_day = || day(&text).filter(|day| text.len() > 10 && is_day(day));
        let day_of_time = comparable(&text).and_then(|time| day(&time)).or_else(begins_with_day);
        let first = |day: &str| (RangeOperator::GreaterOrEqual, SortValue::Text(day.to_owned()));
        // All times of a day begin with it, and `~` sorts after `T`.
        let last = |day: &str| (RangeOperator::Less, SortValue::Text(format!("{day}~")));
        match (test, day_of_time) {
            (Test::Range(operator, _), None) => bounds.push((*operator, SortValue::text(&text))),
            (Test::Range(RangeOperator::Greater | RangeOperator::GreaterOrEqual, _), Some(day)) => {
                bounds.push(first(&day));
            }
            (Test::Range(..), Some(day)) => bounds.push(last(&day)),
            (_, Some(day)) => bounds.extend([first(&day), last(&day)]),
            (_, None) if is_day(&text) => bounds.extend([first(&text), last(&text)]),
            (_, None) => {}
        }
    }
    bounds
}

/// Refuses a filter on fields that no stream has, or that one does not let be filtered in that way.
pub(crate) fn check(filter: &Filter, streams: &[&StreamDetail]) -> Result<(), SourceError> {
    for Condition { field, test } in &filter.0 {
        let missing = match test {
            Test::Equal(_) | Test::In(_) | Test::Contains(_) | Test::Prefix(_) => {
                missing_capability(streams, field, Capability::Equal, "filtered by value")
            }
            Test::Range(..) => missing_capability(streams, field, Capability::Range, "filtered by range"),
            Test::Exists(_) if streams.iter().any(|stream| stream.field(field).is_some()) => None,
            Test::Exists(_) => missing_capability(streams, field, Capability::Equal, "filtered by value"),
        };
        if let Some((problem, hint)) = missing {
            return Err(SourceError::InvalidQuery { fault: QueryFault::InvalidFilter, problem, hint });
        }
    }
    Ok(())
}

/// Returns true for the path to a value inside of an object or a list. A stream describes its fields, not these values.
fn is_inside(stream: &StreamDetail, path: &str) -> bool {
    let Ok(path) = path.parse::<FieldPath>() else { return false };
    let root = stream.field(path.root()).filter(|_| !path.is_whole_field());
    root.is_some_and(|root| {
        root.types.is_empty() || root.types.iter().any(|kind| matches!(kind.as_str(), "array" | "object"))
    })
}

/// Returns true if records of a stream can have a value at a path.
pub(super) fn has_field(stream: &StreamDetail, path: &str) -> bool {
    stream.field(path).is_some() || is_inside(stream, path)
}

/// Returns problem and hint if a field of some streams of one name does not have a capability, or `None` if it does. A stream without
/// the field, or with values of other types alone, has records without a value, unless that is true for all. The hint lists the fields
/// that have the capability.
pub(super) fn missing_capability(
    streams: &[&StreamDetail],
    field: &str,
    capability: Capability,
    what: &str,
) -> Option<(String, String)> {
    let can = |detail: &&FieldDetail| detail.capabilities.contains(&capability);
    let is_known = streams.iter().any(|stream| has_field(stream, field));
    let is_possible = streams.iter().filter_map(|stream| stream.field(field)).any(|detail| can(&detail));
    let problem = streams.iter().find_map(|stream| match stream.field(field) {
        Some(detail) if can(&detail) || (is_possible && is_of_other_types(detail, capability)) => None,
        Some(_) => Some(format!("field `{field}` of stream `{}` cannot be {what}", stream.name)),
        None if is_known => None,
        None => Some(format!("stream `{}` has no field `{field}`", stream.name)),
    })?;
    let fields = streams.iter().flat_map(|stream| stream.fields.iter().filter(can));
    let mut fit: Vec<&str> = Vec::new();
    for name in fields.map(|detail| detail.name.as_str()) {
        if fit.len() < 20 && !fit.contains(&name) {
            fit.push(name);
        }
    }
    let stream = streams.first().map(|stream| stream.name.as_str()).unwrap_or_default();
    let hint = match fit.as_slice() {
        [] => format!("No field of stream `{stream}` can be {what}."),
        fit => format!("Fields that can be {what}: {}.", fit.join(", ")),
    };
    Some((problem, hint))
}

/// Returns true if the type of a field is the reason for which it cannot be added up or grouped by time.
fn is_of_other_types(detail: &FieldDetail, capability: Capability) -> bool {
    let wanted = match capability {
        Capability::GroupByTime => TIME_TYPES,
        Capability::Sum => NUMBER_TYPES,
        _ => return false,
    };
    !detail.types.is_empty() && !detail.types.iter().any(|kind| wanted.contains(&kind.as_str()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(filter: &Value, record: &Value, expect: bool) {
        let mut reader = FieldReader::default();
        let predicate = Predicate::new(&serde_json::from_value(filter.clone()).unwrap(), &mut reader);
        let mut values = Vec::new();
        reader.read(&record.to_string(), &mut values);
        assert_eq!(predicate.passes(&values), expect, "{filter} {record}");
    }

    #[test]
    fn values_compare_by_what_they_mean() {
        check(&json!({"a": "x"}), &json!({"a": "x"}), true);
        check(&json!({"a": "x"}), &json!({"a": "X"}), false);
        check(&json!({"a": "x"}), &json!({"b": "x"}), false);
        check(&json!({"a": 21}), &json!({"a": 21.0}), true);
        check(&json!({"a": "21"}), &json!({"a": 21}), true);
        check(&json!({"a": 21}), &json!({"a": "21"}), true);
        check(&json!({"a": {"gt": 9}}), &json!({"a": "10"}), true);
        check(&json!({"a": "true"}), &json!({"a": true}), true);
        check(&json!({"a": true}), &json!({"a": 1}), false);
        check(&json!({"a": ""}), &json!({"a": null}), false);
        check(
            &json!({"t": {"gte": "2026-04-01T00:00:00Z"}}),
            &json!({"t": "2026-04-01T01:00:00+02:00"}),
            false,
        );
        check(&json!({"t": "2026-04-01T00:00:00.000Z"}), &json!({"t": "2026-04-01T02:00:00+02:00"}), true);
        check(
            &json!({"t": {"gte": "2026-04-01", "lt": "2026-04-02"}}),
            &json!({"t": "2026-04-01T23:59:59Z"}),
            true,
        );
        check(&json!({"a": "x", "n": {"lt": 2}}), &json!({"n": 1, "a": "x"}), true);
        check(&json!({"a": "x", "n": {"lt": 2}}), &json!({"n": 2, "a": "x"}), false);
    }

    #[test]
    fn a_list_passes_by_any_of_its_items() {
        let record = json!({"labels": ["Work", "later"], "n": [1, 20], "author": {"name": "Ann"}, "none": null,
            "lines": [{"sku": "a", "price": 3}, {"sku": "b", "price": 30}], "empty": []});
        check(&json!({"labels": "Work"}), &record, true);
        check(&json!({"labels": ["Home", "later"]}), &record, true);
        check(&json!({"labels": "work"}), &record, false);
        check(&json!({"n": {"gt": 19}}), &record, true);
        check(&json!({"author.name": "Ann"}), &record, true);
        check(&json!({"lines.price": {"gte": 30}, "lines[].sku": "b"}), &record, true);
        check(&json!({"lines[0].price": {"gte": 30}}), &record, false);
        check(&json!({"labels": {"contains": "OR"}, "author.name": {"prefix": "an"}}), &record, true);
        check(&json!({"labels": {"prefix": "ork"}}), &record, false);
        check(
            &json!({"none": {"exists": false}, "author.age": {"exists": false}, "n": {"exists": true}}),
            &record,
            true,
        );
        check(&json!({"none": {"exists": true}}), &record, false);
        check(&json!({"empty": ""}), &record, false);
    }

    #[test]
    fn a_day_equals_the_times_on_it() {
        check(&json!({"t": "2026-04-01"}), &json!({"t": "2026-04-01T23:59:59Z"}), true);
        for (time, expect) in
            [("2026-04-01T23:59:59", true), ("2026-04-01 09:30", true), ("2026-04-01 is a day", false)]
        {
            check(&json!({"t": "2026-04-01"}), &json!({"t": time}), expect);
        }
        let space = json!({"t": "2026-04-01 12:00:00"});
        for (bound, expect) in [
            ("2026-04-01T10:00:00", true),
            ("2026-04-01T12:00:00Z", true),
            ("2026-04-01 12:00", true),
            ("2026-04-01T15:00:00+02:00", false),
        ] {
            check(&json!({"t": {"gte": bound}}), &space, expect);
        }
        check(&json!({"t": "2026-04-01"}), &json!({"t": "2026-04-02T01:00:00+02:00"}), true);
        check(&json!({"t": "2026-04-01"}), &json!({"t": "2026-04-01T01:00:00+02:00"}), false);
        check(&json!({"t": "2026-04-01"}), &json!({"t": "2026-04-01"}), true);
        check(&json!({"t": ["2026-03-31", "2026-04-01"]}), &json!({"t": "2026-04-01T10:00:00Z"}), true);
        check(&json!({"t": "2026-04-01T00:00:00Z"}), &json!({"t": "2026-04-01"}), false);
    }

    #[test]
    fn texts_are_equal_as_they_are_written() {
        check(&json!({"sid": "1234567890123456780"}), &json!({"sid": "1234567890123456780"}), true);
        check(&json!({"sid": "1234567890123456780"}), &json!({"sid": "1234567890123456781"}), false);
        check(&json!({"zip": "01234"}), &json!({"zip": "1234"}), false);
        check(&json!({"zip": "1000"}), &json!({"zip": "1e3"}), false);
        check(&json!({"zip": 1000}), &json!({"zip": "1e3"}), true);
        check(&json!({"zip": "01234"}), &json!({"zip": 1234}), true);
        check(&json!({"flag": true}), &json!({"flag": "true"}), true);
    }

    #[test]
    fn whole_numbers_compare_exactly() {
        check(&json!({"v": i64::MAX}), &json!({"v": i64::MAX}), true);
        check(&json!({"v": i64::MAX}), &json!({"v": i64::MAX - 1}), false);
        check(&json!({"v": {"gt": i64::MAX - 1}}), &json!({"v": i64::MAX}), true);
        check(&json!({"v": {"gt": i64::MAX}}), &json!({"v": u64::MAX}), true);
        check(&json!({"v": {"gt": "1234567890123456780"}}), &json!({"v": "1234567890123456781"}), true);
        check(
            &json!({"v": {"lt": "1234567890123456781"}}),
            &json!({"v": 1_234_567_890_123_456_780_i64}),
            true,
        );
    }

    #[test]
    fn a_range_of_numbers_has_no_other_texts_in_it() {
        for text in ["n/a", "", "-", "~"] {
            for range in [json!({"gt": 10}), json!({"lt": 10}), json!({"gte": "10"}), json!({"lte": "10"})] {
                check(&json!({"amount": range}), &json!({"amount": text}), false);
            }
        }
        check(&json!({"amount": {"gt": "9"}}), &json!({"amount": "10"}), true);
        check(&json!({"name": {"gt": "n"}}), &json!({"name": "n/a"}), true);
        // `2026` is a number, while the days of that year are not.
        check(&json!({"day": {"gte": "2026"}}), &json!({"day": "2026-04-01"}), true);
        check(&json!({"at": {"lt": "2026"}}), &json!({"at": "2026-04-01T00:00:00Z"}), false);
    }

    fn any_scalar() -> impl Strategy<Value = Value> {
        prop_oneof![
            (-3i64..3).prop_map(Value::from),
            (-3i64..3).prop_map(|n| json!(n.to_string())),
            any::<bool>().prop_map(Value::from),
            any::<bool>().prop_map(|boolean| json!(boolean.to_string())),
            "[0-9a-z./-]{0,4}".prop_map(Value::from),
            (0..48).prop_map(|hour| json!(format!("2026-04-01T{:02}:00:00+{:02}:00", hour % 24, hour / 24))),
            (1..4).prop_map(|day| json!(format!("2026-04-0{day}"))),
        ]
    }

    proptest! {
        #[test]
        fn passing_values_are_inside_the_bounds(wanted in any_scalar(), value in any_scalar(), operator in 0_usize..5) {
            let filter = match operator {
                0 => json!({"v": wanted}),
                other => json!({"v": {["gte", "gt", "lte", "lt"][other - 1]: wanted}}),
            };
            let filter: Filter = serde_json::from_value(filter).unwrap();
            let predicate = Predicate::new(&filter, &mut FieldReader::default());
            let sorted = SortValue::from_value(Some(&value));
            let inside = bounds(&filter, "v").iter().all(|(operator, bound)| match operator {
                RangeOperator::GreaterOrEqual => sorted >= *bound,
                RangeOperator::Greater => sorted > *bound,
                RangeOperator::LessOrEqual => sorted <= *bound,
                RangeOperator::Less => sorted < *bound,
            });
            prop_assert!(inside || !predicate.passes(&vec![Some(value)]));
        }
    }
}
