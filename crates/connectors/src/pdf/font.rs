//! The characters and widths of a font.

use std::collections::HashMap;

use encoding_rs::{MACINTOSH, WINDOWS_1252};
use fetchwell_core::saturate::saturated;
use hayro_cmap::CMap;
use hayro_syntax::object::{Array, Dict, Name, Number, Object, Stream};

use super::cid::{CMaps, CidEncoding, Code, document_cmap, text_of};
use super::encoding::{glyph_text, standard_text, symbol_text};

/// Maximum number of widths of a font that are read.
const MAX_WIDTHS: usize = 70_000;

/// Distance of two glyphs in vertical writing, in text space for size 1.
const VERTICAL_ADVANCE: f64 = -1.0;

/// A font, as far as text needs it.
#[derive(Debug)]
pub(super) struct Font {
    /// The mapping that the document has for copying text.
    to_unicode: Option<CMap>,
    encoding: Encoding,
    widths: HashMap<u32, f64>,
    default_width: f64,
    /// Length of a unit of widths, in text space.
    unit: f64,
}

/// The codes of a font.
#[derive(Debug)]
enum Encoding {
    /// Texts of the 256 codes of a font with single bytes.
    Single(Vec<String>),
    /// Codes of one to four bytes.
    Wide(CidEncoding),
}

/// A character code with its text.
#[derive(Debug)]
pub(super) struct Glyph {
    pub(super) text: String,
    /// Width in text space, for size 1. In vertical writing, it is a height.
    pub(super) width: f64,
    /// True if word spacing applies to it.
    pub(super) is_space: bool,
}

impl Font {
    /// Reads the dictionary of a font.
    pub(super) fn new(font: &Dict<'_>, cmaps: &mut CMaps) -> Self {
        let to_unicode = font.get::<Stream<'_>>("ToUnicode").and_then(|stream| stream.decoded().ok());
        let to_unicode = to_unicode.and_then(|cmap| document_cmap(&cmap));
        let subtype = font.get::<Name<'_>>("Subtype");
        let subtype = subtype.as_ref().map(Name::as_str).unwrap_or_default();
        let is_wide = subtype == "Type0";
        let descendant =
            font.get::<Array<'_>>("DescendantFonts").and_then(|fonts| fonts.iter::<Dict<'_>>().next());
        let (widths, default_width) = match &descendant {
            Some(descendant) if is_wide => (
                cid_widths(descendant),
                descendant.get::<Number>("DW").map_or(1_000.0, |width| width.as_f64()),
            ),
            _ => (simple_widths(font), 500.0),
        };
        let unit = if subtype == "Type3" { type3_unit(font) } else { 0.001 };
        let encoding = if is_wide {
            Encoding::Wide(CidEncoding::new(font, descendant.as_ref(), cmaps))
        } else {
            Encoding::Single(simple_encoding(font, subtype))
        };
        Self { to_unicode, encoding, widths, default_width, unit }
    }

    /// Returns the glyphs of a string.
    pub(super) fn glyphs<'a>(&'a self, bytes: &'a [u8]) -> impl Iterator<Item = Glyph> + 'a {
        let mut rest = bytes;
        std::iter::from_fn(move || {
            let first = *rest.first()?;
            let code = match &self.encoding {
                Encoding::Single(_) => Code { number: first.into(), bytes: 1, glyph: first.into() },
                Encoding::Wide(encoding) => encoding.next_code(rest),
            };
            rest = rest.get(code.bytes..).unwrap_or_default();
            let width = self.widths.get(&code.glyph).copied().unwrap_or(self.default_width) * self.unit;
            let width = if self.is_vertical() { VERTICAL_ADVANCE } else { width };
            Some(Glyph { text: self.text(code), width, is_space: code.bytes == 1 && code.number == 32 })
        })
    }

    /// Returns true if glyphs follow each other downwards.
    pub(super) fn is_vertical(&self) -> bool {
        matches!(&self.encoding, Encoding::Wide(encoding) if encoding.is_vertical)
    }

    /// Returns the name of the CMap that the font needs and that is not known.
    pub(super) fn unknown_cmap(&self) -> Option<&str> {
        match &self.encoding {
            Encoding::Wide(encoding) => encoding.unknown.as_deref(),
            Encoding::Single(_) => None,
        }
    }

    fn text(&self, code: Code) -> String {
        match self.to_unicode.as_ref().and_then(|cmap| cmap.lookup_bf_string(code.number)) {
            Some(mapped) => text_of(mapped),
            None => match &self.encoding {
                Encoding::Single(texts) => {
                    let place = usize::try_from(code.number).ok();
                    place.and_then(|place| texts.get(place)).cloned().unwrap_or_default()
                }
                Encoding::Wide(encoding) => encoding.text(code),
            },
        }
    }
}

