//! Trust in configuration files that were found and not named.
//!
//! * `allow_list` says which keys such a file may have. Every other key needs trust, also one that is added later.
//! * `record` keeps the files that the user trusts, each by its path and the SHA-256 of its content.

mod allow_list;
mod record;

pub use allow_list::{RestrictedKey, restricted_keys};
pub use record::{TrustError, TrustedFile, TrustedFiles};

#[cfg(test)]
mod tests;
