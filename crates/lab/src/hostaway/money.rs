//! Amounts of money. They are computed in hundredths, so that sums are exact, and written as JSON numbers.

use serde_json::Value;

/// Converts hundredths to a JSON number.
pub(super) fn amount(hundredths: i64) -> Value {
    i32::try_from(hundredths).map_or(Value::Null, |hundredths| (f64::from(hundredths) / 100.0).into())
}

/// Converts thousandths, such as those of a latitude, to a JSON number.
pub(super) fn thousandths(number: i32) -> Value {
    (f64::from(number) / 1000.0).into()
}
