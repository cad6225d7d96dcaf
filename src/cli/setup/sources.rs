//! The MCP servers of clients that become sources, and the command line of fetchwell that clients get.

use std::path::{Path, PathBuf};

use fetchwell_core::terminal::output::note;
use serde_json::{Value, json};

use super::super::client_config::{absolute, program};
use super::super::print::Printer;
use super::choose::Chooser;
use super::clients::ServerEntry;
use super::find::Home;
use super::servers::{FoundServers, McpCandidate, SourceReport, UserConfig, add_servers, find_servers};
use crate::app::failure::Failure;
use crate::config::Environment;

/// The servers of clients, and the user's configuration that they are added to.
#[derive(Debug, Clone, Default)]
pub(super) struct SourceSetup {
    /// The configuration, or `None` if it cannot be read.
    config: Option<UserConfig>,
    /// The reason for which it cannot be read.
    problem: Option<String>,
    /// True if a server of the configuration reads everything that there was before this command.
    was_complete: bool,
    found: FoundServers,
    reports: Vec<SourceReport>,
    /// True if sources would be added.
    is_planned: bool,
    /// True if the configuration could not be changed.
    has_failed: bool,
}

impl SourceSetup {
    /// Reads the user's configuration. No source is added to one that is not valid.
    pub(super) fn read(store: &Path) -> Self {
        match UserConfig::read() {
            Ok(config) => {
                let was_complete = config.is_complete(store);
                Self { config: Some(config), was_complete, ..Self::default() }
            }
            Err(failure) => Self { problem: Some(failure.to_string()), ..Self::default() },
        }
    }

    /// Finds the servers of clients. Their names are distinct from `names`.
    pub(super) fn find(&mut self, home: &Home, names: impl IntoIterator<Item = String>) {
        if let Some(config) = &self.config {
            self.found = find_servers(home, config.sources(), names);
        }
        let problem = self.problem.iter().map(|problem| format!("no MCP server can be a source: {problem}"));
        self.found.unread.extend(problem);
    }

    pub(super) fn found(&self) -> &FoundServers {
        &self.found
    }

    pub(super) fn reports(&self) -> &[SourceReport] {
        &self.reports
    }

    /// Returns true if there is something that the user could choose, and nothing was done.
    pub(super) fn is_planned(&self) -> bool {
        self.is_planned
    }

    pub(super) fn has_failed(&self) -> bool {
        self.has_failed
    }

    /// Returns the servers that are not sources: those that are named, or else all.
    ///
    /// # Errors
    ///
    /// A named server does not exist.
    pub(super) fn open(&self, named: &[String]) -> Result<Vec<McpCandidate>, Failure> {
        let is_unknown =
            |name: &&String| self.found.candidates.iter().all(|found| found.name() != name.as_str());
        if let Some(unknown) = named.iter().find(is_unknown) {
            if let Some(other) = self.found.others.iter().find(|other| other.name == *unknown) {
                let (client, reason) = (other.client, &other.reason);
                return Err(Failure::usage(&format_args!(
                    "`{unknown}` of {client} cannot be a source: {reason}"
                )));
            }
            let names: Vec<String> =
                self.found.candidates.iter().map(|found| format!("`{}`", found.name())).collect();
            let known = if names.is_empty() { "none can be a source".to_owned() } else { names.join(", ") };
            return Err(Failure::usage(&format_args!(
                "no MCP server `{unknown}` is in the files of clients; there: {known}"
            )));
        }
        let mut open = self.found.open();
        open.retain(|candidate| named.is_empty() || named.iter().any(|name| name == candidate.name()));
        Ok(open)
    }

    /// Prints the servers with numbers for the choice, and the reasons for which others are not offered.
    pub(super) fn print(&self, printer: Printer) {
        let FoundServers { candidates, .. } = &self.found;
        if !candidates.is_empty() {
            let mut rows = vec![["", "MCP server", "of", "place"].map(str::to_owned).to_vec()];
            let mut number = 0;
            for candidate in candidates {
                let (first, name) = if candidate.is_source {
                    (String::new(), format!("{} (a source)", candidate.name()))
                } else {
                    number += 1;
                    (number.to_string(), candidate.name().to_owned())
                };
                rows.push(vec![first, name, candidate.clients.join(", "), candidate.place()]);
            }
            printer.table(&rows);
        }
        self.notes().iter().for_each(note);
    }

