//! Tests at the boundaries: the built binary over real stdio and real HTTP, tools over a fake record server on a real
//! socket, and rules of structure and language.
//!
//! All tests are in one binary, because linking takes most of the build time. Each folder has the tests of one area.

#![expect(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod support;

mod api;
mod cli;
mod documents;
mod federation;
mod hosted;
mod http;
mod import;
mod mcp;
mod memory;
mod postgres;
mod readers;
mod redis;
mod rules;
mod search;
mod setup;
mod sources;
mod store;
mod tools;
#[cfg(unix)]
mod upstream;
mod v1;
