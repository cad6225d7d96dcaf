//! `fetchwell search`: prints the results that a client would get.

use clap::Args;
use serde_json::{Value, json};

use super::print::{FAINT, Printer, STRONG, note};
use crate::app::failure::Failure;
use crate::app::open::{WITH_WHOLE_INDEX, call, joined, open_sources, runtime, toolbox};
use crate::app::settings::SourceArgs;
use crate::config::Environment;
use crate::record::RecordData;
use crate::terminal::Line;

/// Search as a client would.
#[derive(Debug, Args)]
pub(super) struct Search {
    /// Words to find: records with all of them or, if there are none, with any.
    query: String,

    #[command(flatten)]
    source: SourceArgs,

    /// Maximum number of results, 1 to 100.
    #[arg(long, value_name = "N", default_value_t = 10)]
    limit: usize,

    /// Only this account.
    #[arg(long, value_name = "ID")]
    connection_id: Option<String>,
}

impl Search {
    pub(super) fn run(self, printer: Printer, environment: &Environment) -> Result<(), Failure> {
        let settings = self.source.settings(environment)?;
        let source = joined(open_sources(&settings, environment, WITH_WHOLE_INDEX)?, settings.call_deadline)?;
        let toolbox = toolbox(source, settings.call_deadline, &settings.protection)?;
        let mut arguments = RecordData::new();
        arguments.insert("query".to_owned(), self.query.into());
        arguments.insert("limit".to_owned(), self.limit.into());
        arguments.extend(self.connection_id.map(|id| ("connection_id".to_owned(), id.into())));
        let payload = runtime()?.block_on(call(&toolbox, "search", arguments))?;
        let (_, mut value) = payload.into_parts();
        // A cursor is valid as long as the process that issued it, which ends now.
        let more = value.as_object_mut().and_then(|fields| fields.remove("next_cursor")).is_some();
        if printer.json {
            if let (true, Some(fields)) = (more, value.as_object_mut()) {
                fields.insert("more".to_owned(), json!(true));
            }
            printer.value(&value);
            return Ok(());
        }
        print_text(printer, &value, more);
        Ok(())
    }
}

fn print_text(printer: Printer, value: &Value, more: bool) {
    let text =
        |result: &Value, name: &str| result.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let results = value.get("results").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    for result in results {
        printer.styled(Line::default().styled(STRONG, text(result, "title")));
        printer.line(format_args!("  {}", text(result, "id")));
        for beside in ["text", "url"].map(|name| text(result, name)) {
            if !beside.is_empty() {
                printer.styled(Line::default().text("  ").styled(FAINT, beside));
            }
        }
    }
    for warning in value.get("warnings").and_then(Value::as_array).into_iter().flatten() {
        note(&warning.as_str().unwrap_or_default());
    }
    match (results.len(), more) {
        (0, _) => {
            note(&"nothing found");
            if let Some(hint) = value.get("hint").and_then(Value::as_str) {
                note(&hint);
            }
        }
        (_, true) => note(&"there is more: raise --limit"),
        _ => {}
    }
}
