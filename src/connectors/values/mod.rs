//! Values that files hold as text: times and numbers as people and programs of several countries write them.
//!
//! * `column.rs`: the type of a column of a table, by a sample of its values
//! * `numbers.rs`: amounts, with thousands separators, decimal commas, currencies and percent signs
//! * `times.rs`: days and times

mod column;
mod numbers;
mod times;

pub(super) use column::{Column, Locale};
pub(super) use times::time_of_value;
