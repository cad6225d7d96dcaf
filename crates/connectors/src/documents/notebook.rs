//! The reader of Jupyter notebooks: texts and code of the cells, and the text of their outputs.
//!
//! Only known fields are kept while the JSON is read, so pictures in outputs take no memory beyond the file.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::super::item::{FileKind, FileRecord, Item};
use super::super::skips::Problem;
use super::document::Document;

/// Reads a notebook. Its title is that in its metadata, or its first heading.
pub(crate) fn read_notebook(item: &mut Item<'_>) -> Result<FileRecord, Problem> {
    let bytes = item.read_all()?;
    let json = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&bytes);
    let notebook: Notebook = serde_json::from_slice(json)
        .map_err(|error| format!("its JSON is not that of a notebook: {error}"))?;
    Ok(notebook.into_document().into_record(FileKind::Notebook, item))
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Notebook {
    cells: Vec<Cell>,
    /// The cells of notebooks before version 4.
    worksheets: Vec<Worksheet>,
    #[serde(deserialize_with = "lenient")]
    metadata: Option<Metadata>,
}

#[derive(Debug, Deserialize)]
struct Worksheet {
    #[serde(default)]
    cells: Vec<Cell>,
}

/// Fields that programs write in several forms. One in another form is left out.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Metadata {
    title: Text,
    authors: Value,
    kernelspec: Value,
    language_info: Value,
}

impl Metadata {
    /// Returns the language of the code, or an empty text.
    fn language(&self) -> &str {
        let own = self.language_info.get("name").and_then(Value::as_str);
        own.or_else(|| self.kernelspec.get("language")?.as_str()).unwrap_or_default()
    }

    /// Returns the names of the authors: texts, or objects with a name.
    fn authors(&self) -> Vec<String> {
        let authors = self.authors.as_array().into_iter().flatten();
        let names = authors.filter_map(|author| author.as_str().or_else(|| author.get("name")?.as_str()));
        names.filter(|name| !name.is_empty()).map(str::to_owned).collect()
    }
}

#[derive(Debug, Deserialize)]
struct Cell {
    #[serde(default)]
    cell_type: String,
    /// `input` before version 4.
    #[serde(default, alias = "input")]
    source: Text,
    #[serde(default)]
    outputs: Vec<Output>,
    /// Level of a heading before version 4.
    #[serde(default, deserialize_with = "lenient")]
    level: Option<u8>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Output {
    text: Text,
    #[serde(deserialize_with = "lenient")]
    data: Data,
    #[serde(deserialize_with = "lenient")]
    ename: String,
    #[serde(deserialize_with = "lenient")]
    evalue: String,
}

/// An output in several formats, of which the text is kept.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Data {
    #[serde(rename = "text/plain")]
    plain: Text,
    #[serde(rename = "text/markdown")]
    markdown: Text,
}

/// Reads a value whose type may be wrong, since its text is not needed: the default then counts.
fn lenient<'de, D: Deserializer<'de>, T: Default + DeserializeOwned>(deserializer: D) -> Result<T, D::Error> {
    Ok(serde_json::from_value(Value::deserialize(deserializer)?).unwrap_or_default())
}

/// A text, also as a list of its lines. A value of another type, such as a number, is an empty text.
#[derive(Debug, Default)]
struct Text(String);

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(match Value::deserialize(deserializer)? {
            Value::String(text) => text,
            Value::Array(lines) => joined(lines.iter().filter_map(Value::as_str)),
            _ => String::new(),
        }))
    }
}

impl Notebook {
    fn into_document(self) -> Document {
        let Self { cells, worksheets, metadata } = self;
        let metadata = metadata.unwrap_or_default();
        let language = metadata.language();
        let cells: Vec<Cell> =
            cells.into_iter().chain(worksheets.into_iter().flat_map(|sheet| sheet.cells)).collect();
        let mut texts = Vec::new();
        let mut heading = String::new();
        for cell in &cells {
            let text = cell.text(language);
            if heading.is_empty() && cell.cell_type != "code" {
                heading = first_heading(&text);
            }
            texts.extend((!text.is_empty()).then_some(text));
            texts.extend(cell.outputs.iter().map(Output::text).filter(|text| !text.is_empty()));
        }
        Document {
            heading,
            authors: metadata.authors(),
            count: Some(("cells", cells.len())),
            text: texts.join("\n\n"),
            title: metadata.title.0,
            ..Document::default()
        }
    }
}

impl Cell {
    /// Returns the text of the cell: Markdown as it is, and code between fences.
    fn text(&self, language: &str) -> String {
        let source = self.source.0.trim_matches(['\n', '\r']).trim_end();
        match self.cell_type.as_str() {
            _ if source.is_empty() => String::new(),
            "code" => format!("```{language}\n{source}\n```"),
            "heading" => format!("{} {source}", "#".repeat(usize::from(self.level.unwrap_or(1)).min(6))),
            _ => source.to_owned(),
        }
    }
}

