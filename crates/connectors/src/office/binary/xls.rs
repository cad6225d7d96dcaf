//! The rows of a workbook of Excel 97 to 2003.
//!
//! The stream `Workbook` is a list of records: first those of the workbook with the positions of its sheets, its formats
//! and its shared texts, and then those of each sheet. Values of formulas are those that Excel saved.

use serde_json::Value;

use super::super::super::intake::Intake;
use super::super::super::item::{Item, ReadError};
use super::super::super::skips::Problem;
use super::super::ods::number;
use super::super::rows::{Row, Rows};
use super::super::serial::TimeStyle;
use super::bytes::{u16_at, u32_at, u64_at, usize_at};
use super::compound::{Compound, encrypted};
use super::older_format;
use super::shared_strings::{shared_strings, text_in};

/// Maximum number of sheets, and of formats and styles.
const MAX_SHEETS: usize = 1_000;
const MAX_STYLES: usize = 70_000;

/// Bytes of the header of a record.
const HEADER_BYTES: usize = 4;

/// Version of the format of Excel 97.
const EXCEL_97: u16 = 0x600;

/// Types of records of all parts: their start and end, and the rest of a long record.
const START: u16 = 0x809;
const END: u16 = 0x0A;
const CONTINUE: u16 = 0x3C;

/// Types of records of a workbook: password, days from 1904, format, style, sheet, and shared texts.
const PASSWORD: u16 = 0x2F;
const DAYS_1904: u16 = 0x22;
const FORMAT: u16 = 0x41E;
const STYLE: u16 = 0xE0;
const SHEET: u16 = 0x85;
const TEXTS: u16 = 0xFC;

/// Types of records of cells: a shared text, a text, one with formats, a number, short numbers, a formula, the text of the
/// formula before it, and a boolean or an error.
const SHARED: u16 = 0xFD;
const TEXT: u16 = 0x204;
const RICH_TEXT: u16 = 0xD6;
const NUMBER: u16 = 0x203;
const SHORT: u16 = 0x27E;
const SHORTS: u16 = 0xBD;
const FORMULA: u16 = 0x06;
const RESULT: u16 = 0x207;
const BOOLEAN: u16 = 0x205;

/// Reads the sheets of a workbook.
pub(in super::super) fn read_xls(
    item: &Item<'_>,
    bytes: Vec<u8>,
    intake: &mut Intake<'_>,
) -> Result<(), ReadError> {
    let file_bytes = bytes.len();
    let mut file = Compound::open(bytes)?;
    let Some(stream) = file.read("Workbook")? else {
        return Err(older_format("Excel", "xlsx").into());
    };
    drop(file);
    let workbook = Workbook::read(&stream)?;
    let mut rows = Rows::new(item, file_bytes, intake);
    for sheet in workbook.sheets.iter().take(MAX_SHEETS) {
        rows.start_sheet(&sheet.name);
        let read = workbook.read_sheet(stream.get(sheet.position..).unwrap_or_default(), &mut rows);
        rows.end_sheet()?;
        read?;
    }
    Ok(())
}

/// Returns the records that follow each other in bytes, each a type and its content.
fn records(mut bytes: &[u8]) -> impl Iterator<Item = Record<'_>> {
    std::iter::from_fn(move || {
        let (kind, length) = (u16_at(bytes, 0)?, u16_at(bytes, 2)?);
        let content = bytes.get(HEADER_BYTES..)?;
        let (content, rest) = content.split_at(content.len().min(length.into()));
        bytes = rest;
        Some(Record { kind, content })
    })
}

#[derive(Debug, Clone, Copy)]
struct Record<'s> {
    kind: u16,
    content: &'s [u8],
}

/// A sheet with its name and the position of its records.
#[derive(Debug)]
struct Sheet {
    name: String,
    position: usize,
}

