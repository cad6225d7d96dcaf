//! The reader of Excel workbooks.
//!
//! Values of formulas are those that Excel saved. A number is a day, a time or a duration if its format shows one.

use std::collections::HashMap;

use serde_json::Value;

use super::super::intake::Intake;
use super::super::item::{Item, ReadError};
use super::super::skips::Problem;
use super::binary::{is_compound_file, read_xls};
use super::ods::number;
use super::package::Package;
use super::properties::relationships;
use super::rows::{MAX_CELLS, Row, Rows};
use super::serial::TimeStyle;
use super::xml::{Node, Tag, walk_xml};

const MAIN_PART: &str = "xl/workbook.xml";

/// Maximum number of sheets.
const MAX_SHEETS: usize = 1_000;

/// Reads the sheets of a workbook.
pub(crate) fn read_xlsx(item: &mut Item<'_>, intake: &mut Intake<'_>) -> Result<(), ReadError> {
    let bytes = item.read_all()?;
    if is_compound_file(&bytes) {
        return read_xls(item, bytes, intake);
    }
    let file_bytes = bytes.len();
    let mut package = Package::open(bytes)?;
    let (sheets, starts_in_1904) = sheets(&mut package)?;
    let texts = package.read("xl/sharedStrings.xml")?.map(|xml| shared_texts(&xml)).transpose()?;
    let styles = package.read("xl/styles.xml")?.map(|xml| time_styles(&xml)).transpose()?;
    let workbook = Workbook {
        texts: texts.unwrap_or_default(),
        time_styles: styles.unwrap_or_default(),
        starts_in_1904,
    };
    let mut rows = Rows::new(item, file_bytes, intake);
    for sheet in sheets.iter().take(MAX_SHEETS) {
        let Some(xml) = package.read(&sheet.part)? else { continue };
        rows.start_sheet(&sheet.name);
        let read = workbook.read_sheet(&xml, &mut rows);
        rows.end_sheet()?;
        read?;
    }
    Ok(())
}

/// A sheet with its name and part.
struct Sheet {
    name: String,
    part: String,
}

/// Returns the sheets of a workbook, and whether its days count from 1904.
fn sheets(package: &mut Package) -> Result<(Vec<Sheet>, bool), Problem> {
    let xml = package.require(MAIN_PART)?;
    let related = relationships(package, MAIN_PART)?;
    let (mut sheets, mut starts_in_1904) = (Vec::new(), false);
    walk_xml(&xml, &mut |node| {
        if let Node::Start(tag) = node {
            if tag.name == "workbookPr" {
                starts_in_1904 =
                    tag.attribute("date1904").is_some_and(|value| value == "1" || value == "true");
            }
            if tag.name == "sheet"
                && let Some(sheet) = tag.exact_attribute("r:id").and_then(|id| related.get(&id))
                && sheet.kind == "worksheet"
            {
                let (name, part) = (tag.attribute("name").unwrap_or_default(), sheet.part.clone());
                sheets.push(Sheet { name, part });
            }
        }
        Ok::<(), String>(())
    })?;
    Ok((sheets, starts_in_1904))
}

/// Returns the texts that cells share, without phonetic guides.
fn shared_texts(xml: &str) -> Result<Vec<String>, String> {
    let (mut texts, mut text, mut is_text, mut guides) = (Vec::new(), String::new(), false, 0_usize);
    walk_xml(xml, &mut |node| {
        match node {
            Node::Start(tag) if tag.name == "t" => is_text = guides == 0,
            Node::Start(tag) if tag.name == "rPh" => guides += 1,
            Node::Text(piece) if is_text => text.push_str(piece),
            Node::End("t") => is_text = false,
            Node::End("rPh") => guides = guides.saturating_sub(1),
            Node::End("si") if texts.len() == MAX_CELLS => {
                return Err(format!("its cells share more than {MAX_CELLS} texts"));
            }
            Node::End("si") => texts.push(std::mem::take(&mut text)),
            Node::Start(_) | Node::End(_) | Node::Text(_) => {}
        }
        Ok::<(), String>(())
    })?;
    Ok(texts)
}

