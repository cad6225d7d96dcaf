//! Secrets and credentials of the configuration.

use fetchwell_callers::GrantToken;
use fetchwell_pdpp::{Credentials, ProviderUrl};
use fetchwell_postgres::{PasswordPlace, PostgresPool, PostgresUrl};
use fetchwell_source::contract::PostgresError;
use secrecy::SecretString;

use super::failure::Failure;
use crate::config::{CredentialSettings, Environment, SecretPlace};

/// Maximum size in bytes of a secret in a file.
const MAX_SECRET_BYTES: u64 = 64 * 1024;

/// Reads the secret of a table of the configuration.
pub(crate) fn secret(
    place: &SecretPlace,
    environment: &Environment,
    table: &str,
) -> Result<SecretString, Failure> {
    let text = match place {
        SecretPlace::Variable(name) => environment.credential(name).ok_or_else(|| {
            Failure::new(format!("the environment variable `{name}`, for {table}, is not set"))
        })?,
        SecretPlace::File(path) => {
            let unreadable = |problem: std::io::Error| {
                Failure::new(format!("the secret in {} cannot be read ({problem})", path.display()))
            };
            let size = std::fs::metadata(path).map_err(unreadable)?.len();
            if size > MAX_SECRET_BYTES {
                return Err(Failure::new(format!("{} is too large to be a secret", path.display())));
            }
            SecretString::from(std::fs::read_to_string(path).map_err(unreadable)?.trim().to_owned())
        }
    };
    Ok(text)
}

/// Prepares the connections to a database, with the password that its URL or the password file has.
pub(crate) fn postgres_pool(
    url: &PostgresUrl,
    environment: &Environment,
) -> Result<PostgresPool, PostgresError> {
    let place = match url.password() {
        PasswordPlace::Url(password) => return PostgresPool::new(url, Some(password), None),
        PasswordPlace::PasswordFile => {
            let file = environment.postgres_password_file();
            return PostgresPool::new(url, None, file.as_deref());
        }
        PasswordPlace::Variable(name) => SecretPlace::Variable(name.clone()),
        PasswordPlace::File(path) => SecretPlace::File(path.clone()),
    };
    let password = secret(&place, environment, "the password of the store")
        .map_err(|failure| PostgresError::Secret { database: url.to_string(), problem: failure.message })?;
    PostgresPool::new(url, Some(&password), None)
}

/// Returns the credentials that the settings of a source name.
pub(crate) fn credentials(
    url: &ProviderUrl,
    settings: &CredentialSettings,
    environment: &Environment,
) -> Credentials {
    match settings {
        CredentialSettings::PdppCache(root) => Credentials::new(url, root),
        CredentialSettings::Variable(name) => {
            Credentials::in_variable(url, name.clone(), environment.credential(name))
        }
        CredentialSettings::File(path) => Credentials::in_file(url, path.clone()),
        CredentialSettings::Command(line) => Credentials::printed_by(url, line.clone()),
        CredentialSettings::Caller => Credentials::of_caller(url, GrantToken::default()),
    }
}
