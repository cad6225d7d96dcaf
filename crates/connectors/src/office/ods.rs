//! The reader of OpenDocument spreadsheets.

use serde_json::Value;

use super::super::documents::Document;
use super::super::intake::Intake;
use super::super::item::{Item, ReadError};
use super::odt::{add_space, open_document};
use super::package::Package;
use super::rows::{Row, Rows};
use super::xml::{Node, Tag, walk_xml};

/// Maximum number of equal rows that one element stands for.
const MAX_EQUAL_ROWS: usize = 10_000;

/// Reads the sheets of a spreadsheet.
pub(crate) fn read_ods(item: &mut Item<'_>, intake: &mut Intake<'_>) -> Result<(), ReadError> {
    let bytes = item.read_all()?;
    let file_bytes = bytes.len();
    let mut package = Package::open(bytes)?;
    let content = open_document(&mut package, &mut Document::default())?;
    let mut sheets = Sheets {
        rows: Rows::new(item, file_bytes, intake),
        number: 0,
        equal_rows: 1,
        row: Row::default(),
        cell: None,
        is_comment: false,
    };
    let read = walk_xml(&content, &mut |node| sheets.visit(&node));
    sheets.rows.end_sheet()?;
    read
}

/// The sheet, row and cell that are read.
#[derive(Debug)]
struct Sheets<'r, 'i> {
    rows: Rows<'r, 'i>,
    /// Number of the row from 1.
    number: usize,
    /// Number of equal rows that the row stands for.
    equal_rows: usize,
    row: Row,
    cell: Option<Cell>,
    /// True in a comment of a cell.
    is_comment: bool,
}

/// A cell with the number of equal cells that it stands for.
#[derive(Debug)]
struct Cell {
    equal_cells: usize,
    value: Option<Value>,
    text: String,
}

impl Cell {
    fn new(tag: &Tag<'_>) -> Self {
        let value = tag.exact_attribute("office:value").and_then(|value| value.parse::<f64>().ok());
        let value = value.and_then(number).or_else(|| {
            let boolean =
                tag.exact_attribute("office:boolean-value").map(|value| Value::from(value == "true"));
            boolean.or_else(|| tag.exact_attribute("office:date-value").map(Value::from))
        });
        Self { equal_cells: repetition(tag, "number-columns-repeated"), value, text: String::new() }
    }
}

impl Sheets<'_, '_> {
    fn visit(&mut self, node: &Node<'_>) -> Result<(), ReadError> {
        match node {
            Node::Start(tag) if tag.name == "annotation" => self.is_comment = true,
            Node::End("annotation") => self.is_comment = false,
            _ if self.is_comment => {}
            Node::Start(tag) => match tag.name {
                "table" => {
                    self.rows.end_sheet()?;
                    self.rows.start_sheet(&tag.attribute("name").unwrap_or_default());
                    self.number = 0;
                }
                "table-row" => {
                    self.row.clear();
                    self.equal_rows = repetition(tag, "number-rows-repeated");
                }
                "table-cell" | "covered-table-cell" => self.cell = Some(Cell::new(tag)),
                _ => {
                    if let Some(cell) = &mut self.cell {
                        add_space(tag, &mut cell.text);
                    }
                }
            },
            Node::Text(piece) => {
                if let Some(cell) = &mut self.cell {
                    cell.text.push_str(piece);
                }
            }
            Node::End("p") => {
                if let Some(cell) = &mut self.cell {
                    cell.text.push('\n');
                }
            }
            Node::End("table-cell" | "covered-table-cell") => self.end_cell()?,
            Node::End("table-row") => return self.end_row(),
            Node::End(_) => {}
        }
        Ok(())
    }

    fn end_cell(&mut self) -> Result<(), String> {
        let Some(Cell { equal_cells, value, text }) = self.cell.take() else { return Ok(()) };
        let text = text.trim();
        let value = value.or_else(|| (!text.is_empty()).then(|| Value::from(text)));
        self.row.push(value, equal_cells)
    }

    fn end_row(&mut self) -> Result<(), ReadError> {
        let is_empty = self.row.trim();
        // A row without content often stands for all rows to the end of the sheet.
        let shown = if is_empty { 0 } else { self.equal_rows.min(MAX_EQUAL_ROWS) };
        for at in 1..=shown {
            self.rows.add(self.number.saturating_add(at), &self.row)?;
        }
        self.number = self.number.saturating_add(self.equal_rows);
        Ok(())
    }
}

/// Returns how many equal rows or cells an element stands for.
fn repetition(tag: &Tag<'_>, name: &str) -> usize {
    tag.attribute(name).and_then(|count| count.parse().ok()).unwrap_or(1)
}

/// Returns a number as a value: without a fraction if it has none.
pub(super) fn number(value: f64) -> Option<Value> {
    const MAX_EXACT: f64 = 9_007_199_254_740_992.0;
    if value.fract() == 0.0 && value.abs() < MAX_EXACT {
        // The text of such a number is that of an integer.
        return format!("{value:.0}").parse::<i64>().ok().map(Value::from);
    }
    serde_json::Number::from_f64(value).map(Value::Number)
}
