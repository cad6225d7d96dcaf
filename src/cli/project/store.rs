//! The projects of the store that a command means.

use fetchwell_pdpp::DEFAULT_DEADLINE;
use fetchwell_source::RecordStore;
use fetchwell_source::documents::DocumentStore;

use crate::app::failure::Failure;

/// Opens the projects of a store.
pub(super) fn open(store: &dyn RecordStore) -> Result<Box<dyn DocumentStore>, Failure> {
    let name = "store".parse().map_err(|error| Failure::usage(&error))?;
    Ok(store.documents(name, DEFAULT_DEADLINE)?)
}
