//! The keys of a configuration file: one table with the type, the default and the rules of each.
//!
//! * `key`: the columns of the table
//! * `table`: the table, and parsing with it
//! * `shown`: the file without its secrets, for operators

mod key;
mod shown;
mod table;

pub(super) use key::FoundFileRule;
pub use shown::configuration_view;
pub(super) use table::{KEYS, SCHEMA, parse};
pub use table::{keys_that_need_a_restart, reopens_sources};
