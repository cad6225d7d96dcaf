//! Errors of a shared Redis. Each message names the server and the remedy; messages of the server, which may quote
//! values, are not passed on.

/// Reason why a shared Redis cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RedisError {
    /// The text is no URL of a Redis.
    #[error("the URL of `state` {problem}; write redis://HOST:PORT/NUMBER or rediss://HOST:PORT/NUMBER")]
    InvalidUrl {
        /// Description of the mistake, without the URL.
        problem: String,
    },
    /// The password, or the certificate of the authority, cannot be read.
    #[error("{server} cannot be used: {problem}")]
    Secret {
        /// Address of the server.
        server: String,
        /// Description of the problem.
        problem: String,
    },
    /// There is no connection to the server, or it broke.
    #[error(
        "{server} cannot be reached ({problem}); check the host and the port of `state`, and that it runs"
    )]
    Unreachable {
        /// Address of the server.
        server: String,
        /// Message of the operating system.
        problem: String,
    },
    /// The server did not answer in time.
    #[error("{server} did not answer in time; check its load and the network")]
    Timeout {
        /// Address of the server.
        server: String,
    },
    /// The connection cannot be encrypted, or the certificate is not trusted.
    #[error(
        "the connection to {server} cannot be encrypted ({problem}); use redis:// for a server without TLS, or set `ca` in its URL"
    )]
    Tls {
        /// Address of the server.
        server: String,
        /// Description of the failure.
        problem: String,
    },
    /// The server rejects the password, or wants one.
    #[error(
        "{server} rejects the password, or needs one; set it in the URL as `password=env:NAME` or `password=file:PATH`"
    )]
    Password {
        /// Address of the server.
        server: String,
    },
    /// The user of the server may not use a command or a key.
    #[error(
        "{server} does not permit its user the commands or keys of fetchwell; see docs/redis.md for its ACL"
    )]
    NoPermission {
        /// Address of the server.
        server: String,
    },
    /// The memory limit of the server is reached.
    #[error("{server} has reached its memory limit; raise its `maxmemory`")]
    Full {
        /// Address of the server.
        server: String,
    },
    /// The server is a read-only replica.
    #[error("{server} is a read-only replica; name the primary server in `state`")]
    ReadOnly {
        /// Address of the server.
        server: String,
    },
    /// The server loads its data.
    #[error("{server} is loading its data; try again in a moment")]
    Loading {
        /// Address of the server.
        server: String,
    },
    /// The server rejects a command for another reason.
    #[error("{server} rejects a command ({code}); fetchwell needs Redis 6.2 or later, without cluster mode")]
    Rejected {
        /// Address of the server.
        server: String,
        /// Code of the error, such as `MOVED`.
        code: String,
    },
}

impl RedisError {
    /// Returns the kind of the error in one or two words, which follow "the store is".
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::InvalidUrl { .. } | Self::Secret { .. } => "misconfigured",
            Self::Unreachable { .. } => "unreachable",
            Self::Timeout { .. } => "too slow",
            Self::Tls { .. } => "not encrypted",
            Self::Password { .. } | Self::NoPermission { .. } => "closed to this server",
            Self::Full { .. } => "full",
            Self::ReadOnly { .. } => "read-only",
            Self::Loading { .. } => "loading",
            Self::Rejected { .. } => "not supported",
        }
    }
}
