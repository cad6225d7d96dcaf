//! The URL of a database: `postgres://USER@HOST:PORT/DATABASE?sslmode=verify-full`.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use fetchwell_source::contract::PostgresError;
use fetchwell_source::is_database_url;
use percent_encoding::percent_decode_str;
use secrecy::{ExposeSecret, SecretString};
use url::Url;

/// Port of a server that the URL gives none.
const DEFAULT_PORT: u16 = 5432;

/// Address of a database, with the place of the password. `Display` and `Debug` show no user and no password.
#[derive(Clone)]
pub struct PostgresUrl {
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) user: Option<String>,
    pub(crate) database: String,
    password: PasswordPlace,
    pub(crate) ssl_mode: SslMode,
    pub(crate) root_certificate: Option<PathBuf>,
    /// True if a pooler gives each transaction a connection of its own, such as PgBouncer with `pool_mode = transaction`.
    pub(crate) is_pooled: bool,
}

/// Place of a password.
#[derive(Clone)]
pub enum PasswordPlace {
    /// The file that PGPASSFILE names, or `~/.pgpass`.
    PasswordFile,
    /// In the URL itself.
    Url(SecretString),
    /// In an environment variable.
    Variable(String),
    /// In a file of its own.
    File(PathBuf),
}

/// Encryption of the connection, as in libpq.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SslMode {
    /// Without any encryption.
    Disable,
    /// Encryption if the server has it, with any certificate.
    Prefer,
    /// Encryption with any certificate; with `sslrootcert`, as [`SslMode::VerifyCa`].
    Require,
    /// Encryption with a certificate of a known authority.
    VerifyCa,
    /// Encryption with a certificate of a known authority for the host.
    VerifyFull,
}

impl SslMode {
    /// Returns the value of `sslmode`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Disable => "disable",
            Self::Prefer => "prefer",
            Self::Require => "require",
            Self::VerifyCa => "verify-ca",
            Self::VerifyFull => "verify-full",
        }
    }

    fn parse(text: &str) -> Result<Self, String> {
        let modes = [Self::Disable, Self::Prefer, Self::Require, Self::VerifyCa, Self::VerifyFull];
        modes.into_iter().find(|mode| mode.as_str() == text).ok_or_else(|| {
            "has an unknown sslmode; it is disable, prefer, require, verify-ca or verify-full".to_owned()
        })
    }
}

impl PostgresUrl {
    /// Parses the place of a store; returns `None` for the path of a file.
    #[must_use]
    pub fn in_place_of(path: &Path) -> Option<Result<Self, PostgresError>> {
        let text = path.to_str().filter(|text| is_database_url(text))?;
        Some(text.parse())
    }

    /// Returns the place of the password.
    #[must_use]
    pub fn password(&self) -> &PasswordPlace {
        &self.password
    }

    /// Returns the URL with relative paths below a folder.
    #[must_use]
    pub fn below(mut self, folder: &Path) -> Self {
        if let PasswordPlace::File(path) = &mut self.password {
            *path = folder.join(&*path);
        }
        self.root_certificate = self.root_certificate.map(|path| folder.join(path));
        self
    }
}

impl FromStr for PostgresUrl {
    type Err = PostgresError;

    fn from_str(text: &str) -> Result<Self, PostgresError> {
        parse(text).map_err(|problem| PostgresError::InvalidUrl { problem })
    }
}

fn parse(text: &str) -> Result<PostgresUrl, String> {
    // The message of the parser could quote a part of the password.
    let url = Url::parse(text).map_err(|_quoted| "cannot be parsed".to_owned())?;
    let decoded = |part: &str| -> Result<String, String> {
        let text = percent_decode_str(part).decode_utf8();
        let text = text.map_err(|_invalid| "has a part that is not UTF-8".to_owned())?;
        if text.contains('\0') { Err("has a NUL character".to_owned()) } else { Ok(text.into_owned()) }
    };
    let database = decoded(url.path().trim_start_matches('/'))?;
    if database.is_empty() || database.contains('/') {
        return Err("names no database".to_owned());
    }
    let host = url.host_str().unwrap_or_default();
    let user = Some(decoded(url.username())?).filter(|user| !user.is_empty());
    let mut parsed = PostgresUrl {
        host: decoded(host.trim_start_matches('[').trim_end_matches(']'))?,
        port: url.port().unwrap_or(DEFAULT_PORT),
        user,
        database,
        password: url.password().map_or(Ok(PasswordPlace::PasswordFile), |text| place(&decoded(text)?))?,
        ssl_mode: SslMode::Prefer,
        root_certificate: None,
        is_pooled: false,
    };
    for (name, value) in url.query_pairs() {
        match &*name {
            "sslmode" => parsed.ssl_mode = SslMode::parse(&value)?,
            "sslrootcert" if !value.is_empty() => parsed.root_certificate = Some(PathBuf::from(&*value)),
            "password" => parsed.password = place(&value)?,
            "user" if !value.is_empty() => parsed.user = Some(value.into_owned()),
            "host" if !value.is_empty() => parsed.host = value.into_owned(),
            "pooler" => parsed.is_pooled = pooler(&value)?,
            "port" => parsed.port = value.parse().map_err(|_number| "has an invalid port".to_owned())?,
            _ => {
                return Err(
                    "has an unknown parameter; there are sslmode, sslrootcert, password, user, host, port and pooler"
                        .to_owned(),
                );
            }
        }
    }
    if parsed.host.is_empty() {
        return Err("names no host".to_owned());
    }
    Ok(parsed)
}

