//! Loading of many records at once.
//!
//! * `copy`: rows by `COPY`
//! * `indexes`: indexes that are built after the first import into empty tables

pub(super) mod copy;
pub(super) mod indexes;
