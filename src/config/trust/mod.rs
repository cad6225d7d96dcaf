//! Trust in configuration files that were found, not named.
//!
//! * `allow_list`: the keys that such a file may have, by the table of keys. All others, including keys that are added
//!   later, require trust.
//! * `record`: the files that the user trusts, each identified by its path and the SHA-256 of its content

mod allow_list;
mod record;

pub use allow_list::{RestrictedKey, restricted_keys};
pub use record::{TrustError, TrustedFile, TrustedFiles};
