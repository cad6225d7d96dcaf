//! `fetchwell setup`: imports what is on this machine, and makes the clients on it use fetchwell.
//!
//! Everything is found and shown first. On a terminal the user chooses; elsewhere only flags choose, and nothing is ever
//! asked. Only the home folder is read, nothing is sent anywhere but to MCP servers that were chosen, a model is downloaded
//! only if it was chosen, and a second run changes nothing.
//!
//! * `find`: mail, notes, exports and folders of files in the home folder
//! * `imports`: the imports of what was chosen
//! * `servers`: MCP servers in the files of clients, `sources`: those that become sources
//! * `clients`: the clients and their files, `configure`: the changes of these files
//! * `model`: the model for search by meaning
//! * `choose`: the questions, `page`: the same in a browser

mod choose;
mod clients;
mod configure;
mod find;
mod imports;
mod model;
mod page;
mod servers;
mod sources;

use std::path::{Path, PathBuf};

use clap::Args;
use fetchwell_core::terminal::output::note;
use serde_json::json;

use self::choose::Chooser;
use self::clients::CLIENTS;
use self::configure::configure;
use self::find::{Home, find_origins};
use self::imports::{
    Candidate, candidates, import_all, named_candidates, with_counts, without_imported, without_nested,
};
use self::model::{DefaultModel, install_model};
use self::page::{PageActions, serve_page};
use self::sources::SourceSetup;
use super::client_config::{Client, program};
use super::print::Printer;
use crate::app::default_store::{default_store, refuse_database};
use crate::app::failure::Failure;
use crate::config::{Environment, FoundFile, default_file};

/// Find mail, notes, exports, MCP servers and clients on this machine, import and add what you choose, and configure the clients.
///
/// Looks only in your home folder and sends nothing anywhere. On a terminal it asks before each step; otherwise it
/// changes only what --yes, --import, --source, --client or --model allow. Only MCP servers that you choose are started or called.
#[derive(Debug, Args)]
pub(super) struct Setup {
    /// Import all mail, notes and exports, add every MCP server and configure every client that is found, without a question.
    #[arg(long)]
    yes: bool,
    /// Import this file or folder, and nothing that is not named; may be repeated.
    #[arg(long, value_name = "PATH", conflicts_with = "no_import")]
    import: Vec<PathBuf>,
    /// Add this MCP server of a client as a source, and none that is not named; may be repeated.
    #[arg(long, value_name = "NAME", conflicts_with = "no_sources")]
    source: Vec<String>,
    /// Configure this client, and none that is not named; may be repeated.
    #[arg(long, value_enum, value_name = "NAME", conflicts_with = "no_clients")]
    client: Vec<Client>,
    /// Download a model for search by meaning, and embed the records with it.
    #[arg(long, value_enum, value_name = "KIND")]
    model: Option<DefaultModel>,
    /// Import no file or folder.
    #[arg(long)]
    no_import: bool,
    /// Add no MCP server as a source.
    #[arg(long)]
    no_sources: bool,
    /// Configure no client.
    #[arg(long)]
    no_clients: bool,
    /// Print what would be imported and changed, and do nothing.
    #[arg(long)]
    dry_run: bool,
    /// Show and choose everything on a page in a browser of this machine.
    #[arg(long, conflicts_with_all = ["yes", "import", "source", "client", "no_import", "no_sources", "no_clients", "dry_run", "model"])]
    page: bool,
    /// The store; created if it does not exist [default: `FETCHWELL_STORE`, or else the default store]
    #[arg(long, value_name = "DB")]
    store: Option<PathBuf>,
}

impl Setup {
    pub(super) fn run(self, printer: Printer, environment: &Environment) -> Result<(), Failure> {
        self.check_clients()?;
        let home = Home::of_user().ok_or_else(|| {
            Failure::new("your home folder is unknown or does not exist; set HOME to a folder that exists")
        })?;
        let store = self.store_path(environment)?;
        let subjects = match (self.no_import, self.skips_sources()) {
            (true, true) => "clients",
            (true, false) => "MCP servers and clients",
            (false, true) => "mail, notes, exports and clients",
            (false, false) => "mail, notes, exports, MCP servers and clients",
        };
        note(&format_args!("looking in {} for {subjects}; nothing is sent anywhere", home.root().display()));
        if self.page {
            if printer.json {
                return Err(Failure::usage(&"--page shows everything in a browser; remove --json"));
            }
            note_cached_program(&program()?);
            return serve_page(PageActions { home, store, environment: environment.clone() });
        }
        let chooser = self.chooser();
        let found = self.candidates(&home, &store)?;
        if !printer.json && !self.no_import {
            print_found(printer, &home, &found);
        }
        let imports = without_imported(&found);
        let chosen = if self.import.is_empty() { chooser.imports(imports)? } else { imports };
        let chosen = without_nested(chosen);
        let mut sources = SourceSetup::read(&store);
        let outcome = import_all(&chosen, &store, chooser.is_dry(), printer, environment)?;
        if !chooser.is_dry() {
            sources.add_new_store(&store);
        }
        if !self.skips_sources() {
            sources.find(&home, found.iter().map(|candidate| candidate.connection().to_owned()));
            self.add_sources(&mut sources, &store, chooser, printer, environment)?;
        }
        let model = install_model(self.model, chooser, &mut sources, &store, printer, environment)?;
        let server = sources.server_entry(&store)?;
        let has_records = store.exists() || chooser.is_dry() || sources.uses_config(&store);
        let clients = self.clients(&home, has_records);
        let configured = configure(&home, &clients, &server, &chooser, printer)?;
        if printer.json {
            printer.value(&json!({
                "home": home.root(),
                "store": store,
                "dry_run": chooser.is_dry(),
                "found": found,
                "imports": outcome.reports,
                "servers": sources.json(),
                "sources": sources.reports(),
                "model": model.json(),
                "clients": configured.reports,
            }));
        }
        note_cached_program(&server.command);
        if !sources.uses_config(&store) {
            note_other_sources(&store);
        }
        let is_open = !chosen.is_empty() || sources.is_planned() || configured.is_open;
        if chooser.is_unanswered() && is_open {
            return Err(Failure::usage(
                &"nothing was changed, because there is no terminal to ask on; add --yes, or choose with --import PATH and --client NAME",
            ));
        }
        let has_failed = sources.has_failed() || model.has_failed || !configured.is_complete;
        outcome.ended(has_failed)
    }

