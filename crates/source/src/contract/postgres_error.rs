//! Errors of a store in PostgreSQL. Each message names the database and the remedy. None has a password, a value of a
//! query or text of a record: messages of the server, which may quote them, are not passed on.

/// Reason why a store in PostgreSQL cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PostgresError {
    /// The text is no URL of a database.
    #[error("the URL of the PostgreSQL store {problem}; write postgres://USER@HOST:PORT/DATABASE")]
    InvalidUrl {
        /// Description of the mistake, without the URL.
        problem: String,
    },
    /// The password, or the certificate of the authority, cannot be read.
    #[error("the database {database} cannot be used: {problem}")]
    Secret {
        /// Host, port and name of the database.
        database: String,
        /// Description of the problem.
        problem: String,
    },
    /// There is no connection to the server, or it broke.
    #[error(
        "the PostgreSQL server of {database} cannot be reached ({problem}); check the host and the port, and that it runs"
    )]
    Unreachable {
        /// Host, port and name of the database.
        database: String,
        /// Message of the operating system.
        problem: String,
    },
    /// The server starts, stops or ended the connection.
    #[error("the PostgreSQL server of {database} is starting or stopping; try again in a moment")]
    Stopping {
        /// Host, port and name of the database.
        database: String,
    },
    /// The connection cannot be encrypted as `sslmode` requires, or the certificate is not trusted.
    #[error(
        "the connection to {database} cannot be encrypted as sslmode={mode} requires ({problem}); correct sslmode or sslrootcert in its URL, or the certificate of the server"
    )]
    Tls {
        /// Host, port and name of the database.
        database: String,
        /// Value of `sslmode`.
        mode: &'static str,
        /// Description of the failure.
        problem: String,
    },
    /// The server rejects the password, or wants one and none is known.
    #[error(
        "the database {database} rejects the password of the role, or needs one; set it in the file that PGPASSFILE names, or in the URL as `password=env:NAME` or `password=file:PATH`"
    )]
    Password {
        /// Host, port and name of the database.
        database: String,
    },
    /// The server lets the role not connect, by its `pg_hba.conf`.
    #[error(
        "the server of {database} refuses a connection of the role{unencrypted}; check the role and the server's pg_hba.conf"
    )]
    Forbidden {
        /// Host, port and name of the database.
        database: String,
        /// Remark on a connection that was not encrypted, or nothing.
        unencrypted: &'static str,
    },
    /// There is no such database.
    #[error("there is no database {database}; create it with `createdb`, or correct the URL")]
    NoDatabase {
        /// Host, port and name of the database.
        database: String,
    },
    /// All connections of the server, the database or the role are taken.
    #[error(
        "the server of {database} has no connection free; raise max_connections, or use a pooler such as PgBouncer"
    )]
    TooManyConnections {
        /// Host, port and name of the database.
        database: String,
    },
    /// The tables do not exist, and the role may not create them.
    #[error(
        "the database {database} has no tables of fetchwell, and the role may not create them; run any `fetchwell import` once with a role that has CREATE on the database"
    )]
    NoTables {
        /// Host, port and name of the database.
        database: String,
    },
    /// The tables are of an earlier version, and the role may not change them.
    #[error(
        "the tables of fetchwell in {database} have version {found} and this fetchwell needs {known}; run `fetchwell connections --store` on it once with the role that owns them"
    )]
    Older {
        /// Host, port and name of the database.
        database: String,
        /// Version of the tables.
        found: i32,
        /// Version that this release reads and writes.
        known: i32,
    },
    /// The tables are of a newer release.
    #[error(
        "the tables of fetchwell in {database} have version {found} and this fetchwell knows {known}; upgrade fetchwell"
    )]
    Newer {
        /// Host, port and name of the database.
        database: String,
        /// Version of the tables.
        found: i32,
        /// Newest version that this release knows.
        known: i32,
    },
    /// The role lacks a privilege on the tables.
    #[error(
        "the role may not do that in {database}; grant it USAGE on the schema fetchwell and SELECT on its tables, and for imports INSERT and UPDATE"
    )]
    NoPermission {
        /// Host, port and name of the database.
        database: String,
    },
    /// The server, the database or the role only reads.
    #[error("the database {database} is read-only; name its primary server, or another role")]
    ReadOnly {
        /// Host, port and name of the database.
        database: String,
    },
    /// The disk of the server is full.
    #[error(
        "the disk of the server of {database} is full; free space there, then run the command again: what was written so far stays, and it goes on from there"
    )]
    DiskFull {
        /// Host, port and name of the database.
        database: String,
    },
    /// The database is not in UTF-8.
    #[error(
        "the database {database} has the encoding {encoding}; create one with `createdb --encoding UTF8`"
    )]
    Encoding {
        /// Host, port and name of the database.
        database: String,
        /// Encoding of the database.
        encoding: String,
    },
    /// Documents and vectors need pgvector, and it cannot be used.
    #[error("the database {database} cannot have projects of documents and vectors: {problem}")]
    NoPgvector {
        /// Host, port and name of the database.
        database: String,
        /// State of the extension, with the remedy.
        problem: String,
    },
    /// The tables of vectors cannot be dropped.
    #[error(
        "the vectors in {database} are being read, or another role owns their tables; run the command again, with the role that owns the schema fetchwell"
    )]
    VectorsInUse {
        /// Host, port and name of the database.
        database: String,
    },
    /// A statement took too long.
    #[error("the database {database} did not answer in time")]
    Timeout {
        /// Host, port and name of the database.
        database: String,
    },
    /// A statement failed for another reason.
    #[error("the database {database} reports the error {code}; its log has the message")]
    Statement {
        /// Host, port and name of the database.
        database: String,
        /// SQLSTATE of the error.
        code: String,
    },
    /// Another process runs the same job.
    #[error("`{job}` runs already in {database}: {holder} does it; wait for it to end, or stop it")]
    Leased {
        /// Host, port and name of the database.
        database: String,
        /// Name of the job, such as `import work-mail`.
        job: String,
        /// Session that runs it.
        holder: String,
    },
    /// The connection with the lease of a job broke.
    #[error(
        "the connection to {database} with the lock of this job broke, so another process may run it now; run the command again: what was written so far stays"
    )]
    LeaseLost {
        /// Host, port and name of the database.
        database: String,
    },
    /// A pooler gave a transaction another session than expected.
    #[error(
        "{database} is behind a pooler that gives each transaction another session; add `pooler=transaction` to its URL"
    )]
    Pooler {
        /// Host, port and name of the database.
        database: String,
    },
    /// The operation works on files only.
    #[error("{} a store in PostgreSQL is not supported yet; {}", .0.what, .0.remedy)]
    NotSupported(Unsupported),
}

