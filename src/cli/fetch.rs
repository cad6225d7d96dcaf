//! `fetchwell fetch`: prints one record.

use clap::Args;
use fetchwell_core::record::RecordData;
use fetchwell_core::terminal::Line;
use fetchwell_core::terminal::output::note;
use fetchwell_tools::Toolbox;
use serde_json::Value;

use super::print::{FAINT, Printer, STRONG};
use crate::app::failure::Failure;
use crate::app::open::{AS_IT_IS, call, joined, open_sources, runtime, toolbox};
use crate::app::settings::SourceArgs;
use crate::config::Environment;

/// Read a record by its handle. Text output is the whole record; --json prints what a client gets, part by part.
#[derive(Debug, Args)]
pub(super) struct Fetch {
    /// The id of a search result.
    id: String,

    #[command(flatten)]
    source: SourceArgs,

    /// The account, for an id without one.
    #[arg(long, value_name = "ID")]
    connection_id: Option<String>,

    /// Only this field; may be repeated.
    #[arg(long, value_name = "NAME")]
    fields: Vec<String>,
}

impl Fetch {
    pub(super) fn run(self, printer: Printer, environment: &Environment) -> Result<(), Failure> {
        let settings = self.source.settings(environment)?;
        let source = joined(open_sources(&settings, environment, AS_IT_IS)?, settings.call_deadline)?;
        let toolbox = toolbox(source, settings.call_deadline, &settings.protection)?;
        let mut arguments = RecordData::new();
        arguments.insert("id".to_owned(), self.id.into());
        arguments.extend(self.connection_id.map(|id| ("connection_id".to_owned(), id.into())));
        if !self.fields.is_empty() {
            arguments.insert("fields".to_owned(), self.fields.into());
        }
        runtime()?.block_on(print_parts(printer, &toolbox, arguments))
    }
}

async fn print_parts(printer: Printer, toolbox: &Toolbox, mut arguments: RecordData) -> Result<(), Failure> {
    let has_all_fields = !arguments.contains_key("fields");
    let mut text = String::new();
    let mut first = true;
    loop {
        let payload = call(toolbox, "fetch", arguments).await?;
        if printer.json {
            printer.json_text(payload.json());
            return Ok(());
        }
        let (_, value) = payload.into_parts();
        if first {
            print_heading(printer, &value, has_all_fields);
            first = false;
        }
        // Another text may have replaced the one of the part before.
        if let Some(warning) = value.pointer("/metadata/warning").and_then(Value::as_str) {
            note(&warning);
        }
        text.push_str(value.get("text").and_then(Value::as_str).unwrap_or_default());
        let next = value.pointer("/metadata/next").and_then(Value::as_str);
        let Some(next) = next else { break };
        arguments = RecordData::from_iter([("id".to_owned(), next.into())]);
    }
    printer.lines(text);
    Ok(())
}

/// Prints the title, the handle, the account, the time and the link. Without `has_all_fields`, the field with the time of a
/// record may be missing, and the time of its import would be taken for it.
fn print_heading(printer: Printer, value: &Value, has_all_fields: bool) {
    let text = |name: &str| value.pointer(name).and_then(Value::as_str).unwrap_or_default();
    printer.styled(Line::default().styled(STRONG, text("/title")));
    let time = match text("/metadata/authored_at") {
        "" if has_all_fields => text("/metadata/emitted_at"),
        time => time,
    };
    let beside = [text("/id"), text("/metadata/display_name"), time, text("/url")];
    for line in beside.iter().filter(|line| !line.is_empty()) {
        printer.styled(Line::default().styled(FAINT, line));
    }
    printer.line("");
}