    /// Shows the MCP servers of clients, and adds the chosen ones as sources.
    fn add_sources(
        &self,
        sources: &mut SourceSetup,
        store: &Path,
        chooser: Chooser,
        printer: Printer,
        environment: &Environment,
    ) -> Result<(), Failure> {
        let open = sources.open(&self.source)?;
        if !printer.json {
            sources.print(printer);
        }
        let chosen = if self.source.is_empty() { chooser.servers(open)? } else { open };
        if chooser.is_dry() {
            sources.plan(&chosen, printer);
            return Ok(());
        }
        sources.add(&chosen, store, environment, printer)
    }

    /// Refuses clients with files that are not changed.
    fn check_clients(&self) -> Result<(), Failure> {
        let Some(other) = self.client.iter().find(|client| !CLIENTS.contains(client)) else { return Ok(()) };
        Err(Failure::usage(&format_args!(
            "the file of {} is not changed by this command; `fetchwell client-config` prints what belongs into it",
            other.title()
        )))
    }

    fn store_path(&self, environment: &Environment) -> Result<PathBuf, Failure> {
        let named = self.store.clone().or_else(|| default_store(environment));
        let store =
            named.ok_or_else(|| Failure::new("your data folder is unknown; name a store with --store"))?;
        refuse_database(&store)?;
        Ok(store)
    }

    fn chooser(&self) -> Chooser {
        Chooser::new(self.has_choice(), self.dry_run)
    }

    /// Returns true if flags choose the imports and the clients.
    fn has_choice(&self) -> bool {
        self.yes
            || (self.no_import || !self.import.is_empty()) && (self.no_clients || !self.client.is_empty())
    }

    /// Returns true if no MCP server is looked for: by a flag, or because flags choose and name none.
    fn skips_sources(&self) -> bool {
        self.no_sources || (self.source.is_empty() && !self.yes && self.has_choice())
    }

    /// Returns what can be imported: what the user named, or else what is found.
    fn candidates(&self, home: &Home, store: &Path) -> Result<Vec<Candidate>, Failure> {
        if self.no_import {
            return Ok(Vec::new());
        }
        if self.import.is_empty() {
            return candidates(find_origins(home), store).map(with_counts);
        }
        named_candidates(&self.import, home, store)
    }

    /// Returns the clients to configure: those that the user named, or else those that are found. A server of a store that
    /// does not exist would not start.
    fn clients(&self, home: &Home, has_records: bool) -> Vec<Client> {
        if self.no_clients {
            return Vec::new();
        }
        let clients = if self.client.is_empty() { clients::find_clients(home) } else { self.client.clone() };
        if clients.is_empty() {
            note(
                &"no client was found; `fetchwell client-config NAME` prints the entry for the file of a client",
            );
        }
        if has_records || clients.is_empty() {
            return clients;
        }
        note(&"no client is configured, because there is no store yet: import something first");
        Vec::new()
    }
}

/// Prints what was found, with the connections of what the store has.
fn print_found(printer: Printer, home: &Home, found: &[Candidate]) {
    if found.is_empty() {
        printer.line(
            "No mail, notes or exports to import; `fetchwell add PATH` imports other files and folders.",
        );
        return;
    }
    let mut heading = ["", "records", "of", "path", "connection"].map(str::to_owned).to_vec();
    heading.extend(found.iter().any(|candidate| !candidate.is_default()).then(|| "files".to_owned()));
    let mut rows = vec![heading];
    let mut number = 0;
    for candidate in found {
        let path = candidate.path().strip_prefix(home.root()).map_or_else(
            |_outside| candidate.path().display().to_string(),
            |below| format!("~/{}", below.display()),
        );
        let (first, connection) = if candidate.is_imported() {
            (String::new(), format!("{} (imported)", candidate.connection()))
        } else {
            number += 1;
            (number.to_string(), candidate.connection().to_owned())
        };
        let (group, program) = (candidate.group().to_owned(), candidate.program().to_owned());
        let files = candidate.files();
        rows.push([first, group, program, path, connection].into_iter().chain(files).collect());
    }
    printer.table(&rows);
}

/// Says that a client cannot start the program any more when a package runner clears its cache.
fn note_cached_program(command: &str) {
    let is_cached = ["/uv/archive-v", "/.cache/uv/", "/_npx/", "\\_npx\\", "\\uv\\cache\\"];
    if is_cached.iter().any(|part| command.contains(part)) {
        note(&format_args!(
            "{command} is in the cache of a package runner, which may delete it; install fetchwell (`uv tool install \
             fetchwell` or `npm install -g fetchwell`) and run `fetchwell setup` again"
        ));
    }
}

/// Says that clients read the store only, if the user's configuration names sources.
fn note_other_sources(store: &Path) {
    if let Some(FoundFile::OfUser(file)) = default_file() {
        note(&format_args!(
            "clients read {}; for the sources of {}, run `fetchwell client-config`",
            store.display(),
            file.display()
        ));
    }
}
