//! `fetchwell connections`: lists the connected accounts and their streams.

use clap::Args;
use serde::Serialize;

use super::print::{Printer, STRONG, grouped};
use crate::app::failure::Failure;
use crate::app::open::runtime;
use crate::app::settings::SourceArgs;
use crate::callers::CallContext;
use crate::config::Environment;
use crate::record::{ConnectionSchema, Schema};
use crate::terminal::Line;

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
}

#[derive(Serialize)]
struct StreamOutput<'a> {
    name: &'a str,
    record_count: Option<u64>,
}

impl Connections {
    pub(super) fn run(self, printer: Printer, environment: &Environment) -> Result<(), Failure> {
        let source = self.source.open(environment)?;
        let schema = runtime()?.block_on(source.source().schema(&CallContext::default()))?;
        if printer.json {
            printer.value(&schema.connections.iter().map(shown).collect::<Vec<_>>());
        } else {
            print_text(printer, &schema);
        }
        Ok(())
    }
}

fn shown(connection: &ConnectionSchema) -> ConnectionOutput<'_> {
    let stream = |stream: &'_ crate::record::StreamSchema| stream.record_count;
    ConnectionOutput {
        connection_id: connection.connection_id.as_str(),
        display_name: connection.display_name.as_deref(),
        connector_key: connection.connector_key.as_deref(),
        streams: connection
            .streams
            .iter()
            .map(|each| StreamOutput { name: each.name.as_str(), record_count: stream(each) })
            .collect(),
    }
}

fn print_text(printer: Printer, schema: &Schema) {
    if schema.connections.is_empty() {
        printer.line("There are no connections yet; `fetchwell import` makes one.");
    }
    for connection in &schema.connections {
        let id = connection.connection_id.as_str();
        let label = connection.display_name.as_deref().filter(|label| *label != id);
        let beside: Vec<&str> = [label, connection.connector_key.as_deref()].into_iter().flatten().collect();
        printer.styled(Line::default().styled(STRONG, id).text("  ").text(beside.join(", ")));
        for stream in &connection.streams {
            let count =
                stream.record_count.map_or_else(String::new, |count| format!("  {} records", grouped(count)));
            printer.line(format_args!("  {}{count}", stream.name));
        }
    }
}