/// Parses the mode of a pooler. Connections that last for a session need no setting.
fn pooler(text: &str) -> Result<bool, String> {
    match text {
        "transaction" => Ok(true),
        "session" => Ok(false),
        _ => Err("has an unknown pooler; it is transaction or session".to_owned()),
    }
}

/// Parses a password: `env:NAME`, `file:PATH`, or the password itself.
fn place(text: &str) -> Result<PasswordPlace, String> {
    match text.split_once(':') {
        Some(("env", "")) => Err("has the password `env:` without the name of a variable".to_owned()),
        Some(("env", name)) => Ok(PasswordPlace::Variable(name.to_owned())),
        Some(("file", "")) => Err("has the password `file:` without a path".to_owned()),
        Some(("file", path)) => Ok(PasswordPlace::File(path.into())),
        _ => Ok(PasswordPlace::Url(SecretString::from(text.to_owned()))),
    }
}

impl fmt::Display for PostgresUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "postgres://{}:{}/{}", self.host, self.port, self.database)
    }
}

impl fmt::Debug for PostgresUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresUrl")
            .field("address", &self.to_string())
            .field("password", &self.password)
            .field("ssl_mode", &self.ssl_mode)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for PasswordPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PasswordFile => f.write_str("PasswordFile"),
            Self::Url(_) => f.write_str("Url(..)"),
            Self::Variable(name) => f.debug_tuple("Variable").field(name).finish(),
            Self::File(path) => f.debug_tuple("File").field(path).finish(),
        }
    }
}

impl PartialEq for PostgresUrl {
    fn eq(&self, other: &Self) -> bool {
        let parts = |url: &Self| {
            let Self { host, port, user, database, password, ssl_mode, root_certificate, is_pooled } =
                url.clone();
            let password = match password {
                PasswordPlace::PasswordFile => None,
                PasswordPlace::Url(secret) => Some(format!("url:{}", secret.expose_secret())),
                PasswordPlace::Variable(name) => Some(format!("env:{name}")),
                PasswordPlace::File(path) => Some(format!("file:{}", path.display())),
            };
            (host, port, user, database, password, ssl_mode, root_certificate, is_pooled)
        };
        parts(self) == parts(other)
    }
}

impl Eq for PostgresUrl {}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn url(text: &str) -> PostgresUrl {
        text.parse().unwrap()
    }

    #[test]
    fn parts_of_a_url_are_read() {
        let full =
            url("postgresql://ann:s%40cret@db.example:6432/mail?sslmode=verify-full&sslrootcert=ca.pem");
        assert_eq!((full.host.as_str(), full.port, full.database.as_str()), ("db.example", 6432, "mail"));
        assert_eq!((full.user.as_deref(), full.ssl_mode), (Some("ann"), SslMode::VerifyFull));
        assert_eq!(full.clone().below(Path::new("/etc")).root_certificate, Some("/etc/ca.pem".into()));
        assert!(matches!(full.password(), PasswordPlace::Url(secret) if secret.expose_secret() == "s@cret"));
        let minimal = url("postgres://[::1]/mail");
        assert_eq!((minimal.host.as_str(), minimal.port, minimal.ssl_mode), ("::1", 5432, SslMode::Prefer));
        assert!(url("postgres://h/d?pooler=transaction").is_pooled && !minimal.is_pooled);
        let socket = url("postgres:///mail?host=/var/run/postgresql&user=ann");
        assert_eq!((socket.host.as_str(), socket.user.as_deref()), ("/var/run/postgresql", Some("ann")));
    }

    #[test]
    fn places_of_passwords_are_read() {
        let place = |text: &str| format!("{:?}", url(text).password());
        assert_eq!(place("postgres://h/d"), "PasswordFile");
        assert_eq!(place("postgres://u:env:PG_PASSWORD@h/d"), r#"Variable("PG_PASSWORD")"#);
        assert_eq!(place("postgres://h/d?password=file:/run/secrets/pg"), r#"File("/run/secrets/pg")"#);
    }

    #[test]
    fn passwords_and_users_are_never_shown() {
        for text in ["postgres://ann:hunter2@h/d", "postgres://h/d?user=ann&password=hunter2"] {
            let shown = format!("{0} {0:?}", url(text));
            assert!(!shown.contains("hunter2") && !shown.contains("ann"), "{shown}");
        }
        for text in [
            "postgres://ann:hunter2@h",
            "postgres://ann:hunter2@h/d?sslmode=hunter2",
            "postgres://ann:hunter2@h:hunter2/d",
            "postgres://ann:hunter2@h/d?hunter2=1",
            "postgres://ann:hunter2@h/d?port=hunter2",
            "postgres://ann:hunter2@h/d?pooler=hunter2",
            "postgres:///d?password=hunter2",
        ] {
            let error = text.parse::<PostgresUrl>().unwrap_err();
            assert!(!format!("{error} {error:?}").contains("hunter2"), "{error}");
        }
    }

    #[test]
    fn paths_of_files_are_no_urls() {
        assert!(PostgresUrl::in_place_of(Path::new("notes.db")).is_none());
    }

    #[test]
    fn urls_with_another_password_differ() {
        assert_eq!(url("postgres://u:a@h/d"), url("postgresql://u:a@h:5432/d?sslmode=prefer"));
        assert_ne!(url("postgres://u:a@h/d"), url("postgres://u:b@h/d"));
    }
}
