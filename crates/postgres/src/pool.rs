//! Connections to one database: a bounded pool. Its first connection brings the tables up to date.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use deadpool_postgres::{Connect, Manager, ManagerConfig, Object, Pool, RecyclingMethod, Runtime};
use fetchwell_source::backend::PoolUsage;
use fetchwell_source::contract::PostgresError;
use futures_util::future::BoxFuture;
use secrecy::{ExposeSecret, SecretString};
use tokio::sync::OnceCell;
use tokio::task::JoinHandle;
use tokio_postgres::{Client, Config, Error};

use super::extension::migrate_documents;
use super::failure::{failure, pool_failure};
use super::migrations;
use super::password_file::{self, PasswordQuery};
use super::tls::PostgresTls;
use super::url::{PostgresUrl, SslMode};

/// Maximum number of connections of one process. A server has 100 by default, for all processes.
const MAX_CONNECTIONS: usize = 16;

/// Maximum time that a read waits for a free connection.
const WAIT_TIMEOUT: Duration = Duration::from_secs(2);

/// Maximum time of opening a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Connections to one database. Clones share them.
#[derive(Clone)]
pub struct PostgresPool {
    inner: Arc<Inner>,
}

struct Inner {
    url: PostgresUrl,
    config: Config,
    pool: Pool,
    tls: PostgresTls,
    /// Set when the tables are known to be of this release's version.
    migrated: OnceCell<()>,
}

impl fmt::Debug for PostgresPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresPool").field("url", &self.inner.url).finish_non_exhaustive()
    }
}

impl PostgresPool {
    /// Prepares connections. The first use connects. Without a `password` the password file is searched.
    ///
    /// # Errors
    ///
    /// The password file or the certificate of the authority cannot be read.
    pub fn new(
        url: &PostgresUrl,
        password: Option<&SecretString>,
        password_file: Option<&Path>,
    ) -> Result<Self, PostgresError> {
        let tls = PostgresTls::new(url)?;
        let mut config = Config::new();
        config.host(url.host.as_str()).port(url.port).dbname(url.database.as_str());
        config.application_name("fetchwell").connect_timeout(CONNECT_TIMEOUT);
        config.ssl_mode(match url.ssl_mode {
            SslMode::Disable => tokio_postgres::config::SslMode::Disable,
            SslMode::Prefer => tokio_postgres::config::SslMode::Prefer,
            SslMode::Require | SslMode::VerifyCa | SslMode::VerifyFull => {
                tokio_postgres::config::SslMode::Require
            }
        });
        if let Some(user) = &url.user {
            config.user(user.as_str());
        }
        match password {
            Some(password) => {
                config.password(password.expose_secret());
            }
            None => {
                if let Some(found) = password_in_file(url, password_file)? {
                    config.password(found);
                }
            }
        }
        Self::connecting(url.clone(), config, tls)
    }

    /// Returns connections to the same database that are not shared with these, for another runtime.
    ///
    /// # Errors
    ///
    /// There is no runtime.
    pub(crate) fn separate(&self) -> Result<Self, PostgresError> {
        let Inner { url, config, tls, .. } = &*self.inner;
        Self::connecting(url.clone(), config.clone(), tls.clone())
    }

    fn connecting(url: PostgresUrl, config: Config, tls: PostgresTls) -> Result<Self, PostgresError> {
        // A connection that the server or a proxy has closed is noticed only when it is used; such an error belongs to no call.
        let recycling = ManagerConfig { recycling_method: RecyclingMethod::Verified };
        let manager = Manager::from_connect(config.clone(), QuietConnect(tls.clone()), recycling);
        let pool = Pool::builder(manager)
            .max_size(MAX_CONNECTIONS)
            .wait_timeout(Some(WAIT_TIMEOUT))
            .create_timeout(Some(CONNECT_TIMEOUT))
            .recycle_timeout(Some(CONNECT_TIMEOUT))
            .runtime(Runtime::Tokio1)
            .build()
            .map_err(|_no_runtime| PostgresError::Timeout { database: url.to_string() })?;
        Ok(Self { inner: Arc::new(Inner { url, config, pool, tls, migrated: OnceCell::new() }) })
    }

    /// Returns the address of the database.
    #[must_use]
    pub fn url(&self) -> &PostgresUrl {
        &self.inner.url
    }

    pub(crate) fn tls(&self) -> PostgresTls {
        self.inner.tls.clone()
    }

    /// Returns a connection to a database with tables of this release's version, after creating or migrating them if
    /// necessary.
    pub(crate) async fn connection(&self) -> Result<Object, PostgresError> {
        let mut connection = self.unchecked_connection().await?;
        let url = self.url();
        let migrated = self.inner.migrated.get_or_try_init(async || {
            migrations::migrate(&mut connection, url).await?;
            migrate_documents(&mut connection, url).await
        });
        migrated.await?;
        Ok(connection)
    }

    /// Returns the numbers of open connections, of those that calls use now, and of calls that wait for one.
    #[must_use]
    pub fn usage(&self) -> PoolUsage {
        let status = self.inner.pool.status();
        PoolUsage {
            maximum: status.max_size,
            open: status.size,
            in_use: status.size.saturating_sub(status.available),
            waiting: status.waiting,
        }
    }

    /// Returns a connection whatever tables there are.
    pub(crate) async fn unchecked_connection(&self) -> Result<Object, PostgresError> {
        self.inner.pool.get().await.map_err(|error| pool_failure(self.url(), &error))
    }

    pub(crate) fn failure(&self, error: &Error) -> PostgresError {
        failure(self.url(), error)
    }
}

/// Returns the password of the role in the password file, if there is one.
fn password_in_file(url: &PostgresUrl, file: Option<&Path>) -> Result<Option<String>, PostgresError> {
    let (Some(file), Some(user)) = (file, &url.user) else { return Ok(None) };
    let problem = |problem: String| PostgresError::Secret { database: url.to_string(), problem };
    let text = match std::fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => {
            return Err(problem(format!("the password file {} cannot be read ({error})", file.display())));
        }
    };
    if is_exposed(file) {
        let file = file.display();
        return Err(problem(format!(
            "other users can read the password file {file}; run `chmod 600 {file}`"
        )));
    }
    let host = if url.host.starts_with('/') { "localhost" } else { &url.host };
    let wanted = PasswordQuery { host, port: url.port, database: &url.database, user };
    Ok(password_file::find(&text, &wanted))
}

/// Returns true if other users of the machine can read a file. libpq ignores such a password file.
fn is_exposed(file: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        std::fs::metadata(file).is_ok_and(|metadata| metadata.permissions().mode() & 0o077 != 0)
    }
    #[cfg(not(unix))]
    {
        let _ = file;
        false
    }
}

/// Opens connections without log lines: the failure of a connection is an error of the calls that use it.
struct QuietConnect(PostgresTls);

impl Connect for QuietConnect {
    fn connect(&self, config: &Config) -> BoxFuture<'_, Result<(Client, JoinHandle<()>), Error>> {
        let (tls, config) = (self.0.clone(), config.clone());
        Box::pin(async move {
            let (client, connection) = config.connect(tls).await?;
            let task = tokio::spawn(async move {
                let _reported_by_the_calls = connection.await;
            });
            Ok((client, task))
        })
    }
}
