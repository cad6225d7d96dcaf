//! The projects of the store that a command means.

use crate::app::failure::Failure;
use crate::source::RecordStore;
use crate::source::documents::DocumentStore;
use crate::source::pdpp::DEFAULT_DEADLINE;

/// Opens the projects of a store.
pub(super) fn open(store: &dyn RecordStore) -> Result<Box<dyn DocumentStore>, Failure> {
    let name = "store".parse().map_err(|error| Failure::usage(&error))?;
    Ok(store.documents(name, DEFAULT_DEADLINE)?)
}
