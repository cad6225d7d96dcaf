//! The URL of a Redis: `rediss://USER@HOST:PORT/NUMBER?password=env:NAME`.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use percent_encoding::percent_decode_str;
use url::Url;

use super::error::RedisError;

/// Port of a server that the URL gives none.
const DEFAULT_PORT: u16 = 6379;

/// Prefix of all keys, unless the URL names another one.
const DEFAULT_PREFIX: &str = "fetchwell";

/// Maximum length of a prefix in bytes. Every key begins with it.
const MAX_PREFIX_BYTES: usize = 64;

/// Address of a Redis, with the place of the password. `Display` shows no user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RedisUrl {
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) database: u16,
    pub(super) user: Option<String>,
    pub(super) is_encrypted: bool,
    /// File with the certificates of authorities, instead of those of the web.
    pub(super) authorities: Option<PathBuf>,
    pub(super) prefix: String,
    password: Option<PasswordSource>,
}

/// Place of the password. It is never in the URL itself, which other users of the machine can read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PasswordSource {
    /// In an environment variable.
    Variable(String),
    /// In a file.
    File(PathBuf),
}

impl RedisUrl {
    /// Returns the place of the password, if the server needs one.
    #[must_use]
    pub fn password(&self) -> Option<&PasswordSource> {
        self.password.as_ref()
    }

    /// Returns the URL with relative paths below a folder.
    #[must_use]
    pub fn below(mut self, folder: &Path) -> Self {
        if let Some(PasswordSource::File(path)) = &mut self.password {
            *path = folder.join(&*path);
        }
        self.authorities = self.authorities.map(|path| folder.join(path));
        self
    }
}

impl FromStr for RedisUrl {
    type Err = RedisError;

    fn from_str(text: &str) -> Result<Self, RedisError> {
        parse(text).map_err(|problem| RedisError::InvalidUrl { problem })
    }
}

fn parse(text: &str) -> Result<RedisUrl, String> {
    // The message of the parser could quote a part of the password.
    let url = Url::parse(text).map_err(|_quoted| "cannot be parsed".to_owned())?;
    let is_encrypted = match url.scheme() {
        "redis" => false,
        "rediss" => true,
        _ => return Err("has another scheme".to_owned()),
    };
    let decoded = |part: &str| -> Result<String, String> {
        let text = percent_decode_str(part).decode_utf8();
        text.map(Into::into).map_err(|_invalid| "has a part that is not UTF-8".to_owned())
    };
    let host = decoded(url.host_str().unwrap_or_default())?;
    if host.is_empty() {
        return Err("names no host".to_owned());
    }
    let database = match url.path().trim_start_matches('/') {
        "" => 0,
        number => {
            number.parse().map_err(|_word| "has a path that is not the number of a database".to_owned())?
        }
    };
    let mut parsed = RedisUrl {
        host: host.trim_start_matches('[').trim_end_matches(']').to_owned(),
        port: url.port().unwrap_or(DEFAULT_PORT),
        database,
        user: Some(decoded(url.username())?).filter(|user| !user.is_empty()),
        is_encrypted,
        authorities: None,
        prefix: DEFAULT_PREFIX.to_owned(),
        password: url.password().map(|text| password(&decoded(text)?)).transpose()?,
    };
    for (name, value) in url.query_pairs() {
        match &*name {
            "password" => parsed.password = Some(password(&value)?),
            "ca" if !value.is_empty() && is_encrypted => parsed.authorities = Some(PathBuf::from(&*value)),
            "prefix" => parsed.prefix = prefix(&value)?,
            "ca" => return Err("has `ca`, which is a file and needs rediss://".to_owned()),
            _ => return Err("has an unknown parameter; there are password, ca and prefix".to_owned()),
        }
    }
    Ok(parsed)
}

/// Parses the place of a password: `env:NAME` or `file:PATH`.
fn password(text: &str) -> Result<PasswordSource, String> {
    match text.split_once(':') {
        Some(("env", name)) if !name.is_empty() => Ok(PasswordSource::Variable(name.to_owned())),
        Some(("file", path)) if !path.is_empty() => Ok(PasswordSource::File(path.into())),
        // The value may be the password itself.
        _ => Err("has a password that is not `env:NAME` or `file:PATH`".to_owned()),
    }
}

fn prefix(text: &str) -> Result<String, String> {
    let is_valid = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':');
    if text.is_empty() || text.len() > MAX_PREFIX_BYTES || !text.chars().all(is_valid) {
        return Err("has a prefix that is not 1 to 64 letters, digits and characters of `-_.:`".to_owned());
    }
    Ok(text.to_owned())
}

impl fmt::Display for RedisUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_encrypted { "rediss" } else { "redis" };
        let (open, close) = if self.host.contains(':') { ("[", "]") } else { ("", "") };
        write!(f, "{scheme}://{open}{}{close}:{}/{}", self.host, self.port, self.database)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn url(text: &str) -> RedisUrl {
        text.parse().unwrap()
    }

    #[test]
    fn parts_of_a_url_are_read() {
        let full = url("rediss://ann:env:REDIS_PASSWORD@cache.example:6380/2?ca=ca.pem&prefix=team-a");
        assert_eq!(full.to_string(), "rediss://cache.example:6380/2");
        assert_eq!((full.user.as_deref(), full.prefix.as_str()), (Some("ann"), "team-a"));
        assert_eq!(full.password(), Some(&PasswordSource::Variable("REDIS_PASSWORD".to_owned())));
        assert_eq!(full.below(Path::new("/etc")).authorities, Some("/etc/ca.pem".into()));
        let minimal = url("redis://[::1]");
        assert_eq!((minimal.to_string().as_str(), minimal.password()), ("redis://[::1]:6379/0", None));
        let file = url("redis://h/0?password=file:redis-password").below(Path::new("/etc"));
        assert_eq!(file.password(), Some(&PasswordSource::File("/etc/redis-password".into())));
    }

    #[test]
    fn invalid_urls_are_rejected_without_their_password() {
        for text in [
            "redis://:hunter2@h",
            "redis://ann:hunter2@h/0",
            "redis://h/0?password=hunter2",
            "redis://h/hunter2",
            "redis://h:hunter2/0",
            "redis://h/0?hunter2=1",
            "redis://h/0?ca=hunter2",
            "redis://h/0?prefix=hunter2%20",
            "http://:hunter2@h",
            "redis:///0?password=env:hunter2",
            "hunter2",
        ] {
            let error = text.parse::<RedisUrl>().unwrap_err();
            assert!(!format!("{error} {error:?}").contains("hunter2"), "{error}");
            assert!(error.to_string().contains("redis://HOST"), "{error}");
        }
    }
}
