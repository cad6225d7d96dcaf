//! Shows and makes the changes of the files of clients.

use std::path::{Path, PathBuf};

use fetchwell_core::terminal::Line;
use fetchwell_http::{ClientFileState, PlannedClient};
use serde::Serialize;

use super::super::client_config::{Client, Launch, snippet};
use super::super::print::{FAINT, GOOD, Printer, STRONG, UNSURE};
use super::choose::Chooser;
use super::clients::{ClientFileError, FileChange, FilePlan, ServerEntry};
use super::find::Home;
use crate::app::failure::Failure;

/// The results for all clients.
pub(super) struct ConfigureOutcome {
    pub(super) reports: Vec<ClientReport>,
    /// True if no file was refused.
    pub(super) is_complete: bool,
    /// True if a file would be changed, and was not.
    pub(super) is_open: bool,
}

/// The result for a client.
#[derive(Debug, Serialize)]
pub(super) struct ClientReport {
    client: &'static str,
    file: PathBuf,
    state: FileState,
    /// The changes, as lines with `-` and `+`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    diff: Vec<String>,
    /// The copy of the earlier file.
    #[serde(skip_serializing_if = "Option::is_none")]
    backup: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<Problem>,
}

/// State of a file after the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum FileState {
    /// The file had the command line.
    Current,
    Changed,
    Created,
    /// The file would be changed.
    Planned,
    /// The file is as it was.
    Refused,
}

/// The reason for which a file was not changed, and the snippet that the user adds to it.
#[derive(Debug, Serialize)]
struct Problem {
    code: &'static str,
    message: String,
    snippet: String,
}

/// Changes the files of the clients that the user allows, each after it was shown.
pub(super) fn configure(
    home: &Home,
    clients: &[Client],
    server: &ServerEntry,
    chooser: &Chooser,
    printer: Printer,
) -> Result<ConfigureOutcome, Failure> {
    let mut outcome = ConfigureOutcome { reports: Vec::new(), is_complete: true, is_open: false };
    for client in clients {
        let Some(file) = client.file() else { continue };
        let path = file.resolve(home.folders());
        let report = match FilePlan::read(home, *client, &path, server) {
            Ok(FilePlan::Current) => ClientReport::new(*client, path, FileState::Current),
            Ok(FilePlan::Change(change)) => changed(*client, path, &change, server, chooser, printer)?,
            Err(error) => refused(*client, path, &error, server),
        };
        if !printer.json {
            report.print(printer);
        }
        outcome.is_complete &= report.state != FileState::Refused;
        outcome.is_open |= report.state == FileState::Planned;
        outcome.reports.push(report);
    }
    Ok(outcome)
}

fn changed(
    client: Client,
    path: PathBuf,
    change: &FileChange,
    server: &ServerEntry,
    chooser: &Chooser,
    printer: Printer,
) -> Result<ClientReport, Failure> {
    let diff = change.lines();
    if !printer.json {
        print_change(printer, client, &path, change, &diff);
    }
    let mut report = if chooser.allows_change(client.title())? {
        match change.write() {
            Ok(backup) => {
                let state = if change.is_new() { FileState::Created } else { FileState::Changed };
                ClientReport { backup, ..ClientReport::new(client, path, state) }
            }
            Err(error) => refused(client, path, &error, server),
        }
    } else {
        ClientReport::new(client, path, FileState::Planned)
    };
    report.diff = diff;
    Ok(report)
}

fn refused(client: Client, path: PathBuf, error: &ClientFileError, server: &ServerEntry) -> ClientReport {
    let arguments = server.arguments.iter().filter(|word| *word != "--stdio").cloned().collect();
    let launch = Launch { program: server.command.clone(), arguments, variables: Vec::new() };
    let snippet = snippet(client, &launch).text;
    let problem = Problem { code: error.code(), message: error.to_string(), snippet };
    ClientReport { problem: Some(problem), ..ClientReport::new(client, path, FileState::Refused) }
}

fn print_change(printer: Printer, client: Client, path: &Path, change: &FileChange, diff: &[String]) {
    let title = Line::default().styled(STRONG, client.title());
    printer.styled(title.text(format_args!(": {}", path.display())));
    if let Some(target) = change.link_target() {
        let line = format!("a link to {}, which is changed", target.display());
        printer.styled(Line::default().styled(FAINT, line));
    }
    for line in diff {
        let style = match line.chars().next() {
            Some('+') => GOOD,
            Some('-') => UNSURE,
            _ => FAINT,
        };
        printer.styled(Line::default().styled(style, line));
    }
}

impl From<ClientReport> for PlannedClient {
    fn from(report: ClientReport) -> Self {
        let ClientReport { client, file, state, diff, backup, problem } = report;
        let written = backup.map(|path| path.display().to_string());
        let state = match (state, problem) {
            (FileState::Current, _) => ClientFileState::Current,
            (FileState::Changed | FileState::Created, _) => ClientFileState::Written(written),
            (FileState::Refused, Some(Problem { message, snippet, .. })) => {
                ClientFileState::Refused { reason: message, snippet }
            }
            (FileState::Planned | FileState::Refused, _) => ClientFileState::Planned,
        };
        Self { name: client.to_owned(), file: file.display().to_string(), state, diff }
    }
}

impl ClientReport {
    fn new(client: Client, file: PathBuf, state: FileState) -> Self {
        Self { client: client.title(), file, state, diff: Vec::new(), backup: None, problem: None }
    }

    fn print(&self, printer: Printer) {
        let Self { client, file, .. } = self;
        let file = file.display();
        match self.state {
            FileState::Current => printer.line(format_args!("{client}: {file} has fetchwell already")),
            FileState::Created => printer.line(format_args!("{client}: created; restart {client}")),
            FileState::Changed => {
                let backup = self.backup.as_deref().unwrap_or(Path::new("")).display();
                printer
                    .line(format_args!("{client}: changed; the earlier file is {backup}; restart {client}"));
            }
            FileState::Planned => printer.line(format_args!("{client}: not changed")),
            FileState::Refused => {
                let Some(problem) = &self.problem else { return };
                let message = &problem.message;
                let line = Line::default().styled(UNSURE, client);
                printer.styled(
                    line.text(format_args!(": {file} is left as it is: {message}. Add this yourself:")),
                );
                printer.lines(&problem.snippet);
            }
        }
    }
}
