//! Deletes searches that are older than their project keeps them.

use std::path::Path;
use std::time::Duration;

use fetchwell_source::contract::StoreError;

use super::commit;
use crate::database::Database;
use crate::documents::{delete_expired, has_expired};

/// Maximum time that a deletion waits for other writers.
const WRITE_TIMEOUT: Duration = Duration::from_secs(5);

/// Deletes the searches of a store that are older than their projects keep them. Returns their number. A store without such
/// searches is not written.
///
/// # Errors
///
/// The store cannot be opened or written.
pub fn delete_expired_searches(store: &Path) -> Result<usize, StoreError> {
    let database = Database::open(store)?;
    if !database.read(has_expired)? {
        return Ok(0);
    }
    commit::write(&database, WRITE_TIMEOUT, delete_expired)
}