/// The shared parts of a workbook.
#[derive(Debug, Default)]
struct Workbook {
    sheets: Vec<Sheet>,
    texts: Vec<String>,
    /// Formats by their numbers.
    formats: Vec<(u16, Option<TimeStyle>)>,
    /// Meaning of numbers in each style of cells.
    styles: Vec<Option<TimeStyle>>,
    starts_in_1904: bool,
}

impl Workbook {
    fn read(stream: &[u8]) -> Result<Self, Problem> {
        let mut workbook = Self::default();
        let mut is_shared = false;
        let mut shared = Vec::new();
        for (number, Record { kind, content }) in records(stream).enumerate() {
            is_shared &= kind == CONTINUE;
            match kind {
                START if number == 0 && u16_at(content, 0) != Some(EXCEL_97) => {
                    return Err(older_format("Excel", "xlsx"));
                }
                _ if number == 0 && kind != START => return Err("its stream Workbook is broken".into()),
                PASSWORD => return Err(encrypted()),
                DAYS_1904 => workbook.starts_in_1904 = u16_at(content, 0) == Some(1),
                FORMAT => workbook.add_format(content),
                STYLE => workbook.add_style(content),
                SHEET => workbook.add_sheet(content),
                TEXTS => {
                    (is_shared, shared) = (true, vec![content]);
                }
                CONTINUE if is_shared => shared.push(content),
                END => break,
                _ => {}
            }
        }
        workbook.texts = shared_strings(shared)?;
        Ok(workbook)
    }

    fn add_format(&mut self, content: &[u8]) {
        if let Some((id, code)) = u16_at(content, 0).zip(content.get(2..).and_then(|code| text_in(code, 2)))
            && self.formats.len() < MAX_STYLES
        {
            self.formats.push((id, TimeStyle::from_format(&code)));
        }
    }

    fn add_style(&mut self, content: &[u8]) {
        if self.styles.len() < MAX_STYLES {
            let id = u16_at(content, 2).unwrap_or(0);
            let own = self.formats.iter().find(|(known, _)| *known == id).map(|(_, style)| *style);
            self.styles.push(own.unwrap_or_else(|| TimeStyle::from_built_in(id.into())));
        }
    }

    /// Adds a sheet with cells. Sheets of charts and macros have none.
    fn add_sheet(&mut self, content: &[u8]) {
        const KIND_AT: usize = 5;
        const NAME_AT: usize = 6;
        let name = content.get(NAME_AT..).and_then(|name| text_in(name, 1));
        if let Some((position, name)) = usize_at(content, 0).zip(name)
            && content.get(KIND_AT) == Some(&0)
        {
            self.sheets.push(Sheet { name, position });
        }
    }

    /// Reads the records of a sheet. Charts in it have records of their own.
    fn read_sheet(&self, stream: &[u8], rows: &mut Rows<'_, '_>) -> Result<(), ReadError> {
        let mut cells = Cells { number: 0, row: Row::default(), rows };
        let (mut level, mut formula) = (0_usize, None);
        for Record { kind, content } in records(stream) {
            match kind {
                START => level += 1,
                END => level = level.saturating_sub(1),
                _ if level > 1 => {}
                RESULT => {
                    if let Some(place) = formula.take() {
                        cells.set(place, text_in(content, 2).and_then(|text| text_value(&text)))?;
                    }
                }
                SHORTS => self.read_short_numbers(content, &mut cells)?,
                _ => {
                    let Some(place) = Place::read(content) else { continue };
                    if kind == FORMULA {
                        formula = Some(place);
                    }
                    if let Some(value) = self.value(kind, content) {
                        cells.set(place, Some(value))?;
                    }
                }
            }
            if level == 0 {
                break;
            }
        }
        cells.end_row()
    }