/// Operation that works on files only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unsupported {
    /// Beginning of the sentence.
    what: &'static str,
    /// End of the sentence: what to do instead.
    remedy: &'static str,
}

/// Any operation that works on files only.
pub const FILES_ONLY: Unsupported = Unsupported { what: "this command on", remedy: "name a store in a file" };

/// Backups of a file.
pub const BACKUP: Unsupported = Unsupported {
    what: "a backup by this command of",
    remedy: "run `pg_dump --format=custom --schema=fetchwell`, and `pg_restore` to restore it",
};

/// Code of the server for a table that does not exist.
const NO_TABLE: &str = "42P01";

impl PostgresError {
    /// Returns true if a statement named a missing table, such as that of replaced vectors.
    pub fn is_missing_table(&self) -> bool {
        matches!(self, Self::Statement { code, .. } if code == NO_TABLE)
    }

    /// Returns the error of an operation that works on files only.
    #[must_use]
    pub fn not_supported(unsupported: Unsupported) -> Self {
        Self::NotSupported(unsupported)
    }

    /// Returns true if the server itself failed, so that the failure counts for the circuit breaker of the source.
    #[must_use]
    pub fn is_server_failure(&self) -> bool {
        matches!(
            self,
            Self::Unreachable { .. }
                | Self::Stopping { .. }
                | Self::TooManyConnections { .. }
                | Self::Timeout { .. }
                | Self::Statement { .. }
        )
    }
}
