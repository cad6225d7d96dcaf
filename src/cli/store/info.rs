//! `fetchwell store info`: the files of a store, and the numbers of its records.

use clap::Args;
use fetchwell_core::terminal::Line;
use fetchwell_source::contract::{ConnectionInfo, RememberedImport, StoreInfo, VectorStatus};
use serde::Serialize;

use crate::app::embedding::embedded_streams;
use crate::app::failure::Failure;
use crate::app::open::runtime;
use crate::cli::backup::StoreArgs;
use crate::cli::connections::{ImportOutput, import_output, print_import};
use crate::cli::print::{Printer, STRONG, counted, grouped};
use crate::config::Environment;

/// Show the path of a store, the sizes of its files, and the records of each connection and stream.
#[derive(Debug, Args)]
pub(super) struct Info {
    #[command(flatten)]
    store: StoreArgs,
}

impl Info {
    pub(super) fn run(self, printer: Printer, environment: &Environment) -> Result<(), Failure> {
        let settings = self.store.settings(environment)?;
        let store = self.store.store(environment)?;
        let embedded = store.file().map(|path| embedded_streams(&settings, path)).unwrap_or_default();
        let runtime = runtime()?;
        let info = runtime.block_on(store.info(&embedded))?;
        let imports = runtime.block_on(store.imports())?;
        if printer.json {
            printer.value(&InfoOutput { info: &info, imports: imports_output(&imports) });
        } else {
            print_text(printer, &store.place(), &info, &imports);
        }
        Ok(())
    }
}

/// The output as JSON.
#[derive(Serialize)]
struct InfoOutput<'a> {
    #[serde(flatten)]
    info: &'a StoreInfo,
    imports: Vec<StoredImport<'a>>,
}

/// An import that the store remembers.
#[derive(Serialize)]
struct StoredImport<'a> {
    connection_id: &'a str,
    #[serde(flatten)]
    import: ImportOutput<'a>,
}

fn imports_output(imports: &[RememberedImport]) -> Vec<StoredImport<'_>> {
    let output = imports.iter().map(|import| StoredImport {
        connection_id: import.connection_id.as_str(),
        import: import_output(import),
    });
    output.collect()
}

fn described_records(records: u64, deleted: u64) -> String {
    let deleted = match deleted {
        0 => String::new(),
        deleted => format!(", and the history of {}", counted(deleted, "deleted record")),
    };
    format!("{}{deleted}", counted(records, "record"))
}

/// Prints the connections, each with its import.
fn print_connections(printer: Printer, connections: &[ConnectionInfo], imports: &[RememberedImport]) {
    for connection in connections {
        print_connection(printer, connection);
        let is_its = |import: &&RememberedImport| import.connection_id.as_str() == connection.connection_id;
        if let Some(import) = imports.iter().find(is_its) {
            print_import(printer, import);
        }
    }
}

fn print_connection(printer: Printer, connection: &ConnectionInfo) {
    let label = Some(&connection.display_name).filter(|label| **label != connection.connection_id);
    let beside: Vec<&str> =
        label.into_iter().chain([&connection.connector_key]).map(String::as_str).collect();
    printer
        .styled(Line::default().styled(STRONG, &connection.connection_id).text("  ").text(beside.join(", ")));
    for stream in &connection.streams {
        let deleted = if stream.deleted == 0 {
            String::new()
        } else {
            format!(", {} deleted", grouped(stream.deleted))
        };
        printer.line(format_args!("  {}  {}{deleted}", stream.name, counted(stream.records, "record")));
    }
}

fn print_text(printer: Printer, place: &str, info: &StoreInfo, imports: &[RememberedImport]) {
    printer.styled(Line::default().styled(STRONG, place));
    let version = grouped(info.version.unsigned_abs());
    let (parts, versions) = match &info.server {
        None => ("file", format!("format {}", info.format)),
        Some(server) => ("tables", format!("PostgreSQL {server}, tables of version {}", info.format)),
    };
    let mut rows = vec![vec![parts.to_owned(), "bytes".to_owned(), String::new()]];
    rows.extend(info.bytes.iter().filter(|part| part.bytes > 0).map(|part| {
        let (name, detail) = match part.name {
            "records" => ("records", described_records(info.records, info.deleted)),
            "free" => ("free pages", "of these, for the next imports".to_owned()),
            "log" => ("log", "changes that are not in the file yet".to_owned()),
            "vectors" => ("vectors", info.vectors.as_ref().map_or_else(String::new, described)),
            "total" => ("all", String::new()),
            name => (name, String::new()),
        };
        vec![name.to_owned(), grouped(part.bytes), detail]
    }));
    printer.table(&rows);
    printer.line(format_args!("{versions}, version {version}"));
    print_connections(printer, &info.connections, imports);
}

fn described(vectors: &VectorStatus) -> String {
    let Some(current) = &vectors.current else { return String::new() };
    let missing = match current.missing_records {
        0 => String::new(),
        missing => format!(", {} without", counted(missing, "record")),
    };
    format!("{} of {}{missing}", counted(current.chunks, "vector"), current.model)
}
