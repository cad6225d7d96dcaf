//! The set-up page of `fetchwell setup --page`, at a loopback address.

use std::collections::BTreeSet;
use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use fetchwell_callers::random_token;
use fetchwell_core::terminal::output::note;
use fetchwell_http::{
    ClientFileState, PlannedClient, PlannedImport, PlannedSource, SETUP, SetupActions, SetupChoice,
    SetupOutcome, SetupPlan, serve_setup,
};
use tokio::net::TcpListener;
use tokio::runtime::Builder;
use tokio_util::sync::CancellationToken;

use super::super::print::Printer;
use super::choose::Chooser;
use super::clients::{ServerEntry, find_clients};
use super::configure::configure;
use super::find::{Home, find_origins};
use super::imports::{Candidate, candidates, import_all, with_counts, without_imported, without_nested};
use super::servers::McpCandidate;
use super::sources::SourceSetup;
use crate::app::failure::Failure;
use crate::app::stop;
use crate::config::Environment;

/// Printer without text output, since the page shows the results.
const SILENT: Printer = Printer { json: true };

/// The actions of the page.
pub(super) struct PageActions {
    pub(super) home: Home,
    pub(super) store: PathBuf,
    pub(super) environment: Environment,
}

impl fmt::Debug for PageActions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PageActions").field("store", &self.store).finish_non_exhaustive()
    }
}

/// Serves the page until the user stops the command.
pub(super) fn serve_page(actions: PageActions) -> Result<(), Failure> {
    let key =
        random_token().map_err(|error| Failure::new(format!("the system has no random bytes ({error})")))?;
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.map_err(|error| Failure::new(format!("threads cannot be started ({error})")))?;
    let stop = CancellationToken::new();
    let served = runtime.block_on(async {
        let requested = stop::requested();
        let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await?;
        let port = listener.local_addr()?.port();
        note(&format_args!(
            "open http://localhost:{port}{SETUP}?key={key} in a browser on this machine; the key is valid until this command ends \
             (Ctrl-C)"
        ));
        let ended = stop.clone();
        tokio::spawn(async move {
            requested.await;
            ended.cancel();
        });
        serve_setup(listener, Arc::new(actions), &key, stop.clone()).await
    });
    served.map_err(|error| Failure::new(format!("the page cannot be served ({error})")))
}

impl PageActions {
    /// Returns what would be done to get the clients a server.
    fn planned_clients(&self, server: &ServerEntry) -> Result<Vec<PlannedClient>, String> {
        let clients = configure(&self.home, &find_clients(&self.home), server, &Chooser::DryRun, SILENT);
        let clients = clients.map_err(|failure| failure.to_string())?;
        Ok(clients.reports.into_iter().map(Into::into).collect())
    }

    fn candidates(&self) -> Result<Vec<Candidate>, String> {
        candidates(find_origins(&self.home), &self.store).map_err(|failure| failure.to_string())
    }

    /// Finds the MCP servers of clients, whose names are distinct from the connections of `found`.
    fn find_servers(&self, sources: &mut SourceSetup, found: &[Candidate]) {
        sources.find(&self.home, found.iter().map(|candidate| candidate.connection().to_owned()));
    }

    /// Imports the chosen records into the store.
    fn import(&self, mut chosen: Vec<Candidate>, choice: &SetupChoice) -> Result<SetupOutcome, String> {
        chosen.retain(|candidate| choice.imports.contains(candidate.connection()));
        let chosen = without_nested(chosen);
        let imported = import_all(&chosen, &self.store, false, SILENT, &self.environment);
        let imported = imported.map_err(|failure| failure.to_string())?;
        let done: BTreeSet<&str> = imported.reports.iter().map(|report| report.connection()).collect();
        let missing = chosen.iter().filter(|candidate| !done.contains(candidate.connection()));
        Ok(SetupOutcome {
            imports: imported.reports.iter().map(|report| report.summary()).collect(),
            failed: missing
                .map(|candidate| {
                    format!("{} was not imported; the terminal has the reason", candidate.path().display())
                })
                .collect(),
            ..SetupOutcome::default()
        })
    }