/// Returns the cell styles that show a day, time or duration, by their numbers.
fn time_styles(xml: &str) -> Result<HashMap<usize, TimeStyle>, String> {
    let (mut formats, mut styles, mut count, mut is_cell_style) = (HashMap::new(), HashMap::new(), 0, false);
    walk_xml(xml, &mut |node| {
        match node {
            Node::Start(tag) if tag.name == "cellXfs" => is_cell_style = true,
            Node::End("cellXfs") => is_cell_style = false,
            Node::Start(tag) if tag.name == "numFmt" => {
                let id = tag.attribute("numFmtId").and_then(|id| id.parse::<u32>().ok());
                let style = tag.attribute("formatCode").and_then(|code| TimeStyle::from_format(&code));
                formats.extend(id.zip(style));
            }
            Node::Start(tag) if tag.name == "xf" && is_cell_style => {
                let id = tag.attribute("numFmtId").and_then(|id| id.parse().ok()).unwrap_or(0);
                let style = formats.get(&id).copied().or_else(|| TimeStyle::from_built_in(id));
                styles.extend(style.map(|style| (count, style)));
                count += 1;
            }
            Node::Start(_) | Node::End(_) | Node::Text(_) => {}
        }
        Ok::<(), String>(())
    })?;
    Ok(styles)
}

/// The shared texts and styles to which cells refer.
struct Workbook {
    texts: Vec<String>,
    time_styles: HashMap<usize, TimeStyle>,
    starts_in_1904: bool,
}

/// A cell that is read.
#[derive(Default)]
struct Cell {
    column: usize,
    kind: String,
    style: usize,
    text: String,
}

impl Workbook {
    fn read_sheet(&self, xml: &str, rows: &mut Rows<'_, '_>) -> Result<(), ReadError> {
        let (mut number, mut row, mut cell) = (0_usize, Row::default(), None::<Cell>);
        let mut is_value = false;
        walk_xml(xml, &mut |node| {
            match node {
                Node::Start(tag) => match tag.name {
                    "row" => {
                        let own = tag.attribute("r").and_then(|number| number.parse().ok());
                        number = own.unwrap_or(number.saturating_add(1));
                        row.clear();
                    }
                    "c" => cell = Some(Cell::new(tag, row.len())),
                    "v" | "t" => is_value = cell.is_some(),
                    _ => {}
                },
                Node::Text(piece) if is_value => {
                    if let Some(cell) = &mut cell {
                        cell.text.push_str(piece);
                    }
                }
                Node::End("v" | "t") => is_value = false,
                Node::End("c") => {
                    if let Some(cell) = cell.take() {
                        row.set(cell.column, self.value(&cell))?;
                    }
                }
                Node::End("row") => rows.add(number, &row)?,
                Node::End(_) | Node::Text(_) => {}
            }
            Ok(())
        })
    }

    fn value(&self, cell: &Cell) -> Option<Value> {
        let text = cell.text.as_str();
        match cell.kind.as_str() {
            "s" => {
                let shared = text.trim().parse().ok().and_then(|index: usize| self.texts.get(index));
                shared.map(|text| text.trim()).filter(|text| !text.is_empty()).map(Value::from)
            }
            "b" => Some(Value::from(text.trim() == "1")),
            // `#N/A` and the like.
            "e" => None,
            "str" | "inlineStr" | "d" => Some(text.trim()).filter(|text| !text.is_empty()).map(Value::from),
            _ => {
                let value = text.trim().parse::<f64>().ok()?;
                let time = self.time_styles.get(&cell.style);
                time.and_then(|time| time.value(value, self.starts_in_1904)).or_else(|| number(value))
            }
        }
    }
}

impl Cell {
    /// Reads the attributes of a cell. Without a reference, it is the one after the previous.
    fn new(tag: &Tag<'_>, next: usize) -> Self {
        let reference = tag.attribute("r");
        let style = tag.attribute("s").and_then(|style| style.parse().ok()).unwrap_or(0);
        let column = reference.as_deref().and_then(column_of).unwrap_or(next);
        Self { column, kind: tag.attribute("t").unwrap_or_default(), style, text: String::new() }
    }
}

/// Returns the column, from 0, of a cell such as `AB12`.
fn column_of(reference: &str) -> Option<usize> {
    let mut letters = reference.bytes().take_while(u8::is_ascii_alphabetic);
    let column = letters.try_fold(0_usize, |column, letter| {
        column.checked_mul(26)?.checked_add(usize::from(letter.to_ascii_uppercase() - b'A') + 1)
    });
    column?.checked_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_have_columns() {
        for (reference, expect) in [("A1", Some(0)), ("Z9", Some(25)), ("AB12", Some(27)), ("12", None)] {
            assert_eq!(column_of(reference), expect, "{reference}");
        }
        assert_eq!(column_of(&"Z".repeat(100)), None);
    }
}
