//! `fetchwell source inspect`: shows the tools of an MCP server, and what is read of its answers.

use clap::Args;
use fetchwell_callers::CallContext;
use fetchwell_core::handle::Handle;
use fetchwell_core::record::{Hit, HitId};
use fetchwell_core::saturate::saturated;
use fetchwell_core::terminal::Line;
use fetchwell_source::{ProtocolFault, RecordQuery, SearchQuery, Source, SourceError};
use fetchwell_upstream::{InspectedTool, Inspection, Mapping, McpServer, correction};
use serde::Serialize;
use serde_json::{Value, json};

use super::file_args::{FileArgs, unknown};
use crate::app::failure::Failure;
use crate::app::mcp::mcp_server;
use crate::app::open::runtime;
use crate::cli::print::{Printer, STRONG, counted};
use crate::cli::probe::{error_with_remedy, with_deadline};
use crate::config::{Environment, SourcePlace};

/// Number of results of the sample search that are shown.
const SHOWN: usize = 3;

/// Show the tools of an MCP server, and what is read of its answers
#[derive(Debug, Args)]
pub(super) struct Inspect {
    /// The name of the source.
    name: String,

    /// Words of the sample search.
    #[arg(default_value = "a")]
    words: String,

    #[command(flatten)]
    file: FileArgs,
}

/// Result of the sample search.
type Sample = Result<(Vec<Hit>, Option<Vec<String>>), String>;

impl Inspect {
    pub(super) fn run(self, printer: Printer, environment: &Environment) -> Result<(), Failure> {
        let settings = self.file.read_trusted()?;
        let named = settings.sources.iter().find(|source| source.name.as_str() == self.name);
        let source = named.ok_or_else(|| unknown(&self.name, &settings))?;
        let SourcePlace::Mcp(place) = &source.place else {
            let name = &self.name;
            return Err(Failure::usage(&format!(
                "`{name}` is no MCP server; run `fetchwell source test {name}`"
            )));
        };
        let server = mcp_server(source, place, environment)?;
        let deadline = source.deadline;
        let inspected = runtime()?.block_on(async {
            let inspection = server.inspect().await.map_err(|error| error_with_remedy(error, source))?;
            let sample =
                match inspection.used {
                    Some(_) => Some(with_deadline(deadline * 2, sample(&server, &self.words)).await.map_err(
                        |error| match &error {
                            SourceError::Protocol(ProtocolFault::UnknownTools { .. }) => correction(&error),
                            _ => error_with_remedy(error, source),
                        },
                    )),
                    None => None,
                };
            Ok::<_, String>((inspection, sample))
        });
        let (inspection, sample) = inspected.map_err(Failure::new)?;
        if printer.json {
            printer.value(&as_json(&inspection, sample.as_ref()));
        } else {
            print_text(printer, &inspection, sample.as_ref(), &self.words);
        }
        match (&inspection.correction, sample) {
            (Some(problem), _) => Err(Failure::new(problem.clone())),
            (None, Some(Err(problem))) => Err(Failure::new(format!("the sample search failed: {problem}"))),
            (None, _) => Ok(()),
        }
    }
}

/// Searches, and fetches the first result. Returns the hits and the fields of the record.
async fn sample(server: &McpServer, words: &str) -> Result<(Vec<Hit>, Option<Vec<String>>), SourceError> {
    let context = CallContext::default();
    let page = server.search(&context, &SearchQuery::new(words, SHOWN)).await?;
    let first = page.hits.iter().find_map(|hit| match &hit.id {
        HitId::Record(address) => Some(address.clone()),
        HitId::Opaque(_) | HitId::Nameless => None,
    });
    let Some(address) = first else { return Ok((page.hits, None)) };
    let record = server.record(&context, &RecordQuery::new(address)).await?;
    let fields = record.data.iter().map(|(name, value)| match value {
        Value::String(text) => format!("{name} ({} bytes)", text.len()),
        _ => name.clone(),
    });
    Ok((page.hits, Some(fields.collect())))
}

