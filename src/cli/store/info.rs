//! `fetchwell store info`: the files of a store, and the numbers of its records.

use clap::Args;
use serde::Serialize;

use crate::app::embedding::embedded_streams;
use crate::app::failure::Failure;
use crate::app::open::runtime;
use crate::cli::backup::{StoreArgs, StorePlace};
use crate::cli::connections::{ImportOutput, import_output, print_import};
use crate::cli::print::{Printer, STRONG, counted, grouped};
use crate::config::Environment;
use crate::source::SyncStore;
use crate::source::contract::{ConnectionInfo, GenerationStatus, RememberedImport, StoreError};
use crate::source::postgres::{PostgresInfo, postgres_imports, postgres_info};
use crate::source::sqlite::{SqliteInfo, SqliteSyncStore, sqlite_info};
use crate::terminal::Line;

/// Show the path of a store, the sizes of its files, and the records of each connection and stream.
#[derive(Debug, Args)]
pub(super) struct Info {
    #[command(flatten)]
    store: StoreArgs,
}

impl Info {
    pub(super) fn run(self, printer: Printer, environment: &Environment) -> Result<(), Failure> {
        let settings = self.store.settings(environment)?;
        let path = match self.store.place(environment)? {
            StorePlace::File(path) => path,
            StorePlace::Postgres(pool) => {
                let read = async { Ok((postgres_info(&pool).await?, postgres_imports(&pool).await?)) };
                let (info, imports) = runtime()?.block_on(read).map_err(StoreError::Postgres)?;
                if printer.json {
                    printer.value(&InfoOutput { info: &info, imports: imports_output(&imports) });
                } else {
                    print_database(printer, &info, &imports);
                }
                return Ok(());
            }
        };
        let info = sqlite_info(&path, &embedded_streams(&settings, &path))?;
        let imports = SqliteSyncStore::open(&path)?.imports()?;
        if printer.json {
            printer.value(&InfoOutput { info: &info, imports: imports_output(&imports) });
        } else {
            print_text(printer, &info, &imports);
        }
        Ok(())
    }
}

/// The output as JSON.
#[derive(Serialize)]
struct InfoOutput<'a, Info> {
    #[serde(flatten)]
    info: &'a Info,
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

fn print_database(printer: Printer, info: &PostgresInfo, imports: &[RememberedImport]) {
    printer.styled(Line::default().styled(STRONG, info.database.as_str()));
    let bytes = &info.bytes;
    let row = |name: &str, bytes: u64, detail: String| vec![name.to_owned(), grouped(bytes), detail];
    printer.table(&[
        vec!["tables".to_owned(), "bytes".to_owned(), String::new()],
        row("records", bytes.records, described_records(info.records, info.deleted)),
        row("words", bytes.words, String::new()),
        row("all", bytes.total, String::new()),
    ]);
    printer.line(format_args!(
        "PostgreSQL {}, tables of version {}, version {}",
        info.server,
        info.format,
        grouped(info.version.unsigned_abs())
    ));
    print_connections(printer, &info.connections, imports);
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

fn print_text(printer: Printer, info: &SqliteInfo, imports: &[RememberedImport]) {
    let path = info.path.display().to_string();
    printer.styled(Line::default().styled(STRONG, path));
    let bytes = &info.bytes;
    let row = |name: &str, bytes: u64, detail: String| vec![name.to_owned(), grouped(bytes), detail];
    let mut rows = vec![
        vec!["file".to_owned(), "bytes".to_owned(), String::new()],
        row("records", bytes.records, described_records(info.records, info.deleted)),
        row("free pages", bytes.free, "of these, for the next imports".to_owned()),
        row("log", bytes.log, "changes that are not in the file yet".to_owned()),
        row("index", bytes.index, String::new()),
        row("vectors", bytes.vectors, info.vectors.current.as_ref().map_or_else(String::new, described)),
    ];
    rows.retain(|row| row.get(1).is_some_and(|bytes| bytes != "0"));
    printer.table(&rows);
    printer.line(format_args!("format {}, version {}", info.format, grouped(info.version.unsigned_abs())));
    print_connections(printer, &info.connections, imports);
}

fn described(current: &GenerationStatus) -> String {
    let missing = match current.missing_records {
        0 => String::new(),
        missing => format!(", {} without", counted(missing, "record")),
    };
    format!("{} of {}{missing}", counted(current.chunks, "vector"), current.model)
}
