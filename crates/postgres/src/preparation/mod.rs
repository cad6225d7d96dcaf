//! The values that are computed of records before their batch has the lock of the store's version.
//!
//! * `prepared`: texts and words of records, `parallel`: values of many records by several threads

mod parallel;
mod prepared;

pub(crate) use parallel::compute;
pub(crate) use prepared::{Prepared, prepare, without_nul};
