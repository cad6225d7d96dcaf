//! Arguments of calls.
//!
//! * `normalize`: arguments as clients send them, by the input schema of the tool.
//! * `parse`: typed arguments.
//! * `expansion`: the arguments that include related records.
//! * `record_id`: ids of records.

mod expansion;
mod normalize;
mod parse;
mod record_id;

pub(crate) use expansion::parse_expansions;
pub(crate) use normalize::DeclaredArguments;
pub(crate) use parse::{parse, trimmed};
pub(crate) use record_id::{RecordReference, named_record, safe_connection};