fn handle_of(hit: &Hit) -> Option<String> {
    match &hit.id {
        HitId::Record(address) => Handle::mint(address).map(|handle| handle.to_string()),
        HitId::Opaque(_) | HitId::Nameless => None,
    }
}

fn as_json(inspection: &Inspection, sample: Option<&Sample>) -> Value {
    let tool = |tool: &InspectedTool| {
        json!({
            "name": tool.name,
            "arguments": tool.arguments,
            "reads_only": tool.reads_only,
            "is_destructive": tool.is_destructive,
        })
    };
    let hit = |hit: &Hit| json!({"id": handle_of(hit), "title": hit.title, "time": hit.time});
    let sample = sample.map(|sample| match sample {
        Ok((hits, fields)) => json!({"hits": hits.iter().map(hit).collect::<Vec<_>>(), "fields": fields}),
        Err(problem) => json!({"problem": problem}),
    });
    json!({
        "server": inspection.server,
        "tools": inspection.tools.iter().map(tool).collect::<Vec<_>>(),
        "unread": inspection.unread,
        "repeated": inspection.repeated,
        "used": inspection.used,
        "problem": inspection.correction,
        "proposed": inspection.proposed,
        "preset": inspection.preset,
        "sample": sample,
    })
}

fn print_text(printer: Printer, inspection: &Inspection, sample: Option<&Sample>, words: &str) {
    printer.styled(Line::default().styled(STRONG, &inspection.server));
    for tool in &inspection.tools {
        let hints = match (tool.reads_only, tool.is_destructive) {
            (_, true) => "  may change or delete data",
            (true, false) => "  reads only",
            (false, false) => "",
        };
        printer.line(format_args!("  {}({}){hints}", tool.name, tool.arguments.join(", ")));
    }
    for name in &inspection.repeated {
        printer.line(format_args!("The server has several tools `{name}`. The first one is used."));
    }
    if inspection.unread > 0 {
        let unread = counted(saturated::<u64>(inspection.unread), "other tool");
        printer.line(format_args!("The server lists {unread} whose name, arguments or hints are not valid."));
    }
    if let Some(used) = &inspection.used {
        printer.line(format_args!("Called:"));
        as_toml(used).iter().for_each(|line| printer.line(format_args!("  {line}")));
    }
    if let Some(preset) = inspection.preset.filter(|_| inspection.used.is_none()) {
        printer.line(format_args!("This server has a preset. Write into its [[source]] table:"));
        printer.line(format_args!("  preset = \"{preset}\""));
    } else if let Some(proposed) = &inspection.proposed {
        printer.line(format_args!(
            "These tools may be right. Write into its [[source]] table, and inspect it again:"
        ));
        as_toml(proposed).iter().for_each(|line| printer.line(format_args!("  {line}")));
    }
    let Some(Ok((hits, fields))) = sample else { return };
    printer.line(format_args!("A search for `{words}` finds:"));
    if hits.is_empty() {
        printer.line(format_args!(
            "  nothing; name other words, such as `fetchwell source inspect NAME invoice`"
        ));
    }
    for hit in hits {
        let id = handle_of(hit).unwrap_or_else(|| "no id, so that it cannot be fetched".to_owned());
        let time = hit.time.as_ref().map(|time| format!("  {time}")).unwrap_or_default();
        printer.line(format_args!("  {}  ({id}){time}", hit.title));
    }
    if let Some(fields) = fields {
        printer.line(format_args!("The first one has: {}", fields.join(", ")));
    }
}

/// Returns the lines of a `[[source]]` table for a mapping.
fn as_toml(mapping: &Mapping) -> Vec<String> {
    let search = mapping.search.as_ref().and_then(|search| toml_line("search", search));
    let fetch = mapping.fetch.as_ref().and_then(|fetch| toml_line("fetch", fetch));
    [search, fetch].into_iter().flatten().collect()
}

fn toml_line(name: &str, table: &impl Serialize) -> Option<String> {
    let mut line = format!("{name} = ");
    table.serialize(toml::ser::ValueSerializer::new(&mut line)).ok()?;
    Some(line)
}
