//! Tests of whole configuration files.
//!
//! * `found_file_keys`: every key, with the rule for it in a file that was only found
//! * `table_of_keys`: the table of keys against the documentation, and against reading and reloading
//! * `mcp_sources`: mistakes in the keys of MCP servers
//! * `rejected_addresses`: addresses that are refused
//! * `context_protection`: the table `context_protection` in both formats

mod context_protection;
mod found_file_keys;
mod mcp_sources;
mod rejected_addresses;
mod table_of_keys;
