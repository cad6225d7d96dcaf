//! `fetchwell demo`: bundled sample data, searched and fetched as a client would.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use clap::Args;
use directories::ProjectDirs;
use serde_json::{Value, json};

use super::client_config::{Client, absolute, program, snippet};
use super::failure::Failure;
use super::open::{call, runtime, toolbox};
use super::print::{FAINT, Printer, STRONG, grouped};
use crate::connectors::{Intake, Report, import_records};
use crate::handle::ConnectionId;
use crate::record::RecordData;
use crate::source::store::{Manifest, NewConnection, Store};
use crate::tools::{DEFAULT_CALL_DEADLINE, Payload, Toolbox};

/// Try fetchwell on bundled sample data: two accounts of one connector whose record ids collide.
#[derive(Debug, Args)]
pub(super) struct Demo {
    /// Where to keep the sample store [default: the user's data folder]
    #[arg(long, value_name = "DB")]
    store: Option<PathBuf>,
}

const MANIFEST: &str = include_str!("../../fixtures/demo/manifest.json");

/// The sample accounts: id, label, and their records.
const ACCOUNTS: [(&str, &str, &str); 2] = [
    ("cin_work", "Work", include_str!("../../fixtures/demo/work.ndjson")),
    ("cin_home", "Home", include_str!("../../fixtures/demo/home.ndjson")),
];

/// What the demo asks.
const QUERY: &str = "invoice";

impl Demo {
    pub(super) fn run(self, printer: Printer) -> Result<(), Failure> {
        let store = self.store.unwrap_or_else(default_store);
        let records = import_samples(&store)?;
        let name = "demo".parse().map_err(|error| Failure::usage(&error))?;
        let toolbox = toolbox(std::sync::Arc::new(Store::open(name, &store)?), DEFAULT_CALL_DEADLINE)?;
        let shown = runtime()?.block_on(ask(&toolbox))?;
        let arguments = ["serve".to_owned(), "--store".to_owned(), absolute(&store)?];
        let claude = snippet(Client::Claude, &program()?, &arguments);
        if printer.json {
            printer.value(&json!({
                "store": store,
                "records": records,
                "search": shown.found.into_parts().1,
                "fetch": shown.fetched.into_parts().1,
                "client_config": claude.text,
            }));
            return Ok(());
        }
        let accounts = ACCOUNTS.map(|(id, label, _)| format!("{id} ({label})")).join(" and ");
        printer.line(format_args!(
            "{STRONG}Sample data{STRONG:#}: {records} records of {accounts} in {}",
            store.display()
        ));
        print_call(printer, &format!("search({})", json!({ "query": QUERY })), &shown.found);
        print_call(printer, &format!("fetch({})", json!({ "id": shown.id })), &shown.fetched);
        printer.line("\nBoth accounts have a message `m1`; the handle says whose is meant.");
        printer.line(format_args!("\n{STRONG}To use it{STRONG:#}, in {}:", claude.goes));
        printer.line(claude.text);
        Ok(())
    }
}

struct Shown {
    found: Payload,
    id: String,
    fetched: Payload,
}

/// A search, and a fetch of its first result by nothing but what the answer says.
async fn ask(toolbox: &Toolbox) -> Result<Shown, Failure> {
    let found = call(toolbox, "search", RecordData::from_iter([("query".to_owned(), QUERY.into())])).await?;
    let answer: Value = serde_json::from_str(found.json()).unwrap_or_default();
    let id = answer.pointer("/results/0/id").and_then(Value::as_str);
    let id = id
        .ok_or_else(|| Failure::new("the sample data has no match; delete the sample store and try again"))?;
    let fetched = call(toolbox, "fetch", RecordData::from_iter([("id".to_owned(), id.into())])).await?;
    Ok(Shown { id: id.to_owned(), found, fetched })
}

fn print_call(printer: Printer, call: &str, payload: &Payload) {
    printer.line(format_args!("\n{STRONG}{call}{STRONG:#}"));
    printer.line(payload.json());
    let bytes = grouped(u64::try_from(payload.json().len()).unwrap_or(u64::MAX));
    printer.line(format_args!("{FAINT}{bytes} bytes, the same as text and as structuredContent{FAINT:#}"));
}

/// Imports the samples, and says how many records there are. Importing them again changes nothing.
pub(super) fn import_samples(store: &Path) -> Result<u64, Failure> {
    if let Some(folder) = store.parent() {
        std::fs::create_dir_all(folder)
            .map_err(|error| Failure::new(format!("{} cannot be made ({error})", folder.display())))?;
    }
    let mut records = 0;
    for (id, label, lines) in ACCOUNTS {
        let connection_id: ConnectionId = id.parse().map_err(|error| Failure::usage(&error))?;
        let manifest = Manifest::parse(MANIFEST).map_err(|error| Failure::usage(&error))?;
        let connection = NewConnection {
            connection_id,
            connector_key: manifest.connector_key().unwrap_or_default().to_owned(),
            display_name: Some(label.to_owned()),
            manifest: Some(manifest.text().to_owned()),
        };
        let (mut report, never) = (Unexpected, AtomicBool::new(false));
        let mut intake = Intake::new(store, connection, Some(manifest), &mut report, &never);
        import_records(&mut lines.as_bytes(), store, &mut intake)?;
        let (tally, _) = intake.finish()?;
        records += tally.added + tally.changed + tally.unchanged;
    }
    Ok(records)
}

/// The samples are ours and have no line that is refused.
struct Unexpected;

impl Report for Unexpected {
    fn rejected(&mut self, place: &dyn fmt::Display, reason: &str) {
        tracing::error!(%place, reason, "a line of the sample data was refused");
    }
}

fn default_store() -> PathBuf {
    let folder = ProjectDirs::from("", "", "fetchwell").map(|dirs| dirs.data_dir().to_owned());
    folder.unwrap_or_else(|| std::env::temp_dir().join("fetchwell")).join("demo.db")
}
