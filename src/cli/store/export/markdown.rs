//! A Markdown file per record: the fields as YAML front matter, then the body.

use std::borrow::Cow;
use std::collections::HashSet;
use std::io::{self, Write};

use fetchwell_core::record::RecordData;
use fetchwell_source::RecordExport;
use fetchwell_source::contract::{ExportError, ExportedRecord, ExportedStream};
use serde_json::Value;

use super::distinct_name::{OWN_FIELDS, distinct_name};
use super::output::Folder;

/// Field with the text that is the body of the file.
const BODY: &str = "body";

/// Writes the records of a stream into a folder and returns their number.
pub(super) fn write(
    export: &dyn RecordExport,
    stream: &ExportedStream,
    folder: &Folder,
) -> Result<u64, ExportError<io::Error>> {
    let mut records = 0;
    export.each_record(stream, |record| {
        let text = text_of(record)?;
        let mut output = folder.file(record.key, "md")?;
        output.write_all(text.as_bytes())?;
        records += 1;
        output.finish()
    })?;
    Ok(records)
}

/// Returns the text of a file. JSON values are valid YAML.
fn text_of(record: ExportedRecord<'_>) -> io::Result<String> {
    let mut data: RecordData = serde_json::from_str(record.data)?;
    let body = match data.shift_remove(BODY) {
        Some(Value::String(body)) => body,
        Some(other) => {
            data.insert(BODY.to_owned(), other);
            String::new()
        }
        None => String::new(),
    };
    let own = OWN_FIELDS.into_iter().zip([Some(record.key), record.emitted_at]);
    let own = own.filter_map(|(name, value)| Some((name, Value::from(value?))));
    let mut text = "---\n".to_owned();
    for (name, value) in own {
        text.push_str(&format!("{name}: {value}\n"));
    }
    let mut known: HashSet<Cow<'_, str>> = OWN_FIELDS.map(Cow::Borrowed).into();
    for (name, value) in &data {
        let name = distinct_name(Cow::Borrowed(name), &mut known);
        text.push_str(&format!("{}: {value}\n", Value::from(name)));
    }
    text.push_str("---\n\n");
    text.push_str(&body);
    if !body.ends_with('\n') {
        text.push('\n');
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_with_names_of_the_export_are_renamed() {
        let data = r#"{"_key":1,"_key_":2,"_emitted_at":3}"#;
        let record = ExportedRecord { key: "a", data, emitted_at: Some("2026-04-01T00:00:00Z") };
        assert_eq!(
            text_of(record).unwrap(),
            "---\n_key: \"a\"\n_emitted_at: \"2026-04-01T00:00:00Z\"\n\"_key_\": 1\n\"_key__\": 2\n\"_emitted_at_\": 3\n---\n\n\n"
        );
    }

    #[test]
    fn fields_are_front_matter_before_the_body() {
        let data = r##"{"title":"A: \"plan\"\n---","tags":["a","b"],"body":"# Plan\n\nText"}"##;
        let record = ExportedRecord { key: "a/plan.md", data, emitted_at: None };
        assert_eq!(
            text_of(record).unwrap(),
            "---\n_key: \"a/plan.md\"\n\"title\": \"A: \\\"plan\\\"\\n---\"\n\"tags\": [\"a\",\"b\"]\n---\n\n# Plan\n\nText\n"
        );
    }
}