    /// Adds the chosen MCP servers to the configuration.
    fn add_servers(&self, sources: &mut SourceSetup, choice: &SetupChoice) -> Result<Vec<String>, String> {
        let text = |failure: Failure| failure.to_string();
        let mut chosen = sources.open(&[]).map_err(text)?;
        chosen.retain(|candidate| choice.sources.contains(candidate.name()));
        sources.add(&chosen, &self.store, &self.environment, SILENT).map_err(text)?;
        let mut lines: Vec<String> = sources.reports().iter().map(|report| report.summary()).collect();
        if sources.has_failed() {
            lines.push("no server was added; the terminal has the reason".to_owned());
        }
        Ok(lines)
    }
}

impl SetupActions for PageActions {
    fn plan(&self) -> Result<SetupPlan, String> {
        let imports = with_counts(self.candidates()?);
        let mut sources = SourceSetup::read(&self.store);
        self.find_servers(&mut sources, &imports);
        let open = sources.open(&[]).map_err(|failure| failure.to_string())?;
        sources.plan(&open, SILENT);
        let server = sources.server_entry(&self.store).map_err(|failure| failure.to_string())?;
        let now = SourceSetup::read(&self.store)
            .server_entry(&self.store)
            .map_err(|failure| failure.to_string())?;
        let clients = self.planned_clients(&server)?;
        // A client that has the server of today changes only with a server that is added, and none is chosen yet.
        let current = self.planned_clients(&now)?.into_iter();
        let clients = clients.into_iter().zip(current).map(|(planned, current)| {
            if matches!(current.state, ClientFileState::Current) { current } else { planned }
        });
        Ok(SetupPlan {
            home: self.home.root().display().to_string(),
            store: self.store.display().to_string(),
            imports: imports.iter().map(planned_import).collect(),
            sources: sources.found().candidates.iter().map(planned_source).collect(),
            notes: sources.notes(),
            clients: clients.collect(),
        })
    }

    fn apply(&self, choice: &SetupChoice) -> Result<SetupOutcome, String> {
        let found = self.candidates()?;
        let mut sources = SourceSetup::read(&self.store);
        self.find_servers(&mut sources, &found);
        let mut outcome = self.import(without_imported(&found), choice)?;
        sources.add_new_store(&self.store);
        outcome.sources = self.add_servers(&mut sources, choice)?;
        if !choice.clients.is_empty() && !self.store.exists() && !sources.uses_config(&self.store) {
            outcome.failed.push(
                "no client was changed, because there is no store yet: import something first".to_owned(),
            );
            return Ok(outcome);
        }
        let mut clients = find_clients(&self.home);
        clients.retain(|client| choice.clients.contains(client.title()));
        let server = sources.server_entry(&self.store).map_err(|failure| failure.to_string())?;
        let configured = configure(&self.home, &clients, &server, &Chooser::Flags, SILENT);
        let configured = configured.map_err(|failure| failure.to_string())?;
        outcome.clients = configured.reports.into_iter().map(Into::into).collect();
        Ok(outcome)
    }
}

fn planned_import(candidate: &Candidate) -> PlannedImport {
    PlannedImport {
        group: candidate.group().to_owned(),
        program: candidate.program().to_owned(),
        path: candidate.path().display().to_string(),
        connection: candidate.connection().to_owned(),
        is_imported: candidate.is_imported(),
        is_default: candidate.is_default(),
        files: candidate.files(),
    }
}

fn planned_source(candidate: &McpCandidate) -> PlannedSource {
    PlannedSource {
        name: candidate.name().to_owned(),
        clients: candidate.clients.join(", "),
        place: candidate.place(),
        variables: candidate.variables.iter().map(|variable| variable.name.clone()).collect(),
        is_added: candidate.is_source,
    }
}
