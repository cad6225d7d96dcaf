//! A store in PostgreSQL, for several processes and machines.
//!
//! The tables are those of the embedded store, in the schema `fetchwell` of a database, and the reads are those of
//! `relational`. Every read is one read-only transaction, bounded by the deadline of the source; dropping its future
//! cancels its statement.
//!
//! * `store`: the source; `read`: one read, `tables`, `table_reads`, `queries`: its queries, `sort_key`: sort values as bytes
//! * `url`: the URL of a database, `password_file`: PGPASSFILE, `tls`: encryption as `sslmode` says
//! * `pool`: connections, `transaction`: the beginning of transactions, `migrations`: the tables and their versions, `failure`: errors of the server
//! * `replicas`: the choice between the primary and its replicas
//! * `search`: search by words, `words`: the words of a record as a vector, `terms`: the numbers of records of words
//! * `extension`: pgvector and the tables that need it, `document_rows`: the rows of documents that imports write
//! * `documents`: projects and their documents, `vectors`: searches and builds of their vectors, `record_vectors`: those of records
//! * `sync`: imports, `preparation`: what is computed of records before they are written, `writer`: the records of a batch,
//!   `batch`: the rows that it changes, `bulk`: loading of many rows
//! * `columns`: the fields of records in columns
//! * `test_database`: databases of tests
//! * `administration`: leases of jobs, `commands`: what commands do with the store as a whole
//!
//! Uses `callers`, `core`, `embedding`, `ranking` and `source`.
//!
//! **Invariant:** no password, no value of a query and no text of a record is in an error or a log line.

mod administration;
mod batch;
mod bulk;
mod columns;
mod commands;
mod document_rows;
mod documents;
mod extension;
mod failure;
mod migrations;
mod password_file;
mod pool;
mod preparation;
mod queries;
mod read;
mod record_vectors;
mod replicas;
mod search;
mod sort_key;
mod store;
mod sync;
mod table_reads;
mod tables;
mod terms;
#[cfg(test)]
mod test_database;
mod tls;
mod transaction;
mod url;
mod vectors;
mod words;
mod writer;

pub use administration::{Blocking, Job, Lease, LeaseAttempt, LeaseHolder};
pub use documents::put_copied_project;
pub use extension::PgvectorState;
pub use pool::PostgresPool;
pub use record_vectors::PostgresVectors;
pub use replicas::{DEFAULT_MAX_LAG, ReadReplicas};
pub use store::{PostgresState, PostgresStore};
pub use sync::{PostgresSyncStore, PostgresTarget, postgres_imports};
pub use url::{PasswordPlace, PostgresUrl, SslMode};
