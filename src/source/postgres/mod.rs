//! A store in PostgreSQL, for several processes and machines.
//!
//! The tables are those of the embedded store, in the schema `fetchwell` of a database, and the reads are those of
//! `relational`. Every read is one read-only transaction, bounded by the deadline of the source; dropping its future
//! cancels its statement.
//!
//! * `store`: the source; `read`, `waiting`: one read, `tables`: its queries, `sort_key`: sort values as bytes
//! * `url`: the URL of a database, `password_file`: PGPASSFILE, `tls`: encryption as `sslmode` says
//! * `pool`: connections, `transaction`: the beginning of transactions, `migrations`: the tables and their versions, `failure`: errors of the server
//! * `replicas`: the choice between the primary and its replicas
//! * `search`: search by words, `words`: the words of a record as a vector
//! * `writer`: imports, `batch`: the rows that a batch changes, `bulk`: loading of many rows
//! * `administration`: leases of jobs, and commands about the store as a whole
//!
//! **Invariant:** no password, no value of a query and no text of a record is in an error or a log line.

mod administration;
mod batch;
mod bulk;
mod failure;
mod migrations;
mod password_file;
mod pool;
mod read;
mod replicas;
mod search;
mod sort_key;
mod store;
mod tables;
mod tls;
mod transaction;
mod url;
mod waiting;
mod words;
mod writer;

pub use administration::{
    Blocking, Lease, LeaseAttempt, LeaseHolder, PostgresBytes, PostgresExport, PostgresInfo, TableVersions,
    count_removal, migrate_tables, postgres_info, remove_records, table_versions,
};
pub use pool::PostgresPool;
pub use replicas::{DEFAULT_MAX_LAG, ReadReplicas};
pub use store::{PgvectorState, PostgresState, PostgresStore};
pub use url::{PasswordPlace, PostgresUrl, SslMode};
pub use writer::PostgresWriter;
