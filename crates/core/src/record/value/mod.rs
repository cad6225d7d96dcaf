//! Comparing, adding and ordering values of fields.
//!
//! * `scalar`: a string, number or boolean
//! * `number`, `decimal`: exact numbers and sums
//! * `timestamp`: timestamps
//! * `kind`: names of kinds of values
//! * `sort_value`: the value that orders records

pub(super) mod decimal;
pub(super) mod kind;
pub(super) mod number;
pub(super) mod scalar;
pub(super) mod sort_value;
pub(super) mod timestamp;
