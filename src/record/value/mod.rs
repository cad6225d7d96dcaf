//! Comparing, adding and ordering values of fields.
//!
//! * `scalar`: a string, number or boolean
//! * `number`, `decimal`: exact numbers and sums
//! * `timestamp`: timestamps
//! * `kind`: names of kinds of values
//! * `sort_value`: the value that orders records

pub(in crate::record) mod decimal;
pub(in crate::record) mod kind;
pub(in crate::record) mod number;
pub(in crate::record) mod scalar;
pub(in crate::record) mod sort_value;
pub(in crate::record) mod timestamp;
