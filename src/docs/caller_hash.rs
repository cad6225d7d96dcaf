//! The hash by which the history knows the caller of a search.

use sha2::{Digest, Sha256};

use crate::callers::GrantId;
use crate::hex::hexadecimal;
use crate::source::documents::Uuid;

/// Number of bytes of a hash.
const HASH_BYTES: usize = 16;

/// Returns the hash of a search and its caller. It differs from search to search, so that a history does not tell which
/// searches are of one caller.
pub(super) fn caller_hash(search: Uuid, caller: GrantId) -> String {
    hexadecimal(Sha256::digest(format!("{search} {caller}")).iter().take(HASH_BYTES))
}
