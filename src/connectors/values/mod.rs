//! Values that files contain as text: times and numbers in the formats of several countries.
//!
//! * `column`: the type of a table's column, detected from a sample of its values
//! * `numbers`: amounts, with thousands separators, decimal commas, currencies and percent signs
//! * `times`: dates and times

mod column;
mod numbers;
mod times;

pub(super) use column::{Column, Locale};
pub(super) use times::time_of_value;
