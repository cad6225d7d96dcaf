//! A Markdown file per record: the fields as YAML front matter, then the body.

use std::io::{self, Write};

use serde_json::Value;

use super::output::Folder;
use crate::record::RecordData;
use crate::source::store::{ExportError, ExportedRecord, ExportedStream, StoreExport};

/// Field with the text that is the body of the file.
const BODY: &str = "body";

/// Writes the records of a stream into a folder and returns their number.
pub(super) fn write(
    export: &StoreExport,
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
    let own = [("_key", Some(record.key)), ("_emitted_at", record.emitted_at)];
    let own = own.into_iter().filter_map(|(name, value)| Some((name, Value::from(value?))));
    let mut text = "---\n".to_owned();
    for (name, value) in own {
        text.push_str(&format!("{name}: {value}\n"));
    }
    for (name, value) in &data {
        text.push_str(&format!("{}: {value}\n", Value::from(name.as_str())));
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
    fn fields_are_front_matter_before_the_body() {
        let data = r##"{"title":"A: \"plan\"\n---","tags":["a","b"],"body":"# Plan\n\nText"}"##;
        let record = ExportedRecord { key: "a/plan.md", data, emitted_at: None };
        assert_eq!(
            text_of(record).unwrap(),
            "---\n_key: \"a/plan.md\"\n\"title\": \"A: \\\"plan\\\"\\n---\"\n\"tags\": [\"a\",\"b\"]\n---\n\n# Plan\n\nText\n"
        );
    }
}
