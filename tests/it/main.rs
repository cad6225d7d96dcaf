//! Tests at the boundaries: the built binary over real stdio and real HTTP, tools over a fake record
//! server on a real socket, and the rules of the house.
//!
//! One binary, because linking is what takes the time. Each module is one boundary.

#![expect(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod support;

mod allowed_streams;
mod api_content;
mod api_cursors;
mod api_details;
mod api_lists;
mod api_observed;
mod api_overrides;
mod api_seed_examples;
mod arguments;
mod backup;
mod bad_messages;
mod budgets;
mod bundle;
mod change_feed;
mod change_tokens;
mod changed_sources;
mod cli;
mod configuration;
mod conformance;
mod cursors;
mod default_store;
#[cfg(unix)]
mod documented_commands;
mod dotted_keys;
mod embeddings;
mod eval;
mod fat_booking;
mod faults;
mod federation_turns;
mod federation_walk;
mod foreign_files;
mod found_files;
mod full_disk;
mod group_pairs;
mod hammer;
mod handles;
mod hard_cap;
mod hidden_streams;
mod hostaway;
mod hosted;
mod hosted_pages;
mod hosted_sign_in;
mod hostile_corpus;
mod hostile_files;
mod http_limits;
mod http_names;
mod http_tls;
mod http_unread;
mod import;
mod import_documents;
mod import_exports;
mod import_files;
mod import_notes;
mod import_report;
mod import_values;
mod index_files;
mod introspection_queue;
mod language;
mod leaks;
mod long_records;
mod mcp_http;
mod mcp_stdio;
mod no_results;
mod old_store;
mod operations;
mod operations_spans;
mod ops_listener;
mod outgoing_credentials;
mod parallel_reads;
#[cfg(unix)]
mod permissions;
mod proxied_requests;
mod query_language;
mod query_operators;
mod ranking;
mod read_only_store;
mod read_surface;
mod real_mail;
mod record_server;
mod refused_methods;
mod remote_aggregates;
mod remote_reads;
mod rerank;
mod resident_memory;
mod rmcp_client;
mod schemas;
mod search_by_meaning;
mod search_modes;
mod search_properties;
mod shared_connections;
mod sources;
mod stalled_imports;
mod stdio_in_flight;
mod store;
mod store_export;
mod store_figures;
mod store_info;
mod store_removal;
mod telemetry;
mod terminal;
#[cfg(target_os = "linux")]
mod text_in_flight;
mod tidy;
mod transport;
mod unknown_places;
mod v1_http;
mod v1_records;
mod v1_source;
mod walk;
