//! The import of bundled sample data into a store.

use std::fmt;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use fetchwell_connectors::{ImportError, Intake, Report};
use fetchwell_core::handle::ConnectionId;
use fetchwell_source::contract::{ImportResult, NewConnection};
use fetchwell_source::{ImportTarget, Manifest};
use fetchwell_state::create_private_directory;

/// One account of a sample.
#[derive(Debug, Clone, Copy)]
pub struct SampleAccount {
    /// Id of its connection.
    pub id: &'static str,
    /// Label of its connection.
    pub label: &'static str,
    /// Manifest of its connector, as JSON.
    pub manifest: &'static str,
}

/// Imports the records that `fill` passes to the intake, into a store that is created if necessary. Returns the
/// number of records. Importing the same data again changes nothing.
///
/// # Errors
///
/// The store cannot be created or written.
pub fn import_account(
    store: &dyn ImportTarget,
    account: SampleAccount,
    fill: impl FnOnce(&mut Intake<'_>) -> Result<(), ImportError>,
) -> Result<u64, ImportError> {
    if let Some(folder) = store.path().and_then(Path::parent) {
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
    let (mut report, never) = (SampleReport, AtomicBool::new(false));
    let mut intake = Intake::new(store, connection, Some(manifest), &mut report, &never);
    fill(&mut intake)?;
    let (ImportResult { tally, index_problem }, _) = intake.finish()?;
    index_problem.map_or(Ok(()), Err)?;
    Ok(tally.added + tally.changed + tally.unchanged)
}

fn broken(problem: &dyn fmt::Display) -> ImportError {
    ImportError::BrokenSample { problem: problem.to_string() }
}

/// The report for samples, in which a rejection is a bug.
struct SampleReport;

impl Report for SampleReport {
    fn rejected(&mut self, place: &dyn fmt::Display, reason: &str) {
        tracing::error!(%place, reason, "a record of the sample data was refused");
    }
}
