//! Reports of open circuit breakers, from a running `serve` to `doctor`.
//!
//! The report is a file in the state directory that exists only while a circuit is open. It is rewritten every
//! second, so one that a killed process left behind is recognized by its age.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use fetchwell_http::AuthMode;
use fetchwell_source::federation::{CircuitReport, CircuitState};
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

/// Interval at which circuits are checked.
const REPORT_INTERVAL: Duration = Duration::from_secs(1);

/// Maximum age of a report; an older one is from a process that has ended.
const MAX_REPORT_AGE: Duration = Duration::from_secs(10);

/// Report of one process.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Report {
    process: u32,
    circuits: Vec<CircuitReport>,
}

/// Keeps the report of this process up to date until `stop` is cancelled.
pub(crate) async fn report(served: AuthMode, state: PathBuf, stop: CancellationToken) {
    let process = std::process::id();
    let file = state.join(format!("circuits-{process}.json"));
    let mut is_there = false;
    while stop.run_until_cancelled(tokio::time::sleep(REPORT_INTERVAL)).await.is_some() {
        let mut circuits = served.circuits();
        circuits.retain(|circuit| circuit.state != CircuitState::Closed);
        if circuits.is_empty() {
            if std::mem::take(&mut is_there) {
                let _ = fs::remove_file(&file);
            }
            continue;
        }
        // The report is optional: errors of the folder are ignored.
        is_there = replace(&state, &file, &Report { process, circuits }).is_ok();
    }
    if is_there {
        let _ = fs::remove_file(&file);
    }
}

/// Writes a report atomically, with mode 0600. A file of that name that is not a report is not replaced.
fn replace(state: &Path, file: &Path, report: &Report) -> io::Result<()> {
    let mut fresh = tempfile::NamedTempFile::new_in(state)?;
    fresh.write_all(&serde_json::to_vec(report)?)?;
    if read_report(file).is_some() {
        fresh.persist(file)?;
    } else {
        fresh.persist_noclobber(file)?;
    }
    Ok(())
}

/// Reads a report; returns `None` if the file is something else.
fn read_report(file: &Path) -> Option<Report> {
    let is_file = fs::symlink_metadata(file).ok()?.is_file();
    serde_json::from_slice(&is_file.then(|| fs::read(file).ok())??).ok()
}

/// Returns a sentence for each circuit that is not closed, of all running processes.
pub(crate) fn reported(state: &Path) -> Vec<String> {
    let Ok(folder) = fs::read_dir(state) else { return Vec::new() };
    let mut reported = Vec::new();
    for entry in folder.flatten() {
        let name = entry.file_name();
        let is_report =
            name.to_str().is_some_and(|name| name.starts_with("circuits-") && name.ends_with(".json"));
        let is_new = || {
            let modified = entry.metadata().and_then(|metadata| metadata.modified()).ok()?;
            Some(modified.elapsed().is_ok_and(|age| age < MAX_REPORT_AGE))
        };
        if !is_report || is_new() != Some(true) {
            continue;
        }
        let Some(Report { process, circuits }) = read_report(&entry.path()) else { continue };
        reported.extend(circuits.into_iter().map(|circuit| sentence(process, &circuit)));
    }
    reported.sort();
    reported
}

fn sentence(process: u32, circuit: &CircuitReport) -> String {
    let CircuitReport { source, state, failures, asked_again_after } = circuit;
    let then = match state {
        CircuitState::Open => format!("its next request is in {asked_again_after} s"),
        CircuitState::HalfOpen | CircuitState::Closed => "its next request is a probe".to_owned(),
    };
    format!("process {process} does not call `{source}` after {failures} failures in a row; {then}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_round_trip() {
        let state = tempfile::tempdir().unwrap();
        assert!(reported(state.path()).is_empty());
        let circuit = CircuitReport {
            source: "work".parse().unwrap(),
            state: CircuitState::Open,
            failures: 4,
            asked_again_after: 7,
        };
        let report = serde_json::to_vec(&Report { process: 12, circuits: vec![circuit] }).unwrap();
        fs::write(state.path().join("circuits-12.json"), report).unwrap();
        fs::write(state.path().join("circuits-13.json"), "half").unwrap();
        assert_eq!(
            reported(state.path()),
            ["process 12 does not call `work` after 4 failures in a row; its next request is in 7 s"]
        );
        assert!(reported(&state.path().join("nowhere")).is_empty());
    }

    #[test]
    fn report_replaces_only_a_report() {
        let state = tempfile::tempdir().unwrap();
        let file = state.path().join("circuits-12.json");
        let report = |process| Report { process, circuits: Vec::new() };
        replace(state.path(), &file, &report(11)).unwrap();
        replace(state.path(), &file, &report(12)).unwrap();
        assert_eq!(read_report(&file), Some(report(12)));
        fs::write(&file, "dear Ann").unwrap();
        assert!(replace(state.path(), &file, &report(13)).is_err());
        assert_eq!(fs::read_to_string(&file).unwrap(), "dear Ann");
        assert_eq!(fs::read_dir(state.path()).unwrap().count(), 1);
    }
}
