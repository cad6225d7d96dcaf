//! Stores in PostgreSQL. `tests/postgres/run` starts the servers.

mod administration;
mod backups;
mod bulk;
mod copying;
mod document_meaning;
mod documents;
mod failures;
mod full_disk;
mod jobs;
mod poolers;
mod record_vectors;
mod replicas;
mod search;
mod store;
mod terms;
