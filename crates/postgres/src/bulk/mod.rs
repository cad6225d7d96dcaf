//! Loading of many records at once.
//!
//! * `copy`: writes rows by `COPY`, `values`: values of types that the client library does not know
//! * `rows`: reads and writes the rows of records
//! * `indexes`: indexes that are built after the first import into empty tables

pub(crate) mod copy;
pub(crate) mod indexes;
pub(crate) mod rows;
pub(crate) mod values;
