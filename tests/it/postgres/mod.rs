//! Stores in PostgreSQL. `tests/postgres/run` starts the servers.

mod documents;
mod failures;
mod search;
mod store;