    /// Returns the reasons for which servers are not offered and files are not read.
    pub(super) fn notes(&self) -> Vec<String> {
        let others = self.found.others.iter().map(|other| {
            let (name, client, reason) = (&other.name, other.client, &other.reason);
            format!("`{name}` of {client} is not offered as a source: {reason}")
        });
        others.chain(self.found.unread.iter().cloned()).collect()
    }

    /// Asks the chosen servers what they have, and adds those that can be searched to the configuration.
    ///
    /// # Errors
    ///
    /// The user stopped the command.
    pub(super) fn add(
        &mut self,
        chosen: &[McpCandidate],
        store: &Path,
        environment: &Environment,
        printer: Printer,
    ) -> Result<(), Failure> {
        let Some(config) = &self.config else { return Ok(()) };
        match add_servers(chosen, config, store, environment, printer) {
            Ok((reports, config)) => {
                self.reports = reports;
                self.config = Some(config);
                Ok(())
            }
            Err(failure) if failure.is_stop() => Err(failure),
            Err(failure) => {
                note(&format_args!("no source is added: {failure}"));
                self.has_failed = true;
                Ok(())
            }
        }
    }

    /// Prints what would be done with the servers.
    pub(super) fn plan(&mut self, chosen: &[McpCandidate], printer: Printer) {
        self.is_planned = !chosen.is_empty();
        self.reports = chosen.iter().map(SourceReport::planned).collect();
        if !printer.json {
            self.reports.iter().for_each(|report| report.print(printer));
        }
    }

    /// Adds a store that this command created to a configuration with servers, which would not read it otherwise, and the store
    /// to one that has a model alone.
    pub(super) fn add_new_store(&mut self, store: &Path) {
        let Some(config) = &self.config else { return };
        let is_missing = self.was_complete || config.has_only_model();
        if !is_missing || !store.exists() || config.is_complete(store) {
            return;
        }
        let edited = config.with_sources(&[], store).and_then(|edited| edited.save().map(|()| edited));
        match edited {
            Ok(edited) => self.config = Some(edited),
            Err(failure) => {
                note(&format_args!("the store is no source of the configuration: {failure}"));
                self.has_failed = true;
            }
        }
    }

    /// Returns true if the configuration can be read and has no embedding model.
    pub(super) fn lacks_model(&self) -> bool {
        self.config.as_ref().is_some_and(|config| !config.has_model())
    }

    /// Returns the path of the configuration.
    ///
    /// # Errors
    ///
    /// It cannot be read.
    pub(super) fn config_path(&self) -> Result<PathBuf, Failure> {
        let unreadable = || Failure::new(self.problem.clone().unwrap_or_default());
        self.config.as_ref().map(|config| config.path().to_owned()).ok_or_else(unreadable)
    }

    /// Reads the configuration again after a model was written into it, and adds the store to its sources, because a server of
    /// the store alone reads no model.
    pub(super) fn add_for_model(&mut self, store: &Path) -> Result<(), Failure> {
        let config = UserConfig::read()?.with_sources(&[], store)?;
        config.save()?;
        self.config = Some(config);
        Ok(())
    }

    /// Returns true if clients get a server of the configuration, and not of the store alone.
    pub(super) fn uses_config(&self, store: &Path) -> bool {
        self.config.as_ref().is_some_and(|config| {
            self.is_planned || config.is_complete(store) || config.has_only_model() && store.exists()
        })
    }

    /// Returns the command line of a server for clients.
    pub(super) fn server_entry(&self, store: &Path) -> Result<ServerEntry, Failure> {
        let config = self.config.as_ref().filter(|_| self.uses_config(store));
        let (flag, path) = config.map_or(("--store", store), |config| ("--config", config.path()));
        let arguments = ["serve", flag, &absolute(path)?, "--stdio"].map(str::to_owned).to_vec();
        Ok(ServerEntry { command: program()?, arguments })
    }

    /// Returns the servers for JSON output.
    pub(super) fn json(&self) -> Value {
        let offered = self.found.candidates.iter().map(|candidate| json!(candidate.view()));
        let others = self.found.others.iter().map(|other| {
            json!({"name": other.name, "clients": [other.client], "problem": other.reason.to_string()})
        });
        offered.chain(others).collect()
    }
}

impl Chooser {
    /// Returns the servers to ask and add.
    pub(super) fn servers(self, servers: Vec<McpCandidate>) -> Result<Vec<McpCandidate>, Failure> {
        let question = "Search which of them, too? They are started or called to see what they have. Enter for all, `none`, or \
                        numbers such as 1,3";
        self.choose(servers, question, |_server| true)
    }
}
