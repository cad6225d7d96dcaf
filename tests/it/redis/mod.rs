//! Servers that share a Redis, which `tests/redis/run` starts.

mod cursors;
mod documents;
mod faults;
mod pages;
mod keys;
mod servers;
