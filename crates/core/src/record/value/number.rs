//! Numbers that compare exactly: ids of 19 digits differ although their first 15 digits are equal.

use std::cmp::Ordering;

use serde_json::{Number, Value};

/// 2^127, the first integer above the range of `i128`.
const WHOLE_END: f64 = 170_141_183_460_469_231_731_687_303_715_884_105_728.0;

/// A number. Every integer in range is `Whole`, however it was written, so that equal numbers are identical.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Numeric {
    /// Integer of at most 128 bits.
    Whole(i128),
    /// The bits of an `f64`: a fraction, or a number outside the range of `Whole`.
    Part(u64),
}

impl Numeric {
    /// Returns the number of a value: a JSON number, or a string that is one, because the numbers of a table are
    /// strings.
    pub fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Number(number) => Self::of_number(number),
            Value::String(text) => Self::of_text(text),
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
        }
    }

    /// Returns the exact value of a JSON number, or `None` if it exceeds the range.
    pub fn of_number(number: &Number) -> Option<Self> {
        match (number.as_i64(), number.as_u64()) {
            (Some(whole), _) => Some(Self::Whole(whole.into())),
            (None, Some(whole)) => Some(Self::Whole(whole.into())),
            (None, None) => number.as_f64().and_then(Self::of_float),
        }
    }

    /// Parses a string that contains a number and nothing else.
    pub fn of_text(text: &str) -> Option<Self> {
        if !text.starts_with(|c: char| c.is_ascii_digit() || c == '-' || c == '.') {
            return None;
        }
        match text.parse() {
            Ok(whole) => Some(Self::Whole(whole)),
            Err(_not_whole) => text.parse().ok().and_then(Self::of_float),
        }
    }

    #[expect(clippy::cast_possible_truncation, reason = "it is whole and inside the range of i128")]
    fn of_float(number: f64) -> Option<Self> {
        match number {
            _ if !number.is_finite() => None,
            _ if number.fract() == 0.0 && (-WHOLE_END..WHOLE_END).contains(&number) => {
                Some(Self::Whole(number as i128))
            }
            _ => Some(Self::Part(number.to_bits())),
        }
    }

    /// Returns the nearest floating point number.
    #[expect(clippy::cast_precision_loss, reason = "the nearest floating point number is what is asked for")]
    pub fn as_f64(self) -> f64 {
        match self {
            Self::Whole(whole) => whole as f64,
            Self::Part(bits) => f64::from_bits(bits),
        }
    }

    /// Returns the number as JSON, in which integers have 64 bits.
    pub fn to_json(self) -> Option<Number> {
        let whole = match self {
            Self::Whole(whole) => i64::try_from(whole)
                .map(Number::from)
                .or_else(|_| u64::try_from(whole).map(Number::from))
                .ok(),
            Self::Part(_) => None,
        };
        whole.or_else(|| Number::from_f64(self.as_f64()))
    }
}

impl PartialOrd for Numeric {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Numeric {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Whole(a), Self::Whole(b)) => a.cmp(b),
            (Self::Part(a), Self::Part(b)) => f64::from_bits(*a).total_cmp(&f64::from_bits(*b)),
            (Self::Whole(whole), Self::Part(bits)) => whole_to_part(*whole, f64::from_bits(*bits)),
            (Self::Part(bits), Self::Whole(whole)) => whole_to_part(*whole, f64::from_bits(*bits)).reverse(),
        }
    }
}

/// Compares an integer with a number that is a fraction or outside its range.
#[expect(clippy::cast_possible_truncation, reason = "a cast takes what is out of range to the end of it")]
fn whole_to_part(whole: i128, part: f64) -> Ordering {
    if part >= WHOLE_END {
        Ordering::Less
    } else if part < -WHOLE_END {
        Ordering::Greater
    } else if whole <= part.floor() as i128 {
        Ordering::Less
    } else {
        Ordering::Greater
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(a: &Value, b: &Value, expect: Ordering) {
        let (left, right) = (Numeric::from_value(a).unwrap(), Numeric::from_value(b).unwrap());
        assert_eq!((left.cmp(&right), right.cmp(&left)), (expect, expect.reverse()), "{a} {b}");
    }

    #[test]
    fn numbers_compare_exactly() {
        use Ordering::{Equal, Less};
        check(&json!(9_223_372_036_854_775_806_i64), &json!(i64::MAX), Less);
        check(&json!(i64::MAX), &json!(9_223_372_036_854_775_808_u64), Less);
        check(&json!(i64::MAX), &json!(9.223_372_036_854_776e18), Less);
        check(&json!(u64::MAX), &json!("18446744073709551616"), Less);
        check(&json!("1234567890123456780"), &json!("1234567890123456781"), Less);
        check(&json!(1e18), &json!(1_000_000_000_000_000_000_i64), Equal);
        check(&json!(-0.0), &json!(0), Equal);
        check(&json!("1e3"), &json!("01000"), Equal);
        check(&json!(-1), &json!(-0.5), Less);
        check(&json!(-1.5), &json!(-1), Less);
        check(&json!(1e40), &json!(1e41), Less);
        check(&json!(-1e40), &json!(i64::MIN), Less);
        check(&json!(u64::MAX), &json!(1e40), Less);
    }

    #[test]
    fn text_that_is_no_number_is_rejected() {
        for text in
            ["", "-", "n/a", "1,000", "1 ", "+1", "-inf", "nan", "1e400", "0x10", "2026-04-01", "1.2.3"]
        {
            assert_eq!(Numeric::of_text(text), None, "{text:?}");
        }
    }

    #[test]
    fn integers_are_printed_without_a_fraction() {
        for (given, expect) in [
            (json!(-0.0), "0"),
            (json!(1.0), "1"),
            (json!(u64::MAX), "18446744073709551615"),
            (json!(1.5), "1.5"),
            (json!(1e30), "1e+30"),
        ] {
            assert_eq!(Numeric::from_value(&given).unwrap().to_json().unwrap().to_string(), expect);
        }
    }

    fn any_number() -> impl Strategy<Value = Numeric> {
        prop_oneof![
            any::<f64>().prop_filter_map("JSON has finite numbers", Numeric::of_float),
            any::<i128>().prop_map(Numeric::Whole),
            (-40i32..40).prop_map(|n| Numeric::of_float(f64::from(n) / 4.0).unwrap()),
        ]
    }

    proptest! {
        #[test]
        fn numbers_have_a_total_order(a in any_number(), b in any_number(), c in any_number()) {
            let mut sorted = [a, b, c];
            sorted.sort();
            prop_assert!(sorted[0] <= sorted[1] && sorted[1] <= sorted[2] && sorted[0] <= sorted[2]);
            prop_assert_eq!(a == b, a.cmp(&b).is_eq());
            // Rounding keeps the order.
            prop_assert!(a > b || a.as_f64() <= b.as_f64());
        }
    }
}
