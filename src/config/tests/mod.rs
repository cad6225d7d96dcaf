//! Tests of whole configuration files.

mod context_protection;
mod found_file_keys;
