//! Values that files contain: times and numbers in the formats of several countries, and limits for their sizes.
//!
//! * `column`: the type of a table's column, detected from a sample of its values
//! * `numbers`: amounts, with thousands separators, decimal commas, currencies and percent signs
//! * `size_limits`: limits for the rows that a file expands to
//! * `times`: dates and times

mod column;
mod numbers;
mod size_limits;
mod times;

pub(crate) use column::{Column, Locale};
pub(crate) use size_limits::{SizeLimits, check_row};
pub(crate) use times::{DateOrder, time_of_value, time_since_1601};
