//! `fetchwell connections`: lists the connected accounts and their streams.

use clap::Args;
use fetchwell_callers::CallContext;
use fetchwell_core::handle::SourceName;
use fetchwell_core::record::{ConnectionSchema, Schema, Unavailable};
use fetchwell_core::terminal::{Line, note};
use fetchwell_source::contract::RememberedImport;
use futures_util::future::join_all;
use serde::Serialize;

use super::print::{Printer, STRONG, counted, grouped};
use crate::app::failure::{Failure, describe_failure};
use crate::app::imports::ImportStore;
use crate::app::open::runtime;
use crate::app::settings::SourceArgs;
use crate::config::{Environment, SourceSettings};

/// List the connected accounts with their streams.
#[derive(Debug, Args)]
pub(super) struct Connections {
    #[command(flatten)]
    source: SourceArgs,
}

#[derive(Serialize)]
struct ConnectionOutput<'a> {
    connection_id: &'a str,
    display_name: Option<&'a str>,
    connector_key: Option<&'a str>,
    streams: Vec<StreamOutput<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    import: Option<ImportOutput<'a>>,
}

/// The import of a connection, if the store keeps it current.
#[derive(Serialize)]
pub(super) struct ImportOutput<'a> {
    origin: String,
    kind: &'a str,
    last_sync: Option<String>,
    /// Number of records that are missing at the origin and were not deleted.
    held: u64,
    unreadable_files: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<&'a str>,
}

/// Imports of the stores, with the names of their sources.
type Imports = Vec<(SourceName, RememberedImport)>;

#[derive(Serialize)]
struct StreamOutput<'a> {
    name: &'a str,
    record_count: Option<u64>,
}

impl Connections {
    pub(super) fn run(self, printer: Printer, environment: &Environment) -> Result<(), Failure> {
        let settings = self.source.settings(environment)?;
        let source = self.source.open(environment)?;
        let runtime = runtime()?;
        let schema = runtime.block_on(source.source().schema(&CallContext::default()))?;
        let imports = runtime.block_on(imports(&settings.sources, environment));
        for Unavailable { source, code, hint } in &schema.unavailable {
            note(&describe_failure(source.as_str(), code, hint.as_deref()));
        }
        if printer.json {
            printer.value(&schema.connections.iter().map(|each| shown(each, &imports)).collect::<Vec<_>>());
        } else {
            print_text(printer, &schema, &imports);
        }
        Ok(())
    }
}

/// Returns the imports that the stores among some sources remember. A store that cannot be read has none.
async fn imports(sources: &[SourceSettings], environment: &Environment) -> Imports {
    let read = sources.iter().map(async |source| {
        let imports = match ImportStore::from_source(&source.place) {
            Some(store) => store.imports(environment).await.unwrap_or_default(),
            None => Vec::new(),
        };
        imports.into_iter().map(|import| (source.name.clone(), import)).collect::<Imports>()
    });
    join_all(read).await.concat()
}

fn import_of<'i>(connection: &ConnectionSchema, imports: &'i Imports) -> Option<&'i RememberedImport> {
    let is_this = |(source, import): &&(SourceName, RememberedImport)| {
        import.connection_id == connection.connection_id
            && connection.source.as_ref().is_none_or(|name| name == source)
    };
    imports.iter().find(is_this).map(|(_, import)| import)
}

/// Returns what the commands print of an import.
pub(super) fn import_output(import: &RememberedImport) -> ImportOutput<'_> {
    let RememberedImport { settings, status, .. } = import;
    ImportOutput {
        origin: settings.origin.display().to_string(),
        kind: &settings.kind,
        last_sync: status.last_sync.map(|time| time.strftime("%FT%TZ").to_string()),
        held: status.held,
        unreadable_files: status.unreadable,
        problem: status.problem.as_deref(),
    }
}

fn shown<'a>(connection: &'a ConnectionSchema, imports: &'a Imports) -> ConnectionOutput<'a> {
    let stream = |stream: &'_ fetchwell_core::record::StreamSchema| stream.record_count;
    ConnectionOutput {
        connection_id: connection.connection_id.as_str(),
        display_name: connection.display_name.as_deref(),
        connector_key: connection.connector_key.as_deref(),
        streams: connection
            .streams
            .iter()
            .map(|each| StreamOutput { name: each.name.as_str(), record_count: stream(each) })
            .collect(),
        import: import_of(connection, imports).map(import_output),
    }
}

fn print_text(printer: Printer, schema: &Schema, imports: &Imports) {
    if schema.connections.is_empty() {
        printer.line("There are no connections yet; `fetchwell import` makes one.");
    }
    for connection in &schema.connections {
        let id = connection.connection_id.as_str();
        let label = connection.display_name.as_deref().filter(|label| *label != id);
        let beside: Vec<&str> = [label, connection.connector_key.as_deref()].into_iter().flatten().collect();
        printer.styled(Line::default().styled(STRONG, id).text("  ").text(beside.join(", ")));
        for stream in &connection.streams {
            let count = stream
                .record_count
                .map_or_else(String::new, |count| format!("  {}", counted(count, "record")));
            printer.line(format_args!("  {}{count}", stream.name));
        }
        if let Some(import) = import_of(connection, imports) {
            print_import(printer, import);
        }
    }
}

/// Prints the last synchronization of an import, and what keeps it from being up to date.
pub(super) fn print_import(printer: Printer, import: &RememberedImport) {
    let ImportOutput { origin, last_sync, held, unreadable_files, problem, .. } = import_output(import);
    let last =
        last_sync.map_or_else(|| "never synchronized".to_owned(), |time| format!("synchronized {time}"));
    printer.line(format_args!("  {last} from {origin}"));
    if let Some(problem) = problem {
        printer.line(format_args!("  not up to date: {problem}"));
    }
    if held > 0 {
        printer.line(format_args!("  {} records are missing there and were not deleted", grouped(held)));
    }
    if unreadable_files > 0 {
        printer.line(format_args!("  {} there cannot be read", counted(unreadable_files, "file")));
    }
}