/// Returns the texts of the 256 codes of a font with single bytes.
fn simple_encoding(font: &Dict<'_>, subtype: &str) -> Vec<String> {
    let dictionary = font.get::<Dict<'_>>("Encoding");
    let base = match &dictionary {
        Some(dictionary) => dictionary.get::<Name<'_>>("BaseEncoding"),
        None => font.get::<Name<'_>>("Encoding"),
    };
    let base = base.as_ref().map(Name::as_str).unwrap_or_default();
    let font_name = font.get::<Name<'_>>("BaseFont");
    let is_symbol = font_name.as_ref().is_some_and(|name| is_symbol(name.as_str()));
    let decode = |code: u8| match base {
        "" if is_symbol => symbol_text(code),
        "WinAnsiEncoding" => WINDOWS_1252.decode_without_bom_handling(&[code]).0.into_owned(),
        "MacRomanEncoding" => MACINTOSH.decode_without_bom_handling(&[code]).0.into_owned(),
        _ if subtype == "TrueType" => WINDOWS_1252.decode_without_bom_handling(&[code]).0.into_owned(),
        _ => standard_text(code),
    };
    let mut texts: Vec<String> = (0..=u8::MAX).map(decode).collect();
    let differences = dictionary.and_then(|dictionary| dictionary.get::<Array<'_>>("Differences"));
    let mut code = 0_usize;
    for item in differences.iter().flat_map(Array::iter::<Object<'_>>) {
        match item {
            Object::Number(number) => code = saturated::<usize>(number.as_i64()),
            Object::Name(name) => {
                if let Some(text) = texts.get_mut(code) {
                    *text = glyph_text(name.as_str());
                }
                code = code.saturating_add(1);
            }
            _ => {}
        }
    }
    texts
}

/// Returns true for the font Symbol, also in a subset (`ABCDEF+Symbol`).
fn is_symbol(font_name: &str) -> bool {
    let name = font_name.rsplit_once('+').map_or(font_name, |(_subset, name)| name);
    matches!(name.split_once(['-', ',']).map_or(name, |(family, _style)| family), "Symbol" | "SymbolMT")
}

fn simple_widths(font: &Dict<'_>) -> HashMap<u32, f64> {
    let first =
        font.get::<Number>("FirstChar").and_then(|first| u32::try_from(first.as_i64()).ok()).unwrap_or(0);
    let widths = font.get::<Array<'_>>("Widths");
    let widths = widths.iter().flat_map(Array::iter::<Number>).take(MAX_WIDTHS);
    (first..).zip(widths.map(|width| width.as_f64())).collect()
}

/// Reads the widths of a font with wide codes: `first [w1 w2]` or `first last w`.
fn cid_widths(font: &Dict<'_>) -> HashMap<u32, f64> {
    let mut widths = HashMap::new();
    let Some(array) = font.get::<Array<'_>>("W") else { return widths };
    let mut numbers: Vec<f64> = Vec::new();
    for item in array.iter::<Object<'_>>().take(MAX_WIDTHS) {
        match item {
            Object::Number(number) => {
                numbers.push(number.as_f64());
                if let [first, last, width] = *numbers.as_slice() {
                    let room = MAX_WIDTHS.saturating_sub(widths.len());
                    let codes = (code(first)..=code(last)).take(room);
                    widths.extend(codes.map(|code| (code, width)));
                    numbers.clear();
                }
            }
            Object::Array(list) => {
                let first = numbers.pop().map_or(0, code);
                numbers.clear();
                let room = MAX_WIDTHS.saturating_sub(widths.len());
                let list = list.iter::<Number>().take(room).map(|width| width.as_f64());
                widths.extend((first..).zip(list));
            }
            _ => {}
        }
    }
    widths
}

fn code(number: f64) -> u32 {
    format!("{number:.0}").parse().unwrap_or(0)
}

/// Returns the length of a unit of a font that is drawn by operators.
fn type3_unit(font: &Dict<'_>) -> f64 {
    let matrix = font.get::<Array<'_>>("FontMatrix");
    matrix.and_then(|matrix| matrix.iter::<Number>().next()).map_or(0.001, |unit| unit.as_f64())
}
