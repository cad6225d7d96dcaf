//! Title, author and times of a document (MS-OLEPS).

use super::super::super::documents::Document;
use super::super::super::values::time_since_1601;
use super::bytes::{code_page_text, slice_at, u16_at, u32_at, u64_at, usize_at, utf16_text};
use super::compound::Compound;

/// Name of the stream with the properties.
const STREAM: &str = "\u{5}SummaryInformation";

/// Position of the offset of the first property set.
const OFFSET_AT: usize = 44;

/// Maximum number of properties.
const MAX_PROPERTIES: usize = 256;

/// Maximum bytes of a property.
const MAX_TEXT_BYTES: usize = 64 * 1024;

/// Number of the property with the code page of texts.
const CODE_PAGE: u32 = 1;

/// Types of values: a text in the code page, a text in UTF-16, and a time.
const TEXT: u32 = 0x1E;
const WIDE_TEXT: u32 = 0x1F;
const TIME: u32 = 0x40;

/// Sets the fields that a document has in its properties. A document without any, or with broken ones, has none.
pub(super) fn read_properties(file: &mut Compound, document: &mut Document) {
    let stream = file.read(STREAM).ok().flatten().unwrap_or_default();
    let set = usize_at(&stream, OFFSET_AT).and_then(|offset| stream.get(offset..)).unwrap_or_default();
    let count = usize_at(set, 4).unwrap_or(0).min(MAX_PROPERTIES);
    let places = move || {
        (0..count).filter_map(move |at| Some((u32_at(set, 8 + at * 8)?, usize_at(set, 12 + at * 8)?)))
    };
    let code_page = places().find(|(id, _)| *id == CODE_PAGE);
    let code_page = code_page.and_then(|(_, at)| u16_at(set, at.checked_add(4)?)).unwrap_or(1252);
    for (id, at) in places() {
        let value = set.get(at..).and_then(|value| value_of(value, code_page)).unwrap_or_default();
        if value.is_empty() {
            continue;
        }
        match id {
            2 => document.title = value,
            3 => document.subject = value,
            4 => document.authors = vec![value],
            5 => {
                let words = value.split([',', ';']).map(|word| word.trim().to_owned());
                document.keywords = words.filter(|word| !word.is_empty()).collect();
            }
            12 => document.created = value,
            13 => document.modified = value,
            _ => {}
        }
    }
}

/// Returns a text, or a time in RFC 3339.
fn value_of(value: &[u8], code_page: u16) -> Option<String> {
    let kind = u32_at(value, 0)?;
    if kind == TIME {
        let seconds = i64::try_from(u64_at(value, 4)? / 10_000_000).ok()?;
        let time = time_since_1601(seconds)?;
        return (seconds > 0).then(|| time.to_string());
    }
    let length = usize_at(value, 4)?.min(MAX_TEXT_BYTES);
    let text = match kind {
        TEXT => code_page_text(slice_at(value, 8, length)?, code_page),
        WIDE_TEXT => utf16_text(slice_at(value, 8, length.saturating_mul(2))?),
        _ => return None,
    };
    Some(text.trim_matches(['\0', ' ']).to_owned())
}
