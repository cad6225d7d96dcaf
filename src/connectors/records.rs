//! `import records`: newline-delimited record envelopes.
//!
//! ```json
//! {"stream":"messages","key":"m1","data":{"subject":"Hi"},"emitted_at":"2026-04-01T00:00:00Z"}
//! {"stream":"daily_stats","key":["user_123","2026-04-01"],"data":{"steps":9}}
//! {"stream":"messages","key":"m0","op":"delete"}
//! ```

use std::io::BufRead;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use super::ImportError;
use super::depth::{MAX_DEPTH, is_deeper, too_deep};
use super::intake::{Draft, Intake, Repeated};
use super::lines::{Lines, NumberedLine};
use crate::record::RecordData;

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
    let mut lines = Lines::new(reader, path);
    while let Some(NumberedLine { number, text }) = lines.next()? {
        match text.and_then(|line| Ok((envelope(line)?, line.len()))) {
            Ok((Envelope { stream, key, data, emitted_at, .. }, bytes)) => {
                // Envelopes are a log: a later one supersedes an earlier.
                let repeated = Repeated::Supersedes;
                let draft = Draft { stream: &stream, key, data, emitted_at, bytes, repeated };
                intake.take(&number, draft)?;
            }
            Err(reason) => intake.reject(&number, &reason),
        }
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
    let mut envelope: Envelope = serde_json::from_str(text).map_err(|error| json_problem(&error))?;
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
            Err(format!("`op` is `{}`; it may be `upsert` or `delete`", crate::fit::clip(other, 40)))
        }
    }
}

/// Returns the problem of a line without the line number that the parser counts from one per line.
pub(super) fn json_problem(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let reason = text.split(" at line ").next().unwrap_or(&text);
    format!("{reason} (column {})", error.column())
}
