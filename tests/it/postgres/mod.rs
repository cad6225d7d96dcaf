//! Stores in PostgreSQL. `tests/postgres/run` starts the servers.

mod failures;
mod search;
mod store;
