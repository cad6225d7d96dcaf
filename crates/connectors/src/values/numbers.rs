//! Numbers as text: `1,234.50`, `1.234,50`, `1'234.50`, `$12.00`, `12,00 €`, `45%`, `(12.00)`.

use serde_json::{Number, Value};

/// Maximum number of digits. Longer numbers are identifiers, such as those of cards and accounts.
const MAX_DIGITS: usize = 15;

/// Currencies that may precede or follow an amount.
const CURRENCIES: [&str; 20] = [
    "US$", "$", "€", "£", "¥", "₹", "₩", "₽", "₺", "₴", "zł", "kr", "Fr.", "USD", "EUR", "GBP", "CHF", "SEK",
    "NOK", "JPY",
];

/// The separator between integer and decimals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DecimalMark {
    Point,
    Comma,
}

/// A number, split into its parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Amount<'a> {
    is_negative: bool,
    /// Digits with separators.
    digits: &'a str,
    /// Unit of the amount, a currency or `%`; empty if there is none.
    pub(super) unit: &'static str,
}

impl<'a> Amount<'a> {
    /// Parses a text that may be a number.
    pub(super) fn read(text: &'a str) -> Option<Self> {
        let mut rest = text.trim();
        let mut is_negative = false;
        if let Some(inner) = rest.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')) {
            (rest, is_negative) = (inner.trim(), true);
        }
        let mut unit = "";
        for _ in 0..2 {
            if let Some(positive) = rest.strip_prefix(['-', '\u{2212}']).filter(|_| !is_negative) {
                (rest, is_negative) = (positive.trim_start(), true);
            }
            let currency =
                CURRENCIES.into_iter().find(|unit| rest.starts_with(unit)).filter(|_| unit.is_empty());
            if let Some(currency) = currency {
                (rest, unit) = (rest.strip_prefix(currency)?.trim_start(), currency);
            }
        }
        if unit.is_empty() {
            let after = CURRENCIES.into_iter().chain(["%"]).find(|unit| rest.ends_with(unit));
            if let Some(after) = after {
                (rest, unit) = (rest.strip_suffix(after)?.trim_end(), after);
            }
        }
        let is_number = rest.starts_with(|first: char| first.is_ascii_digit())
            && rest.ends_with(|last: char| last.is_ascii_digit())
            && rest.chars().all(|character| character.is_ascii_digit() || is_separator(character))
            && rest.chars().filter(char::is_ascii_digit).count() <= MAX_DIGITS;
        // A number like `007` is an identifier.
        let is_name =
            rest.len() > 1 && rest.starts_with('0') && !rest.starts_with("0.") && !rest.starts_with("0,");
        (is_number && !is_name).then_some(Self { is_negative, digits: rest, unit })
    }

    /// Returns the decimal mark if the number is valid with only one, or `None` if it is ambiguous.
    pub(super) fn only_mark(self) -> Option<DecimalMark> {
        let reads = |mark| self.value(mark).is_some();
        match (reads(DecimalMark::Point), reads(DecimalMark::Comma)) {
            (true, false) => Some(DecimalMark::Point),
            (false, true) => Some(DecimalMark::Comma),
            _ => None,
        }
    }

    /// Returns the number, or `None` if it is not valid with this mark.
    pub(super) fn value(self, mark: DecimalMark) -> Option<Value> {
        let decimal = match mark {
            DecimalMark::Point => '.',
            DecimalMark::Comma => ',',
        };
        let (whole, decimals) = match self.digits.split_once(decimal) {
            Some((whole, decimals)) => (whole, Some(decimals)),
            None => (self.digits, None),
        };
        if decimals.is_some_and(|decimals| !decimals.bytes().all(|byte| byte.is_ascii_digit())) {
            return None;
        }
        let mut separators = whole.chars().filter(|character| !character.is_ascii_digit());
        if let Some(separator) = separators.next() {
            let mut groups = whole.split(separator);
            let first = groups.next().map_or(0, str::len);
            let is_grouped = separators.all(|other| other == separator)
                && (1..=3).contains(&first)
                && groups.all(|group| group.len() == 3);
            if separator == decimal || !is_grouped {
                return None;
            }
        }
        let mut plain: String = whole.chars().filter(char::is_ascii_digit).collect();
        if self.is_negative {
            plain.insert(0, '-');
        }
        let number = match decimals {
            None => Number::from(plain.parse::<i64>().ok()?),
            Some(decimals) => Number::from_f64(format!("{plain}.{decimals}").parse().ok()?)?,
        };
        Some(Value::Number(number))
    }
}

/// Returns true if a character separates thousands or decimals.
fn is_separator(character: char) -> bool {
    matches!(character, '.' | ',' | '\'' | '’' | ' ' | '\u{A0}' | '\u{202F}')
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(text: &str, mark: DecimalMark, expect: &Value) {
        let amount = Amount::read(text).and_then(|amount| amount.value(mark));
        assert_eq!(amount.unwrap_or_default(), *expect, "{text}");
    }

    #[test]
    fn numbers_are_read_with_their_mark() {
        use DecimalMark::{Comma, Point};
        check("12", Point, &json!(12));
        check("-12.5", Point, &json!(-12.5));
        check("0.5", Point, &json!(0.5));
        check("1,234.50", Point, &json!(1234.5));
        check("1,234,567", Point, &json!(1_234_567));
        check("1.234,50", Comma, &json!(1234.5));
        check("1.234", Comma, &json!(1234));
        check("12,5", Comma, &json!(12.5));
        check("1'234.50", Point, &json!(1234.5));
        check("1\u{202F}234,50 €", Comma, &json!(1234.5));
        check("$12.00", Point, &json!(12.0));
        check("-$12.00", Point, &json!(-12.0));
        check("$-12.00", Point, &json!(-12.0));
        check("($12.00)", Point, &json!(-12.0));
        check("CHF 9.95", Point, &json!(9.95));
        check("45%", Point, &json!(45));
        check("-0.5 %", Point, &json!(-0.5));
    }

    #[test]
    fn other_texts_are_no_numbers() {
        for text in [
            "",
            "-",
            "$",
            "007",
            "00",
            "+49",
            "1e5",
            "12 34",
            "1,23,456",
            "1.2.3",
            "12.",
            ".5",
            "1234567890123456",
            "12a",
            "0x1",
            "1 2",
            "--1",
            "$$1",
            "45%%",
            "1-2",
            "1,2,3",
        ] {
            check(text, DecimalMark::Point, &Value::Null);
        }
        check("1,234.50", DecimalMark::Comma, &Value::Null);
        check("1.234,50", DecimalMark::Point, &Value::Null);
    }
}
