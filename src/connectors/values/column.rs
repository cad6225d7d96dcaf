//! The type of a column of a table, by a sample of its values.
//!
//! A type is that of every value of the sample. A later value that is not of it stays text, so nothing is lost.

use serde_json::Value;

use super::numbers::{Amount, DecimalMark};
use super::times::{DateOrder, read_time};

/// Values that stand for none. They say nothing of their column, and all but the empty one stay as they are.
const BLANKS: [&str; 8] = ["", "-", "n/a", "na", "null", "none", "nan", "#n/a"];

/// How a table writes what reads in two ways.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) struct Locale {
    mark: DecimalMark,
    order: DateOrder,
}

/// A type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Column {
    Text,
    Boolean,
    /// Amounts of one unit, a currency or `%`; empty for plain numbers.
    Number(Locale, &'static str),
    Time(Locale),
}

impl Locale {
    /// Returns the locale of a table with semicolons between its fields, as programs write it where the comma is the
    /// decimal mark, or of any other table.
    pub(in super::super) fn of_table(has_semicolons: bool) -> Self {
        if has_semicolons {
            Self { mark: DecimalMark::Comma, order: DateOrder::DayFirst }
        } else {
            Self { mark: DecimalMark::Point, order: DateOrder::MonthFirst }
        }
    }
}

impl Column {
    /// Returns the type that all values of a sample have.
    pub(in super::super) fn of_sample<'a>(values: impl Iterator<Item = &'a str>, locale: Locale) -> Self {
        let values: Vec<&str> = values.map(str::trim).filter(|value| !is_blank(value)).collect();
        if values.is_empty() {
            return Self::Text;
        }
        if values.iter().all(|value| read_boolean(value).is_some()) {
            return Self::Boolean;
        }
        Self::of_numbers(&values, locale).or_else(|| Self::of_times(&values, locale)).unwrap_or(Self::Text)
    }

    fn of_numbers(values: &[&str], locale: Locale) -> Option<Self> {
        let amounts: Vec<Amount<'_>> =
            values.iter().map(|value| Amount::read(value)).collect::<Option<_>>()?;
        let unit = amounts.first()?.unit;
        // Amounts in two currencies do not add up.
        let has_one_unit = amounts.iter().all(|amount| amount.unit == unit);
        let mark = amounts.iter().find_map(|amount| amount.only_mark()).unwrap_or(locale.mark);
        let reads = has_one_unit && amounts.iter().all(|amount| amount.value(mark).is_some());
        reads.then_some(Self::Number(Locale { mark, ..locale }, unit))
    }

    fn of_times(values: &[&str], locale: Locale) -> Option<Self> {
        let other = match locale.order {
            DateOrder::DayFirst => DateOrder::MonthFirst,
            DateOrder::MonthFirst => DateOrder::DayFirst,
        };
        let reads = |order: &DateOrder| values.iter().all(|value| read_time(value, *order).is_some());
        let order = [locale.order, other].into_iter().find(reads)?;
        Some(Self::Time(Locale { order, ..locale }))
    }

    /// Returns a field as a value of the column.
    pub(in super::super) fn value(self, field: &str) -> Value {
        let read = match self {
            Self::Text => None,
            _ if field.trim().is_empty() => Some(Value::Null),
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
        let column = Column::of_sample(["$1", "$2.50"].into_iter(), Locale::of_table(false));
        let typed = ["$3", "5", "€5", "5%"].map(|value| column.value(value));
        assert_eq!(json!(typed), json!([3, "5", "€5", "5%"]));
    }

    #[track_caller]
    fn check(has_semicolons: bool, values: &[&str], expect: &Value) {
        let column = Column::of_sample(values.iter().copied(), Locale::of_table(has_semicolons));
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
        check(false, &["", ""], &json!(["", ""]));
        check(false, &["2026-04-01", "01.04.2026 10:00"], &json!(["2026-04-01", "2026-04-01T10:00:00Z"]));
    }

    #[test]
    fn what_reads_in_two_ways_is_decided_by_the_others() {
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
        let column = Column::of_sample(["1", "2"].into_iter(), Locale::of_table(false));
        assert_eq!(column.value("later"), json!("later"));
        assert_eq!(column.value("007"), json!("007"));
    }
}
