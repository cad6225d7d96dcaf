//! The connection to a shared Redis, which all calls of a process use at once.
//!
//! It is opened by the first command. When it has broken, the next command opens it again, at most every
//! [`RETRY_INTERVAL`]; commands between fail at once, so that a server that is down delays no call twice.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fetchwell_core::fit::first_characters;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Cmd, ErrorKind, FromRedisValue, RedisConnectionInfo, ServerErrorKind};
use secrecy::{ExposeSecret, SecretString};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::Mutex;
use tokio::task::AbortHandle;
use tokio::time::timeout;

use super::error::RedisError;
use super::status::{Counters, RedisStatus, StateCounts};
use super::tls::RedisTls;
use super::url::RedisUrl;

/// Maximum time for opening a connection, signing in included.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);

/// Maximum time for a command.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(1);

/// Time after a failed connection or a timeout in which no other attempt is made.
const RETRY_INTERVAL: Duration = Duration::from_millis(500);

/// Start of the errors of scripts with commands or keys that the user may not use.
const FORBIDDEN_IN_SCRIPT: &str = "The user executing the script can't";

/// A shared Redis. Clones share the connection.
#[derive(Clone)]
pub struct RedisState(Arc<Inner>);

struct Inner {
    url: RedisUrl,
    info: RedisConnectionInfo,
    tls: Option<RedisTls>,
    link: Mutex<Link>,
    counters: Counters,
}

/// State of the connection.
enum Link {
    /// No connection was opened yet, or the last one has ended.
    Closed,
    Open(OpenLink),
    /// The last attempt failed; the next one is made after `until`.
    Failed {
        until: Instant,
        error: RedisError,
    },
}

#[derive(Clone)]
struct OpenLink {
    connection: MultiplexedConnection,
    /// Task that sends and receives. It ends with the connection.
    driver: Arc<DriverHandle>,
}

/// Ends the task of a connection when its last user is gone.
struct DriverHandle(AbortHandle);

impl Drop for DriverHandle {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl fmt::Debug for RedisState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RedisState").field(&self.0.url.to_string()).finish()
    }
}

impl RedisState {
    /// Prepares the connection; nothing is sent.
    ///
    /// # Errors
    ///
    /// The certificates of the authorities cannot be read.
    pub fn new(url: RedisUrl, password: Option<&SecretString>) -> Result<Self, RedisError> {
        let tls = RedisTls::new(&url)?;
        let mut info = RedisConnectionInfo::default().set_db(url.database.into()).set_skip_set_lib_name();
        if let Some(user) = &url.user {
            info = info.set_username(user);
        }
        if let Some(password) = password {
            info = info.set_password(password.expose_secret());
        }
        let (link, counters) = (Mutex::new(Link::Closed), Counters::default());
        Ok(Self(Arc::new(Inner { url, info, tls, link, counters })))
    }

    /// Returns the address.
    #[must_use]
    pub fn url(&self) -> &RedisUrl {
        &self.0.url
    }

    /// Returns the counts of this process.
    #[must_use]
    pub fn counts(&self) -> StateCounts {
        self.0.counters.counts()
    }

    /// Returns the full name of a key.
    pub(super) fn key(&self, kind: &str, name: &str) -> String {
        format!("{}:{kind}:{name}", self.0.url.prefix)
    }

    /// Connects and returns the condition of the server.
    ///
    /// # Errors
    ///
    /// The server cannot be used.
    pub async fn check(&self) -> Result<RedisStatus, RedisError> {
        let now = self.time().await?;
        // Providers of hosted servers often forbid these commands.
        let server: String = self.run(Cmd::new().arg("INFO").arg("server")).await.unwrap_or_default();
        let memory: String = self.run(Cmd::new().arg("INFO").arg("memory")).await.unwrap_or_default();
        let line = |text: &str, name: &str| {
            text.lines().find_map(|line| line.strip_prefix(name)).map(|value| value.trim().to_owned())
        };
        Ok(RedisStatus {
            version: line(&server, "redis_version:").unwrap_or_else(|| "of unknown version".to_owned()),
            is_encrypted: self.0.url.is_encrypted,
            eviction: line(&memory, "maxmemory_policy:"),
            now,
        })
    }

    /// Runs a command within its timeout. A command that failed may have been executed.
    ///
    /// # Errors
    ///
    /// The server cannot be reached, is too slow, or rejects the command.
    pub(super) async fn run<Value: FromRedisValue>(&self, command: &Cmd) -> Result<Value, RedisError> {
        let outcome = self.run_uncounted(command).await;
        self.0.counters.count(&outcome);
        outcome
    }

