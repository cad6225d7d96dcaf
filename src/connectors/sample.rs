//! Sample data of ours on its way into a store: what every bundled sample has in common.

use std::fmt;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use super::{ImportError, Intake, Report};
use crate::handle::ConnectionId;
use crate::source::store::{Imported, Manifest, NewConnection};
use crate::state::create_private_directory;

/// One account of a sample.
#[derive(Debug, Clone, Copy)]
pub struct SampleAccount {
    /// Its connection.
    pub id: &'static str,
    /// What people call it.
    pub label: &'static str,
    /// Its connector's manifest.
    pub manifest: &'static str,
}

/// Imports what `fill` hands over, into a store that is made where there is none. Says how many records there are;
/// importing the same again changes nothing.
///
/// # Errors
///
/// The store cannot be made or written.
pub fn import_account(
    store: &Path,
    account: SampleAccount,
    fill: impl FnOnce(&mut Intake<'_>) -> Result<(), ImportError>,
) -> Result<u64, ImportError> {
    if let Some(folder) = store.parent() {
        create_private_directory(folder)
            .map_err(|error| ImportError::NoFolder { path: folder.to_owned(), problem: error.to_string() })?;
    }
    let connection_id: ConnectionId = account.id.parse().map_err(|problem| broken(&problem))?;
    let manifest = Manifest::parse(account.manifest).map_err(|problem| broken(&problem))?;
    let connection = NewConnection {
        connection_id,
        connector_key: manifest.connector_key().unwrap_or_default().to_owned(),
        display_name: Some(account.label.to_owned()),
        manifest: Some(manifest.text().to_owned()),
    };
    let (mut report, never) = (Unexpected, AtomicBool::new(false));
    let mut intake = Intake::new(store, connection, Some(manifest), &mut report, &never);
    fill(&mut intake)?;
    let (Imported { tally, index_problem }, _) = intake.finish()?;
    index_problem.map_or(Ok(()), Err)?;
    Ok(tally.added + tally.changed + tally.unchanged)
}

fn broken(problem: &dyn fmt::Display) -> ImportError {
    ImportError::BrokenSample { problem: problem.to_string() }
}

/// The samples are ours and have no record that is refused.
struct Unexpected;

impl Report for Unexpected {
    fn rejected(&mut self, place: &dyn fmt::Display, reason: &str) {
        tracing::error!(%place, reason, "a record of the sample data was refused");
    }
}
