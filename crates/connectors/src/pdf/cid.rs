//! The codes of fonts for Chinese, Japanese and Korean: their lengths, glyphs (CIDs) and characters.
//!
//! A font names a CMap, which maps codes to glyphs, and a collection of glyphs. `hayro-cmap` has the predefined CMaps of
//! PDF (ISO 32000-2, 9.7.5.2), and of the four Adobe collections the characters of each glyph.

use std::collections::HashMap;
use std::rc::Rc;

use hayro_cmap::{BfString, CMap, CMapName, CidFamily, WritingMode, load_embedded};
use hayro_syntax::object::{Dict, Name, Object, Stream, String as PdfString};

/// Maximum bytes of a code.
const MAX_CODE_BYTES: usize = 4;

/// Maximum number of predefined CMaps that are kept. PDF has 61, and 4 for the characters of glyphs.
const MAX_CMAPS: usize = 80;

/// Number of the glyph that stands for all others (`.notdef`).
const NO_GLYPH: u32 = 0;

/// Maximum bytes of the name of a CMap that is not known.
const MAX_NAME_BYTES: usize = 40;

/// Start of the form in which `hayro-cmap` has its own CMaps. No CMap of a document is of this form.
const EMBEDDED_FORM: &[u8] = b"bcmap";

/// The predefined CMaps that a document uses.
#[derive(Debug, Default)]
pub(super) struct CMaps(HashMap<Vec<u8>, Option<Rc<CMap>>>);

impl CMaps {
    /// Returns a predefined CMap, or `None` if it is not known.
    fn get(&mut self, name: &[u8]) -> Option<Rc<CMap>> {
        if let Some(known) = self.0.get(name) {
            return known.clone();
        }
        let cmap = match CMapName::from_bytes(name) {
            CMapName::IdentityH => Some(CMap::identity_h()),
            CMapName::IdentityV => Some(CMap::identity_v()),
            known => load_embedded(known).and_then(parse_cmap),
        };
        let cmap = cmap.map(Rc::new);
        if self.0.len() < MAX_CMAPS {
            self.0.insert(name.to_vec(), cmap.clone());
        }
        cmap
    }
}

/// Parses a CMap of a document. `None` for one that is broken or built on an unknown one.
pub(super) fn document_cmap(bytes: &[u8]) -> Option<CMap> {
    if bytes.starts_with(EMBEDDED_FORM) { None } else { parse_cmap(bytes) }
}

fn parse_cmap(bytes: &[u8]) -> Option<CMap> {
    CMap::parse(bytes, load_embedded)
}

/// The encoding of a font with wide codes.
#[derive(Debug)]
pub(super) struct CidEncoding {
    /// Glyphs of codes.
    cmap: Option<Rc<CMap>>,
    characters: Characters,
    /// True if some codes have one byte.
    has_single_bytes: bool,
    pub(super) is_vertical: bool,
    /// Name of the CMap if it is not known.
    pub(super) unknown: Option<String>,
}

/// The origin of characters.
#[derive(Debug)]
enum Characters {
    /// The code is the character, in UTF-16.
    Code,
    /// The collection of glyphs has characters.
    Glyph(Rc<CMap>),
    Unknown,
}

/// A code at the start of a string.
#[derive(Debug, Clone, Copy)]
pub(super) struct Code {
    pub(super) number: u32,
    /// Number of bytes, at least 1.
    pub(super) bytes: usize,
    /// Number of its glyph, by which widths are found.
    pub(super) glyph: u32,
}

