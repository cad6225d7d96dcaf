//! Every environment variable the program reads.

use secrecy::SecretString;

/// Variables that hold credentials of an owner.
pub(super) const OWNER_VARIABLES: [&str; 2] = ["PDPP_OWNER_TOKEN", "PDPP_OWNER_SESSION_COOKIE"];

/// What the environment says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Environment {
    /// `RUST_LOG`: the log filter, when `--log` is not given.
    pub log: Option<String>,
    /// The name of an owner credential that is set (`PDPP_OWNER_TOKEN` or `PDPP_OWNER_SESSION_COOKIE`).
    /// With one of these in reach nothing remote is served: what a model reads must be what a client was
    /// granted. The value is not read.
    pub owner_credential: Option<&'static str>,
}

/// Reads the environment of this process.
#[must_use]
pub fn environment() -> Environment {
    #[expect(clippy::disallowed_methods, reason = "this is the one place")]
    let is_set = |name: &&'static str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    #[expect(clippy::disallowed_methods, reason = "this is the one place")]
    let log = std::env::var("RUST_LOG").ok();
    Environment {
        log: log.filter(|filter| !filter.is_empty()),
        owner_credential: OWNER_VARIABLES.into_iter().find(is_set),
    }
}

impl Environment {
    /// The credential in a variable that the configuration names. It is kept as a secret from here on; what is
    /// not text is no token either, and is refused as one later.
    #[must_use]
    pub fn credential(&self, variable: &str) -> Option<SecretString> {
        #[expect(clippy::disallowed_methods, reason = "this is the one place")]
        let value = std::env::var_os(variable)?;
        Some(SecretString::from(value.to_string_lossy().into_owned()))
    }
}
