//! Record envelopes, one JSON object per line.

use std::io::{self, Write};

use fetchwell_source::RecordExport;
use fetchwell_source::contract::{ExportError, ExportedStream};
use serde::Serialize;
use serde_json::value::RawValue;

/// Envelope that `fetchwell import records` reads.
#[derive(Serialize)]
struct Envelope<'a> {
    stream: &'a str,
    key: &'a str,
    data: &'a RawValue,
    #[serde(skip_serializing_if = "Option::is_none")]
    emitted_at: Option<&'a str>,
}

/// Writes the records of a stream and returns their number.
pub(super) fn write(
    export: &dyn RecordExport,
    stream: &ExportedStream,
    output: &mut impl Write,
) -> Result<u64, ExportError<io::Error>> {
    let mut records = 0;
    let mut line = Vec::new();
    export.each_record(stream, |record| {
        line.clear();
        let data: &RawValue = serde_json::from_str(record.data)?;
        let envelope =
            Envelope { stream: &stream.name, key: record.key, data, emitted_at: record.emitted_at };
        serde_json::to_writer(&mut line, &envelope)?;
        line.push(b'\n');
        records += 1;
        output.write_all(&line)
    })?;
    Ok(records)
}
