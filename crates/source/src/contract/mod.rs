//! Contract of stores: what an import, a synchronization, a removal and an export pass to a store and get from it, whatever
//! database it is in. Variants of `store_error` and `vector_error` with a path are of a file, and `postgres_error` has those of
//! a server.
//!
//! * `store_error`, `vector_error`, `scope_error`, `postgres_error`: errors
//! * `import`: records to be written and the result
//! * `remembered_import`, `item`, `missing`: imports that are synchronized, and the files that gave their records
//! * `scope`: the names of a command as rows
//! * `export`, `removal`, `info`: records that leave a store, and its numbers
//! * `vectors`: extent, progress and state of vectors
//! * `application_id`: the files of a store among other databases
//!
//! **Invariant:** no library of a database is used here.

mod application_id;
mod export;
mod import;
mod info;
mod item;
mod missing;
mod postgres_error;
mod remembered_import;
mod removal;
mod scope;
mod scope_error;
mod store_error;
mod vector_error;
mod vectors;

pub use application_id::{RECORDS_APPLICATION_ID, VECTORS_APPLICATION_ID, is_store_application};
pub use export::{
    CopiedConnection, ExportError, ExportedRecord, ExportedStream, MAX_EXPORTED_FIELDS, RowVersion,
    StreamFields,
};
pub use import::{
    BATCH_BYTES, BATCH_RECORDS, Change, ImportResult, IncomingRecord, IndexProgress, NewConnection, Tally,
    no_progress,
};
pub use info::{ConnectionInfo, StoreInfo, StorePart, StreamInfo, TableVersions};
pub use item::{Fingerprint, ItemId, ItemState, KnownItem, Role};
pub use missing::MissingCounts;
pub use postgres_error::{BACKUP, FILES_ONLY, PostgresError, Unsupported};
pub use remembered_import::{ImportId, ImportStatus, NewImport, RememberedImport};
pub use removal::{RemovalCounts, RemovalError, RemovalPlan, RemovalResult};
pub use scope::{RecordRow, ScopeLookup, ScopeRows};
pub use scope_error::ScopeError;
pub use store_error::StoreError;
pub use vector_error::VectorError;
pub use vectors::{
    BuildMode, BuildProgress, DocumentVectorStatus, EMBEDDING_DIMENSIONS, EmbeddedStreams, GenerationStatus,
    ModelStatus, StoreVersion, VectorScan, VectorStatus, WrongDimensions,
};