    async fn run_uncounted<Value: FromRedisValue>(&self, command: &Cmd) -> Result<Value, RedisError> {
        let OpenLink { mut connection, driver } = self.link().await?;
        let Ok(answer) = timeout(COMMAND_TIMEOUT, command.query_async::<Value>(&mut connection)).await else {
            let error = RedisError::Timeout { server: self.0.url.to_string() };
            self.close(&driver, Some(error.clone())).await;
            return Err(error);
        };
        match answer {
            Ok(value) => Ok(value),
            Err(error) => {
                let is_broken = error.is_io_error() || error.is_unrecoverable_error();
                let error = self.converted(&error);
                if is_broken || matches!(error, RedisError::ReadOnly { .. }) {
                    self.close(&driver, None).await;
                }
                Err(error)
            }
        }
    }

    /// Returns the open connection, or opens one. Other calls wait for the attempt and share its result.
    async fn link(&self) -> Result<OpenLink, RedisError> {
        let mut link = self.0.link.lock().await;
        match &*link {
            Link::Open(open) if !open.driver.0.is_finished() => return Ok(open.clone()),
            Link::Failed { until, error } if Instant::now() < *until => return Err(error.clone()),
            Link::Open(_) | Link::Failed { .. } | Link::Closed => {}
        }
        let opened = match timeout(CONNECT_TIMEOUT, self.open()).await {
            Ok(opened) => opened,
            Err(_elapsed) => Err(RedisError::Timeout { server: self.0.url.to_string() }),
        };
        match opened {
            Ok(open) => {
                *link = Link::Open(open.clone());
                Ok(open)
            }
            Err(error) => {
                *link = Link::Failed { until: Instant::now() + RETRY_INTERVAL, error: error.clone() };
                Err(error)
            }
        }
    }

    async fn open(&self) -> Result<OpenLink, RedisError> {
        let url = &self.0.url;
        let stream = match url.host.parse::<IpAddr>() {
            Ok(address) => TcpStream::connect((address, url.port)).await,
            Err(_name) => TcpStream::connect((url.host.as_str(), url.port)).await,
        };
        let stream = stream.and_then(|stream| stream.set_nodelay(true).map(|()| stream));
        let stream = stream.map_err(|error| RedisError::Unreachable {
            server: url.to_string(),
            problem: error.to_string(),
        })?;
        match &self.0.tls {
            None => self.sign_in(stream).await,
            Some(tls) => self.sign_in(tls.encrypt(stream).await?).await,
        }
    }

    async fn sign_in<Stream>(&self, stream: Stream) -> Result<OpenLink, RedisError>
    where
        Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        // Timeouts are those of this module.
        let config = AsyncConnectionConfig::new().set_response_timeout(None).set_connection_timeout(None);
        let connected = MultiplexedConnection::new_with_config(&self.0.info, stream, config).await;
        let (mut connection, driver) = connected.map_err(|error| self.converted(&error))?;
        let driver = Arc::new(DriverHandle(tokio::spawn(driver).abort_handle()));
        // A server that wants a password answers a script with a protocol error, and a short command with the reason.
        let checked: Result<redis::Value, _> = Cmd::new().arg("TIME").query_async(&mut connection).await;
        checked.map_err(|error| self.converted(&error))?;
        Ok(OpenLink { connection, driver })
    }

    /// Forgets a connection, unless another call has replaced it.
    async fn close(&self, driver: &Arc<DriverHandle>, error: Option<RedisError>) {
        let mut link = self.0.link.lock().await;
        if matches!(&*link, Link::Open(open) if Arc::ptr_eq(&open.driver, driver)) {
            *link = match error {
                None => Link::Closed,
                Some(error) => Link::Failed { until: Instant::now() + RETRY_INTERVAL, error },
            };
        }
    }

    /// Converts an error of the client.
    fn converted(&self, error: &redis::RedisError) -> RedisError {
        let server = self.0.url.to_string();
        match (error.kind(), error.code()) {
            (ErrorKind::AuthenticationFailed, _) | (_, Some("NOAUTH" | "WRONGPASS")) => {
                RedisError::Password { server }
            }
            (ErrorKind::Server(ServerErrorKind::NoPerm), _) => RedisError::NoPermission { server },
            // Redis 7 reports the commands that a user may not run in a script under a common code.
            (_, Some("ERR")) if error.detail().is_some_and(|text| text.contains(FORBIDDEN_IN_SCRIPT)) => {
                RedisError::NoPermission { server }
            }
            (ErrorKind::Server(ServerErrorKind::ReadOnly), _) => RedisError::ReadOnly { server },
            (ErrorKind::Server(ServerErrorKind::BusyLoading), _) | (_, Some("MASTERDOWN")) => {
                RedisError::Loading { server }
            }
            (_, Some("OOM")) => RedisError::Full { server },
            (ErrorKind::Io, _) => {
                RedisError::Unreachable { server, problem: "the connection was closed".to_owned() }
            }
            (_, code) => {
                let code = first_characters(code.unwrap_or("unexpected reply"), 32).to_owned();
                RedisError::Rejected { server, code }
            }
        }
    }
}
