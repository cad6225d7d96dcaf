//! The hash by which the history knows the caller of a search.

use fetchwell_callers::GrantId;
use fetchwell_core::hex::hexadecimal;
use fetchwell_source::documents::Uuid;
use sha2::{Digest, Sha256};

/// Number of bytes of a hash.
const HASH_BYTES: usize = 16;

/// Returns the hash of a search and its caller. It differs from search to search, so that a history does not tell which
/// searches are of one caller.
pub(super) fn caller_hash(search: Uuid, caller: GrantId) -> String {
    hexadecimal(Sha256::digest(format!("{search} {caller}")).iter().take(HASH_BYTES))
}
