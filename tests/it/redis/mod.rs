//! Servers that share a Redis, which `tests/redis/run` starts.

mod clocks;
mod cursors;
mod document_history;
mod documents;
mod encryption;
mod faults;
mod keys;
mod pages;
mod search_cache;
mod servers;
mod source_sign_ins;