    /// Reads the numbers of several cells in a row: a style and a number for each.
    fn read_short_numbers(&self, content: &[u8], cells: &mut Cells<'_, '_, '_>) -> Result<(), ReadError> {
        const CELL_BYTES: usize = 6;
        let Some(mut place) = Place::read(content) else { return Ok(()) };
        let count = content.len().saturating_sub(CELL_BYTES) / CELL_BYTES;
        for cell in content.get(4..).unwrap_or_default().chunks_exact(CELL_BYTES).take(count) {
            if let Some((style, short)) = u16_at(cell, 0).zip(u32_at(cell, 2)) {
                cells.set(place, self.number(short_number(short), style))?;
            }
            place.column += 1;
        }
        Ok(())
    }

    /// Returns the value of a cell with one, after its row, column and style. That of a formula with a text follows it.
    fn value(&self, kind: u16, content: &[u8]) -> Option<Value> {
        const AT: usize = 6;
        let style = u16_at(content, 4)?;
        match kind {
            SHARED => self.texts.get(usize_at(content, AT)?).and_then(|text| text_value(text)),
            TEXT | RICH_TEXT => text_value(&text_in(content.get(AT..)?, 2)?),
            NUMBER => self.number(f64::from_bits(u64_at(content, AT)?), style),
            SHORT => self.number(short_number(u32_at(content, AT)?), style),
            BOOLEAN => (content.get(AT + 1) == Some(&0)).then(|| Value::from(content.get(AT) == Some(&1))),
            FORMULA if u16_at(content, AT + 6)? == u16::MAX => {
                (content.get(AT) == Some(&1)).then(|| Value::from(content.get(AT + 2) == Some(&1)))
            }
            FORMULA => self.number(f64::from_bits(u64_at(content, AT)?), style),
            _ => None,
        }
    }

    fn number(&self, value: f64, style: u16) -> Option<Value> {
        let time = self.styles.get(usize::from(style)).copied().flatten();
        time.and_then(|time| time.value(value, self.starts_in_1904)).or_else(|| number(value))
    }
}

fn text_value(text: &str) -> Option<Value> {
    Some(text.trim()).filter(|text| !text.is_empty()).map(Value::from)
}

/// Returns a number of 30 bits: an integer or the upper part of a floating-point number, which may be hundredths.
fn short_number(short: u32) -> f64 {
    const IN_HUNDREDTHS: u32 = 1;
    const IS_INTEGER: u32 = 2;
    let value = if short & IS_INTEGER != 0 {
        f64::from(short.cast_signed() >> 2)
    } else {
        f64::from_bits(u64::from(short & !(IN_HUNDREDTHS | IS_INTEGER)) << 32)
    };
    if short & IN_HUNDREDTHS != 0 { value / 100.0 } else { value }
}

/// The place of a cell in a sheet.
#[derive(Debug, Clone, Copy)]
struct Place {
    /// Number of the row from 1.
    row: usize,
    /// Number of the column from 0.
    column: usize,
}

impl Place {
    fn read(content: &[u8]) -> Option<Self> {
        Some(Self { row: usize::from(u16_at(content, 0)?) + 1, column: u16_at(content, 2)?.into() })
    }
}

/// The row that is read.
struct Cells<'c, 'r, 'i> {
    number: usize,
    row: Row,
    rows: &'c mut Rows<'r, 'i>,
}

impl Cells<'_, '_, '_> {
    fn set(&mut self, place: Place, value: Option<Value>) -> Result<(), ReadError> {
        if place.row != self.number {
            self.end_row()?;
            self.number = place.row;
        }
        Ok(self.row.set(place.column, value)?)
    }

    fn end_row(&mut self) -> Result<(), ReadError> {
        if self.row.len() > 0 {
            self.rows.add(self.number, &self.row)?;
        }
        self.row.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_numbers_are_integers_or_fractions() {
        for (short, expect) in [
            (0x3FF0_0000, 1.0),
            (0x4059_0001, 1.0),
            (5 << 2 | 2, 5.0),
            (123 << 2 | 3, 1.23),
            ((-7_i32).cast_unsigned() << 2 | 2, -7.0),
        ] {
            assert!((short_number(short) - expect).abs() < 1e-9, "{short:x}");
        }
    }
}