impl CidEncoding {
    /// Reads the encoding of a font and the collection of its descendant.
    pub(super) fn new(font: &Dict<'_>, descendant: Option<&Dict<'_>>, cmaps: &mut CMaps) -> Self {
        let (cmap, name) = match font.get::<Object<'_>>("Encoding") {
            Some(Object::Name(name)) => (cmaps.get(&name), name.to_vec()),
            Some(Object::Stream(stream)) => own_cmap(&stream),
            _ => (cmaps.get(b"Identity-H"), Vec::new()),
        };
        let is_unicode = name.starts_with(b"Uni")
            && ["-UCS2-", "-UTF16-"].iter().any(|form| contains(&name, form.as_bytes()));
        let in_cmap = cmap.as_deref().and_then(|cmap| cmap.metadata().character_collection.as_ref());
        let families = [in_cmap.map(|collection| collection.family.clone()), descendant.and_then(family_of)];
        let collection = families.into_iter().flatten().find_map(|family| family.ucs2_cmap());
        // Codes that are characters have the name of an encoding in place of a map.
        let is_named = || font.get::<Name<'_>>("ToUnicode").is_some_and(|name| name.starts_with(b"Identity"));
        let characters = match collection.and_then(|name| cmaps.get(name.to_bytes())) {
            _ if is_unicode => Characters::Code,
            Some(glyphs) => Characters::Glyph(glyphs),
            None if is_named() => Characters::Code,
            None => Characters::Unknown,
        };
        let has_single_bytes = cmap
            .as_deref()
            .is_some_and(|cmap| (0..=0xFF).any(|code| cmap.lookup_cid_code(code, 1).is_some()));
        let mode = cmap.as_deref().and_then(|cmap| cmap.metadata().writing_mode);
        let unknown = (cmap.is_none() && !is_unicode).then(|| shown_name(&name));
        Self { cmap, characters, has_single_bytes, is_vertical: mode == Some(WritingMode::Vertical), unknown }
    }

    /// Returns the first code of a string that is not empty.
    pub(super) fn next_code(&self, bytes: &[u8]) -> Code {
        let mut number = 0_u32;
        for (at, byte) in bytes.iter().take(MAX_CODE_BYTES).enumerate() {
            number = number << 8 | u32::from(*byte);
            let length = u8::try_from(at + 1).unwrap_or(u8::MAX);
            let glyph = self.cmap.as_deref().and_then(|cmap| cmap.lookup_cid_code(number, length));
            if let Some(glyph) = glyph {
                return Code { number, bytes: at + 1, glyph };
            }
        }
        // The CMap does not have it: it takes as many bytes as its first one suggests, and has no glyph.
        let first = bytes.first().copied().unwrap_or_default();
        let length = if self.has_single_bytes && first < 0x80 { 1 } else { 2 };
        let code = bytes.get(..length).unwrap_or(bytes);
        let number = code.iter().fold(0, |number, byte| number << 8 | u32::from(*byte));
        Code { number, bytes: code.len().max(1), glyph: NO_GLYPH }
    }

    /// Returns the characters of a code, or an empty text.
    pub(super) fn text(&self, code: Code) -> String {
        match &self.characters {
            Characters::Code => {
                let [high, low] =
                    [code.number >> 16, code.number & 0xFFFF].map(|unit| u16::try_from(unit).ok());
                let units = high.filter(|high| *high > 0).into_iter().chain(low);
                char::decode_utf16(units).map_while(Result::ok).collect()
            }
            Characters::Glyph(glyphs) if code.glyph != NO_GLYPH => {
                glyphs.lookup_bf_string(code.glyph).map(text_of).unwrap_or_default()
            }
            Characters::Glyph(_) | Characters::Unknown => String::new(),
        }
    }
}

/// Returns the characters that a CMap has for a code.
pub(super) fn text_of(characters: BfString) -> String {
    match characters {
        BfString::Char('\0') => String::new(),
        BfString::Char(character) => character.to_string(),
        BfString::String(text) => text,
    }
}

/// Returns the CMap in a document with its name.
fn own_cmap(stream: &Stream<'_>) -> (Option<Rc<CMap>>, Vec<u8>) {
    let cmap = stream.decoded().ok().and_then(|bytes| document_cmap(&bytes));
    let name = stream.dict().get::<Name<'_>>("CMapName").map(|name| name.to_vec());
    (cmap.map(Rc::new), name.unwrap_or_default())
}

/// Returns the collection of glyphs of a font.
fn family_of(font: &Dict<'_>) -> Option<CidFamily> {
    let system = font.get::<Dict<'_>>("CIDSystemInfo")?;
    let [registry, ordering] = ["Registry", "Ordering"].map(|key| system.get::<PdfString<'_>>(key));
    Some(CidFamily::from_registry_ordering(registry?.as_bytes(), ordering?.as_bytes()))
}

/// Returns the name of a CMap for an error: no document decides what a terminal shows.
fn shown_name(name: &[u8]) -> String {
    let is_safe = |byte: &&u8| byte.is_ascii_alphanumeric() || **byte == b'-';
    let name: String =
        name.iter().filter(is_safe).take(MAX_NAME_BYTES).map(|byte| char::from(*byte)).collect();
    if name.is_empty() { "of the document".to_owned() } else { name }
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}
