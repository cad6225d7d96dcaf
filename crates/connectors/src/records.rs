//! `import records`: newline-delimited record envelopes.
//!
//! ```json
//! {"stream":"messages","key":"m1","data":{"subject":"Hi"},"emitted_at":"2026-04-01T00:00:00Z"}
//! {"stream":"daily_stats","key":["user_123","2026-04-01"],"data":{"steps":9}}
//! {"stream":"messages","key":"m0","op":"delete"}
//! ```

use std::io::BufRead;
use std::path::Path;

use fetchwell_core::record::{RecordData, kind_name};
use serde::Deserialize;
use serde_json::Value;
use serde_json::error::Category;

use super::ImportError;
use super::depth::{MAX_DEPTH, is_deeper, too_deep};
use super::intake::{Draft, DuplicatePolicy, Intake, Piece, PieceSink, parse_ahead};
use super::lines::{Lines, NumberedLine};

#[derive(Deserialize)]
struct Envelope {
    stream: String,
    #[serde(default)]
    key: Option<Value>,
    #[serde(default)]
    data: Option<RecordData>,
    #[serde(default)]
    emitted_at: Option<String>,
    #[serde(default)]
    op: Option<String>,
}

/// Imports every line of `reader`; `path` names it in errors. Blank lines are passed over.
///
/// # Errors
///
/// The file cannot be read, the store cannot be written, or the user stopped the import.
pub fn import_records(
    reader: &mut impl BufRead,
    path: &Path,
    intake: &mut Intake<'_>,
) -> Result<(), ImportError> {
    let parse = |line: Vec<u8>| Ok((envelope(&line)?, line.len()));
    let stop = intake.stop_flag();
    parse_ahead(stop, &parse, |send| send_lines(reader, path, send), &mut |number, parsed| match parsed {
        Ok((Envelope { stream, key, data, emitted_at, .. }, bytes)) => {
            // Envelopes are a log: a later one supersedes an earlier.
            let repeated = DuplicatePolicy::Supersedes;
            intake.take_ahead(&number, Draft { stream: &stream, key, data, emitted_at, bytes, repeated })
        }
        Err(reason) => {
            intake.reject(&number, &reason);
            Ok(())
        }
    })
}

/// Sends each line with its number.
fn send_lines(
    reader: &mut impl BufRead,
    path: &Path,
    send: &mut PieceSink<'_, u64, Vec<u8>>,
) -> Result<(), ImportError> {
    let mut lines = Lines::new(reader, path);
    while let Some(NumberedLine { number, text }) = lines.next()? {
        let content = text.map(<[u8]>::to_vec);
        let bytes = content.as_ref().map_or(0, Vec::len);
        send(Piece { place: number, content, bytes })?;
    }
    Ok(())
}

fn envelope(line: &[u8]) -> Result<Envelope, String> {
    let line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line);
    let text = std::str::from_utf8(line)
        .map_err(|error| format!("it is not UTF-8 at byte {}", error.valid_up_to() + 1))?;
    // The envelope is one level more.
    if is_deeper(text, MAX_DEPTH + 1) {
        return Err(too_deep());
    }
    let mut envelope: Envelope =
        serde_json::from_str(text).map_err(|error| envelope_problem(text, &error))?;
    match envelope.op.as_deref() {
        None | Some("upsert" | "put" | "insert" | "update") if envelope.data.is_none() => {
            Err("there is no `data`; a record is an object, and a deletion has `\"op\":\"delete\"`"
                .to_owned())
        }
        None | Some("upsert" | "put" | "insert" | "update") => Ok(envelope),
        Some("delete" | "remove") => {
            envelope.data = None;
            Ok(envelope)
        }
        Some(other) => {
            Err(format!("`op` is `{}`; it may be `upsert` or `delete`", fetchwell_core::fit::clip(other, 40)))
        }
    }
}

/// Returns the problem of a line that is no envelope.
fn envelope_problem(text: &str, error: &serde_json::Error) -> String {
    if error.classify() != Category::Data {
        return json_problem(error);
    }
    let fields = match serde_json::from_str(text) {
        Ok(Value::Object(fields)) => fields,
        Ok(other) => return format!("it is {}, not an object", kind_name(&other)),
        Err(error) => return json_problem(&error),
    };
    if !fields.contains_key("stream") {
        return "there is no `stream`".to_owned();
    }
    let wrong = |name: &str, is_right: fn(&Value) -> bool, right: &str| {
        let value = fields.get(name).filter(|value| !is_right(value))?;
        Some(format!("`{name}` is {}, not {right}", kind_name(value)))
    };
    let text =
        ["stream", "emitted_at", "op"].iter().find_map(|name| wrong(name, Value::is_string, "a string"));
    text.or_else(|| wrong("data", Value::is_object, "an object")).unwrap_or_else(|| json_problem(error))
}

/// Returns the problem of a text that is not JSON, with the column, but without the line number that the parser counts from
/// one per line.
pub(crate) fn json_problem(error: &serde_json::Error) -> String {
    let (text, column) = (error.to_string(), error.column());
    let reason = text.split(" at line ").next().unwrap_or(&text);
    match error.classify() {
        Category::Eof => format!("it ends too early (column {column})"),
        // The parser reports words that are not JSON as a missing value, or a missing part of `true`, `false` or `null`.
        Category::Syntax if matches!(reason, "expected ident" | "expected value") => {
            format!("it is not JSON (column {column})")
        }
        Category::Syntax => format!("it is not JSON: {reason} (column {column})"),
        Category::Data | Category::Io => format!("{reason} (column {column})"),
    }
}
