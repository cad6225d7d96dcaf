//! Routes of `/v1`: a file for each, with its description, its parameters and its handler.
//!
//! * `schema`: `/v1/schema` and the objects in it
//! * `streams`, `records`, `record`, `window`, `aggregate`, `search`: the routes of these names
//! * `rows`: records in lists

mod rows;

pub(super) mod aggregate;
pub(super) mod record;
pub(super) mod records;
pub(super) mod schema;
pub(super) mod search;
pub(super) mod streams;
pub(super) mod window;

use super::operation::Operation;

/// All routes of the contract.
pub(super) const OPERATIONS: [Operation; 10] = [
    schema::OPERATION,
    streams::LIST,
    streams::ONE,
    records::OPERATION,
    record::OPERATION,
    window::OPERATION,
    aggregate::OPERATION,
    search::OPERATION,
    search::SEMANTIC,
    search::HYBRID,
];
