//! Value types observed in a field, as a bit set.

use fetchwell_core::record::{Numeric, parse_time};
use jiff::civil::Date;
use serde_json::Value;

/// Maximum number of fields of one stream that are tracked. A stream with more uses a map's keys as field names.
pub const MAX_FIELDS: usize = 1_000;

/// Bit set of value types.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Kinds(u16);

/// Bit set in addition to that of a string, for a string that is a number (as all numbers of a CSV file are).
const NUMBER_AS_TEXT: u16 = 256;

/// Bits of strings that are times or dates.
const TIMES: u16 = 2 | 128;

/// Types whose values can be grouped by time.
pub const TIME_TYPES: [&str; 2] = ["date-time", "date"];

/// Types whose values can be added up.
pub const NUMBER_TYPES: [&str; 2] = ["number", "integer"];

const NAMES: [(u16, &str); 8] = [
    (1, "string"),
    (2, "date-time"),
    (128, "date"),
    (4, "integer"),
    (8, "number"),
    (16, "boolean"),
    (32, "array"),
    (64, "object"),
];

impl Kinds {
    /// Returns the type of one value; `null` has none.
    pub(crate) fn from_value(value: &Value) -> Self {
        Self(match value {
            Value::Null => 0,
            Value::String(text) if is_time(text) => 2,
            Value::String(text) if is_day(text) => 128,
            Value::String(text) if Numeric::of_text(text).is_some() => 1 | NUMBER_AS_TEXT,
            Value::String(_) => 1,
            Value::Number(number) if number.is_f64() => 8,
            Value::Number(_) => 4,
            Value::Bool(_) => 16,
            Value::Array(_) => 32,
            Value::Object(_) => 64,
        })
    }

    /// Creates the kinds of stored bits.
    pub fn from_bits(bits: i64) -> Self {
        Self(u16::try_from(bits).unwrap_or_default())
    }

    /// Returns the kinds as bits to be stored.
    pub fn bits(self) -> i64 {
        i64::from(self.0)
    }

    pub(crate) fn merge(&mut self, other: Self) {
        self.0 |= other.0;
    }

    pub(crate) fn covers(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns true if a string was a number. Its type is `string` all the same.
    pub(super) fn has_number_as_text(self) -> bool {
        self.0 & NUMBER_AS_TEXT != 0
    }

    /// Returns true if a string was a time or date. Beside other strings, its type is `string` all the same.
    pub(super) fn has_time(self) -> bool {
        self.0 & TIMES != 0
    }

    /// Returns the names of the types. `integer` is left out beside `number`; `date-time` and `date` are left out if
    /// any string was neither.
    pub(crate) fn types(self) -> Vec<String> {
        let has = |bit: u16| self.0 & bit != 0;
        let hidden = |bit: u16| match bit {
            bit if bit & TIMES != 0 => has(1),
            4 => has(8),
            _ => false,
        };
        NAMES
            .iter()
            .filter(|(bit, _)| has(*bit) && !hidden(*bit))
            .map(|(_, name)| (*name).to_owned())
            .collect()
    }
}

/// Returns true if a text is a time, with or without a zone. The shape is checked before parsing, since most texts are none.
pub fn is_time(text: &str) -> bool {
    parse_time(text).is_some()
}

/// Returns true if a text is a date such as `2026-04-01`.
pub fn is_day(text: &str) -> bool {
    text.len() == 10 && text.as_bytes().get(4) == Some(&b'-') && text.parse::<Date>().is_ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn kinds_add_up() {
        let of = |values: &[Value]| {
            let mut kinds = Kinds::default();
            values.iter().for_each(|value| kinds.merge(Kinds::from_value(value)));
            kinds.types().join(" ")
        };
        assert_eq!(of(&[json!("2026-04-01T00:00:00Z"), json!(null)]), "date-time");
        assert_eq!(of(&[json!("2026-04-01T00:00:00+02:00"), json!("soon")]), "string");
        assert_eq!(of(&[json!(1), json!(2.5)]), "number");
        assert_eq!(of(&[json!(1), json!([]), json!({})]), "integer array object");
        assert_eq!(of(&[json!("2026-04-01")]), "date");
        assert_eq!(of(&[json!("2026-04-01T10:00"), json!("2026-04-01T10:00:00Z")]), "date-time");
        assert_eq!(of(&[json!("2026-04-01"), json!("2026-13-01")]), "string");
        assert_eq!(of(&[json!("2026-04-01 is a day like others")]), "string");
    }
    #[test]
    fn a_number_as_text_is_a_string_that_can_be_added_up() {
        let mut kinds = Kinds::from_value(&json!("n/a"));
        assert!(!kinds.has_number_as_text());
        kinds.merge(Kinds::from_value(&json!("12.50")));
        assert!(kinds.has_number_as_text() && Kinds::from_bits(kinds.bits()) == kinds);
        assert_eq!(kinds.types(), ["string"]);
    }
}
