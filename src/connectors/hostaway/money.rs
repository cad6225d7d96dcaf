//! Amounts. They are counted in hundredths, so that sums are exact, and written as JSON numbers.

use serde_json::Value;

/// An amount of hundredths as a number.
pub(super) fn amount(hundredths: i64) -> Value {
    i32::try_from(hundredths).map_or(Value::Null, |hundredths| (f64::from(hundredths) / 100.0).into())
}

/// A number of which the last three digits are after the point, such as a latitude.
pub(super) fn thousandths(number: i32) -> Value {
    (f64::from(number) / 1000.0).into()
}
