//! The set-up page of `fetchwell setup --page`, at a loopback address.

use std::collections::BTreeSet;
use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use fetchwell_callers::random_token;
use fetchwell_core::terminal::output::note;
use fetchwell_http::{PlannedImport, SETUP, SetupActions, SetupChoice, SetupOutcome, SetupPlan, serve_setup};
use tokio::net::TcpListener;
use tokio::runtime::Builder;
use tokio_util::sync::CancellationToken;

use super::super::print::Printer;
use super::choose::Chooser;
use super::clients::{ServerEntry, find_clients};
use super::configure::configure;
use super::find::{Home, find_origins};
use super::imports::{Candidate, candidates, import_all, without_imported};
use crate::app::failure::Failure;
use crate::app::stop;
use crate::config::Environment;

/// Printer without text output, since the page shows the results.
const SILENT: Printer = Printer { json: true };

/// The actions of the page.
pub(super) struct PageActions {
    pub(super) home: Home,
    pub(super) store: PathBuf,
    pub(super) server: ServerEntry,
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
    fn candidates(&self) -> Result<Vec<Candidate>, String> {
        candidates(find_origins(&self.home), &self.store).map_err(|failure| failure.to_string())
    }
}

impl SetupActions for PageActions {
    fn plan(&self) -> Result<SetupPlan, String> {
        let planned = |candidate: &Candidate| PlannedImport {
            group: candidate.group().to_owned(),
            program: candidate.program().to_owned(),
            path: candidate.path().display().to_string(),
            connection: candidate.connection().to_owned(),
            is_imported: candidate.is_imported(),
        };
        let clients = find_clients(&self.home);
        let clients = configure(&self.home, &clients, &self.server, &Chooser::DryRun, SILENT);
        let clients = clients.map_err(|failure| failure.to_string())?;
        Ok(SetupPlan {
            home: self.home.root().display().to_string(),
            store: self.store.display().to_string(),
            imports: self.candidates()?.iter().map(planned).collect(),
            clients: clients.reports.into_iter().map(Into::into).collect(),
        })
    }

    fn apply(&self, choice: &SetupChoice) -> Result<SetupOutcome, String> {
        let mut chosen = without_imported(&self.candidates()?);
        chosen.retain(|candidate| choice.imports.contains(candidate.connection()));
        let imported = import_all(&chosen, &self.store, false, SILENT, &self.environment);
        let imported = imported.map_err(|failure| failure.to_string())?;
        let done: BTreeSet<&str> = imported.reports.iter().map(|report| report.connection()).collect();
        let missing = chosen.iter().filter(|candidate| !done.contains(candidate.connection()));
        let mut outcome = SetupOutcome {
            imports: imported.reports.iter().map(|report| report.summary()).collect(),
            failed: missing
                .map(|candidate| {
                    format!("{} was not imported; the terminal has the reason", candidate.path().display())
                })
                .collect(),
            clients: Vec::new(),
        };
        if !choice.clients.is_empty() && !self.store.exists() {
            outcome.failed.push(
                "no client was changed, because there is no store yet: import something first".to_owned(),
            );
            return Ok(outcome);
        }
        let mut clients = find_clients(&self.home);
        clients.retain(|client| choice.clients.contains(client.title()));
        let configured = configure(&self.home, &clients, &self.server, &Chooser::Flags, SILENT);
        let configured = configured.map_err(|failure| failure.to_string())?;
        outcome.clients = configured.reports.into_iter().map(Into::into).collect();
        Ok(outcome)
    }
}
