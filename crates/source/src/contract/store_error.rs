//! Errors of a store. Those of a server are in `PostgresError`; the other variants with a path are of a file. Each message names the file and the remedy.

use std::path::PathBuf;

use fetchwell_state::ForeignFile;

use super::postgres_error::PostgresError;

/// Reason why a store cannot be used. The message names the file and the remedy.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The store is in PostgreSQL.
    #[error(transparent)]
    Postgres(#[from] PostgresError),
    /// There is no file at the path.
    #[error("there is no store at {} (the file is missing or empty); create it with `fetchwell add` or `fetchwell import`, or correct the path", .0.display())]
    Missing(PathBuf),
    /// There is no folder for a new store.
    #[error("there is no folder {}; create it, or correct the path of the store", .0.display())]
    NoFolder(PathBuf),
    /// The file or its folder cannot be opened.
    #[error("the store {} cannot be opened ({problem}); check its path and permissions", .path.display())]
    Unreadable {
        /// Path of the store.
        path: PathBuf,
        /// Message of the operating system.
        problem: String,
    },
    /// The file belongs to another program.
    #[error("{} is not a fetchwell store; name another file", .0.display())]
    Foreign(PathBuf),
    /// A file of another program has a name that the store needs for itself.
    #[error("the file {} is not used or changed because {problem}; rename or move it, then run the command again: the store keeps a file of that name", .path.display())]
    ForeignFile {
        /// Path of that file.
        path: PathBuf,
        /// Reason why the file is not part of the store.
        problem: &'static str,
    },
    /// The store was written by a newer release of fetchwell.
    #[error("the store {} has format {found} and this fetchwell reads up to {known}; upgrade fetchwell", .path.display())]
    Newer {
        /// Path of the store.
        path: PathBuf,
        /// Format version of the store.
        found: i64,
        /// Newest format version that this release reads.
        known: i64,
    },
    /// The store was written by an older release of fetchwell.
    #[error("the store {} is of an earlier format; import its files again, into a new store", .0.display())]
    Older(PathBuf),
    /// Another process holds the store or its search index.
    #[error("the store {} is locked by another process; wait for the other import to end, or stop it", .0.display())]
    Locked(PathBuf),
    /// Another import writes to the connection.
    #[error("another import writes to `{0}`; wait for it to end, or stop it")]
    Importing(String),
    /// An import was removed from the store while it was synchronized.
    #[error("the import was removed from the store {} meanwhile; add it again with `fetchwell add`", .0.display())]
    ImportRemoved(PathBuf),
    /// Records were removed from the store, or it was restored from a backup, during an import.
    #[error("records were removed from the store {}, or it was restored, meanwhile; run the command again", .0.display())]
    Replaced(PathBuf),
    /// An import of records writes to the connection of a project.
    #[error(
        "`{0}` is a project of documents; run `fetchwell import docs DIR --project {0}`, or name another connection"
    )]
    IsProject(String),
    /// Documents are imported into a connection that is no project.
    #[error("there is no project `{0}`; create it with `fetchwell project create {0}`")]
    NoProject(String),
    /// The copy has another project or connection of the name.
    #[error(
        "the copy has a project or connection `{0}` with another id; remove it there with `fetchwell remove {0}` and copy again"
    )]
    OtherProject(String),
    /// A record of an import into a project is no document.
    #[error("the record `{0}` is no document, so that the project cannot have it; report it")]
    NoDocument(String),
    /// The file is damaged.
    #[error("the store {} is damaged ({problem}); restore it from a backup, or delete it and import again", .path.display())]
    Damaged {
        /// Path of the store.
        path: PathBuf,
        /// Message of the database.
        problem: String,
    },
    /// There is no space left on the disk of the store or its search index.
    #[error("the disk of {} is full ({problem}); free space there, then run the command again: what was written so far stays, and it goes on from there", .folder.display())]
    DiskFull {
        /// Folder of the store.
        folder: PathBuf,
        /// Message of the operating system or SQLite.
        problem: String,
    },
    /// The store is read-only.
    #[error("the store {} cannot be written ({problem}); change its permissions, or move it to a disk that can be written, then run the command again", .path.display())]
    Unwritable {
        /// Path of the store.
        path: PathBuf,
        /// Message of the database.
        problem: String,
    },
    /// The newest changes are in the write-ahead log, which cannot be read on a read-only file system.
    #[error("the store {} cannot be read where nothing can be written ({problem}): its newest changes are in {}-wal; run `fetchwell connections --store` on it once where it can be written", .path.display(), .path.display())]
    UnreadLog {
        /// Path of the store.
        path: PathBuf,
        /// Message of the database.
        problem: String,
    },
    /// There is no search index, and it cannot be created.
    #[error("the store {} has no search index of this version, and none can be made ({problem}); run `fetchwell search` on it once where it can be written", .path.display())]
    IndexUnmakeable {
        /// Path of the store.
        path: PathBuf,
        /// Message of the operating system.
        problem: String,
    },
    /// The search index is being built for the first time.
    #[error("the search index of the store {} is being built; search again in a moment", .0.display())]
    Building(PathBuf),
    /// There is no search index yet, and another process holds the write lock.
    #[error("the store {} has no search index yet and {} is writing to the store; wait for it to end, then search again", .store.display(), process(*.holder))]
    IndexMissing {
        /// Path of the store.
        store: PathBuf,
        /// Id of the process that holds the lock, if the system reports it.
        holder: Option<u32>,
    },
    /// The search index is damaged and cannot be rebuilt until another process ends.
    #[error("the search index {} is damaged ({problem}) and cannot be rebuilt while {} is writing to the store; wait for it to end, then search again", .path.display(), process(*.holder))]
    IndexDamaged {
        /// Folder of the search index.
        path: PathBuf,
        /// Description of the damage.
        problem: String,
        /// Id of the process that holds the lock, if the system reports it.
        holder: Option<u32>,
    },
    /// The folder of the search index does not belong to this store.
    #[error("the folder {} is not used or changed because {problem}; rename or move it, then search again: the search index of the store is made there", .path.display())]
    IndexForeign {
        /// Path of the folder.
        path: PathBuf,
        /// Reason why the folder is not this store's.
        problem: &'static str,
    },
    /// The search index cannot be read or written.
    #[error("the search index {} cannot be used ({problem}); delete that folder, it is rebuilt from the store", .path.display())]
    Index {
        /// Folder of the search index.
        path: PathBuf,
        /// Message of the index.
        problem: String,
    },
}

impl From<ForeignFile> for StoreError {
    fn from(ForeignFile { path, problem }: ForeignFile) -> Self {
        Self::ForeignFile { path, problem }
    }
}

/// Returns a description of the process that holds a lock.
fn process(holder: Option<u32>) -> String {
    holder.map_or_else(|| "another process".to_owned(), |id| format!("process {id}"))
}
