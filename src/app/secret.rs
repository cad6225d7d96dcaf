//! Secrets of the configuration: read from an environment variable or a file.

use secrecy::SecretString;

use super::failure::Failure;
use crate::config::{Environment, SecretPlace};

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
