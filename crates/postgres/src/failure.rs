//! Converts errors of the client and of the server to those of a store.

use std::error::Error as _;

use deadpool_postgres::{PoolError, TimeoutType};
use fetchwell_source::contract::PostgresError;
use tokio_postgres::Error;
use tokio_postgres::error::SqlState;

use super::tls::TlsError;
use super::url::{PostgresUrl, SslMode};

/// Converts an error of a statement or of a connection.
pub(crate) fn failure(url: &PostgresUrl, error: &Error) -> PostgresError {
    let database = url.to_string();
    let Some(code) = error.code() else { return broken(url, error) };
    match *code {
        SqlState::INVALID_PASSWORD => PostgresError::Password { database },
        SqlState::INVALID_AUTHORIZATION_SPECIFICATION => {
            let is_plain = matches!(url.ssl_mode, SslMode::Disable | SslMode::Prefer);
            let unencrypted =
                if is_plain { "; if it requires TLS, add sslmode=require to the URL" } else { "" };
            PostgresError::Forbidden { database, unencrypted }
        }
        SqlState::INVALID_CATALOG_NAME => PostgresError::NoDatabase { database },
        SqlState::TOO_MANY_CONNECTIONS => PostgresError::TooManyConnections { database },
        SqlState::CANNOT_CONNECT_NOW | SqlState::ADMIN_SHUTDOWN | SqlState::CRASH_SHUTDOWN => {
            PostgresError::Stopping { database }
        }
        SqlState::INSUFFICIENT_PRIVILEGE => PostgresError::NoPermission { database },
        SqlState::READ_ONLY_SQL_TRANSACTION => PostgresError::ReadOnly { database },
        SqlState::DISK_FULL => PostgresError::DiskFull { database },
        SqlState::QUERY_CANCELED | SqlState::LOCK_NOT_AVAILABLE => PostgresError::Timeout { database },
        SqlState::DUPLICATE_PSTATEMENT | SqlState::INVALID_SQL_STATEMENT_NAME if !url.is_pooled => {
            PostgresError::Pooler { database }
        }
        _ => PostgresError::Statement { database, code: code.code().to_owned() },
    }
}

/// Converts an error that the server did not send.
fn broken(url: &PostgresUrl, error: &Error) -> PostgresError {
    let database = url.to_string();
    let mut cause: Option<&(dyn std::error::Error + 'static)> = error.source();
    let mut innermost = None;
    while let Some(deeper) = cause {
        if let Some(TlsError(problem)) = deeper.downcast_ref::<TlsError>() {
            return PostgresError::Tls { database, mode: url.ssl_mode.as_str(), problem: problem.clone() };
        }
        innermost = Some(deeper);
        cause = deeper.source();
    }
    match innermost {
        // A failed login without a password, and an error of the system, have no other mark.
        Some(cause) if cause.downcast_ref::<std::io::Error>().is_some() || error.is_closed() => {
            PostgresError::Unreachable { database, problem: cause.to_string() }
        }
        None if error.is_closed() => {
            PostgresError::Unreachable { database, problem: "the connection is closed".to_owned() }
        }
        Some(cause) if cause.to_string() == NO_TLS => {
            PostgresError::Tls { database, mode: url.ssl_mode.as_str(), problem: NO_TLS.to_owned() }
        }
        Some(cause) if cause.to_string() == NO_PASSWORD => PostgresError::Password { database },
        other => {
            let problem = other.map_or_else(|| error.to_string(), ToString::to_string);
            PostgresError::Unreachable { database, problem }
        }
    }
}

/// Message of the client for a server without TLS, if `sslmode` requires it.
const NO_TLS: &str = "server does not support TLS";

/// Message of the client for a server that asks for a password, if there is none.
const NO_PASSWORD: &str = "password missing";

/// Converts an error of the pool of connections.
pub(crate) fn pool_failure(url: &PostgresUrl, error: &PoolError) -> PostgresError {
    let database = url.to_string();
    match error {
        PoolError::Backend(error) => failure(url, error),
        PoolError::Timeout(TimeoutType::Create) => {
            PostgresError::Unreachable { database, problem: "the connection takes too long".to_owned() }
        }
        PoolError::Timeout(TimeoutType::Wait | TimeoutType::Recycle)
        | PoolError::Closed
        | PoolError::NoRuntimeSpecified
        | PoolError::PostCreateHook(_) => PostgresError::Timeout { database },
    }
}