impl Output {
    /// Returns the text of an output. That of a data frame is in the plain text, too.
    fn text(&self) -> String {
        let texts = [&self.text, &self.data.markdown, &self.data.plain];
        let shown = texts.into_iter().map(|Text(text)| text.trim_end()).find(|text| !text.is_empty());
        let shown = shown.unwrap_or_default();
        let error = match (self.ename.as_str(), self.evalue.as_str()) {
            ("", "") => String::new(),
            (name, value) => format!("{name}: {value}"),
        };
        without_escapes([shown, error.trim()].into_iter().find(|text| !text.is_empty()).unwrap_or_default())
    }
}

/// Joins lines. Those of version 2 have no line breaks.
fn joined<'a>(lines: impl Iterator<Item = &'a str>) -> String {
    let mut text = String::new();
    for line in lines {
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(line);
    }
    text
}

/// Returns the text of the first heading of a cell.
fn first_heading(text: &str) -> String {
    let mut lines = text.lines().map(str::trim).filter(|line| line.starts_with('#'));
    lines.next().map(|line| line.trim_matches(['#', ' ', '*']).to_owned()).unwrap_or_default()
}

/// Returns a text without the escape sequences of terminals (`ESC [ 31 m`).
fn without_escapes(text: &str) -> String {
    let mut pieces = text.split("\u{1B}[");
    let mut written = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let end = piece.find(|character: char| character.is_ascii_alphabetic());
        written.push_str(end.and_then(|end| piece.get(end + 1..)).unwrap_or_default());
    }
    written
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn document(notebook: Value) -> Document {
        serde_json::from_value::<Notebook>(notebook).unwrap().into_document()
    }

    #[test]
    fn cells_and_the_text_of_outputs_are_read() {
        let read = document(
            json!({"nbformat": 4, "metadata": {"language_info": {"name": "python"}, "authors": [{"name": "Ann"}]}, "cells": [
                {"cell_type": "markdown", "source": ["# Analysis of *condors*\n", "By wing"]},
                {"cell_type": "code", "source": "x = wingspan()\n", "execution_count": 1, "outputs": [
                    {"output_type": "stream", "name": "stdout", "text": ["3.2\n", "3.3\n"]},
                    {"output_type": "display_data", "data": {"image/png": "iVBORw0KGgo=", "text/plain": ["<Figure>"], "application/json": {"a": [1]}}},
                    {"output_type": "error", "ename": "KeyError", "evalue": "\u{1B}[31m'wing'\u{1B}[0m", "traceback": ["long"]},
                ]},
                {"cell_type": "code", "source": [], "outputs": [], "metadata": {"text": 1}},
            ]}),
        );
        assert_eq!(
            read.text,
            "# Analysis of *condors*\nBy wing\n\n```python\nx = wingspan()\n```\n\n3.2\n3.3\n\n<Figure>\n\nKeyError: 'wing'"
        );
        assert_eq!((read.heading.as_str(), read.count), ("Analysis of *condors", Some(("cells", 3))));
        assert_eq!(read.authors, ["Ann"]);
    }

    #[test]
    fn values_of_other_types_do_not_reject_a_notebook() {
        let read = document(
            json!({"nbformat": 4, "metadata": {"kernelspec": "x", "language_info": 3, "authors": "Ann"}, "cells": [
                {"cell_type": "heading", "level": -1, "source": "Kites"},
                {"cell_type": "code", "source": "y", "outputs": [{"ename": null, "data": "x", "text": "z"}]},
            ]}),
        );
        assert_eq!(read.text, "# Kites\n\n```\ny\n```\n\nz");
    }

    #[test]
    fn metadata_of_any_form_is_read() {
        for (metadata, authors) in [
            (json!({"authors": ["Ann", {"name": "Bo"}, 1], "kernelspec": null}), &["Ann", "Bo"][..]),
            (json!({"authors": null, "language_info": "r", "title": null}), &[]),
            (Value::Null, &[]),
        ] {
            let read =
                document(json!({"metadata": metadata, "cells": [{"cell_type": "code", "source": "x"}]}));
            assert_eq!(
                (read.authors, read.text.as_str()),
                (authors.iter().map(ToString::to_string).collect(), "```\nx\n```")
            );
        }
    }

    #[test]
    fn notebooks_of_version_3_are_read() {
        let read = document(json!({"nbformat": 3, "worksheets": [{"cells": [
            {"cell_type": "heading", "level": 2, "source": "Kites"}, {"cell_type": "code", "input": ["y", "z"], "outputs": [{"text": 5}]},
        ]}]}));
        assert_eq!((read.heading.as_str(), read.text.as_str()), ("Kites", "## Kites\n\n```\ny\nz\n```"));
    }
}
