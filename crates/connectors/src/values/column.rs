//! The type of a table's column, detected from a sample of its values.
//!
//! A column has a type if every value of the sample has it. A later value of another type stays text, so that nothing
//! is lost.

use serde_json::Value;

use super::numbers::{Amount, DecimalMark};
use super::times::{DateOrder, read_time};

/// Placeholders for a missing value. They are ignored when the type is detected, and all but the empty one stay text.
const BLANKS: [&str; 8] = ["", "-", "n/a", "na", "null", "none", "nan", "#n/a"];

/// The interpretation of ambiguous numbers and dates in a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Locale {
    mark: DecimalMark,
    order: DateOrder,
}

/// The type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Column {
    Text,
    Boolean,
    /// Amounts of one unit, which is a currency or `%`, or empty for plain numbers.
    Number(Locale, &'static str),
    Time(Locale),
}

impl Locale {
    /// Returns the locale of a table with semicolons between its fields, which programs write where the comma is the
    /// decimal mark, or of any other table.
    pub(crate) fn for_table(has_semicolons: bool) -> Self {
        if has_semicolons {
            Self { mark: DecimalMark::Comma, order: DateOrder::DayMonthYear }
        } else {
            Self { mark: DecimalMark::Point, order: DateOrder::MonthDayYear }
        }
    }
}

impl Column {
    /// Detects the type that all values of a sample have.
    pub(crate) fn from_sample<'a>(values: impl Iterator<Item = &'a str>, locale: Locale) -> Self {
        let values: Vec<&str> = values.map(str::trim).filter(|value| !is_blank(value)).collect();
        if values.is_empty() {
            return Self::Text;
        }
        if values.iter().all(|value| read_boolean(value).is_some()) {
            return Self::Boolean;
        }
        Self::from_numbers(&values, locale)
            .or_else(|| Self::from_times(&values, locale))
            .unwrap_or(Self::Text)
    }

    /// Returns true if a field has the type of a column that is not text, or is a placeholder for a missing value.
    pub(crate) fn accepts(self, field: &str) -> bool {
        match self {
            _ if is_blank(field.trim()) => true,
            Self::Text => false,
            Self::Boolean | Self::Number(..) => !self.value(field).is_string(),
            Self::Time(locale) => read_time(field, locale.order).is_some(),
        }
    }

    fn from_numbers(values: &[&str], locale: Locale) -> Option<Self> {
        let amounts: Vec<Amount<'_>> =
            values.iter().map(|value| Amount::read(value)).collect::<Option<_>>()?;
        let unit = amounts.first()?.unit;
        // Amounts in two currencies cannot be added up.
        let has_one_unit = amounts.iter().all(|amount| amount.unit == unit);
        let mark = amounts.iter().find_map(|amount| amount.only_mark()).unwrap_or(locale.mark);
        let reads = has_one_unit && amounts.iter().all(|amount| amount.value(mark).is_some());
        reads.then_some(Self::Number(Locale { mark, ..locale }, unit))
    }

    fn from_times(values: &[&str], locale: Locale) -> Option<Self> {
        let other = match locale.order {
            DateOrder::DayMonthYear => DateOrder::MonthDayYear,
            DateOrder::MonthDayYear | DateOrder::YearMonthDay => DateOrder::DayMonthYear,
        };
        let order = [locale.order, other]
            .into_iter()
            .find(|order| values.iter().all(|value| read_time(value, *order).is_some()))?;
        Some(Self::Time(Locale { order, ..locale }))
    }

    /// Converts a field to a value of the column's type.
    pub(crate) fn value(self, field: &str) -> Value {
        let read = match self {
            _ if field.trim().is_empty() => Some(Value::Null),
            Self::Text => None,
            Self::Boolean => read_boolean(field.trim()).map(Value::Bool),
            Self::Number(locale, unit) => Amount::read(field)
                .filter(|amount| amount.unit == unit)
                .and_then(|amount| amount.value(locale.mark)),
            Self::Time(locale) => read_time(field, locale.order).map(Value::String),
        };
        read.unwrap_or_else(|| Value::from(field))
    }
}

fn is_blank(value: &str) -> bool {
    BLANKS.iter().any(|blank| blank.eq_ignore_ascii_case(value))
}

fn read_boolean(text: &str) -> Option<bool> {
    match text {
        _ if text.eq_ignore_ascii_case("true") => Some(true),
        _ if text.eq_ignore_ascii_case("false") => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_later_amount_of_another_unit_stays_text() {
        let column = Column::from_sample(["$1", "$2.50"].into_iter(), Locale::for_table(false));
        let typed = ["$3", "5", "€5", "5%"].map(|value| column.value(value));
        assert_eq!(json!(typed), json!([3, "5", "€5", "5%"]));
    }

    #[track_caller]
    fn check(has_semicolons: bool, values: &[&str], expect: &Value) {
        let column = Column::from_sample(values.iter().copied(), Locale::for_table(has_semicolons));
        let typed: Vec<Value> = values.iter().map(|value| column.value(value)).collect();
        assert_eq!(Value::Array(typed), *expect, "{column:?}");
    }

    #[test]
    fn a_column_has_one_type() {
        check(false, &["1", "", "2"], &json!([1, null, 2]));
        check(false, &["1", "n/a", "2.5"], &json!([1, "n/a", 2.5]));
        check(false, &["TRUE", "false"], &json!([true, false]));
        check(false, &["1", "x"], &json!(["1", "x"]));
        check(false, &["12345", "01234"], &json!(["12345", "01234"]));
        check(false, &["$1", "€2"], &json!(["$1", "€2"]));
        check(false, &["", " "], &json!([null, null]));
        check(false, &["a", "", "n/a"], &json!(["a", null, "n/a"]));
        check(false, &["2026-04-01", "01.04.2026 10:00"], &json!(["2026-04-01", "2026-04-01T10:00:00Z"]));
    }

    #[test]
    fn ambiguous_values_follow_the_others_of_their_column() {
        check(false, &["1,234", "1.5"], &json!([1234, 1.5]));
        check(false, &["1.234", "1,5"], &json!([1234, 1.5]));
        check(false, &["1.234", "2.345"], &json!([1.234, 2.345]));
        check(true, &["1.234", "2.345"], &json!([1234, 2345]));
        check(true, &["1.5", "1.234"], &json!([1.5, 1.234]));
        check(false, &["03/04/2026", "13/04/2026"], &json!(["2026-04-03", "2026-04-13"]));
        check(false, &["03/04/2026"], &json!(["2026-03-04"]));
        check(true, &["03/04/2026"], &json!(["2026-04-03"]));
    }

    #[test]
    fn a_later_value_of_another_type_stays_text() {
        let column = Column::from_sample(["1", "2"].into_iter(), Locale::for_table(false));
        assert_eq!(column.value("later"), json!("later"));
        assert_eq!(column.value("007"), json!("007"));
    }
}
