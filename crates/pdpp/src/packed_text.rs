//! Compact encoding of a server's token or cursor.
//!
//! Record servers write them as base64 of JSON. The decoded bytes are stored if encoding them gives exactly the same
//! text, and frequent fragments of the reference server's JSON are one byte each. Any other text is stored as it is.

use base64::Engine;
use base64::engine::GeneralPurpose;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};

/// Base64 alphabets. The first byte of a packed text is the number of the alphabet from 1, or 0 for other text.
const ENGINES: [&GeneralPurpose; 4] = [&URL_SAFE_NO_PAD, &URL_SAFE, &STANDARD_NO_PAD, &STANDARD];

/// Flag in the first byte for replaced fragments.
const HAS_FRAGMENTS: u8 = 0x10;

/// Byte of the first fragment. Only ASCII text has fragments, so no other byte is greater.
const FIRST: u8 = 0x80;

/// Fragments; a longer one precedes those that it begins with. Tokens outlive the process, so fragments are only ever
/// appended.
const FRAGMENTS: [&str; 20] = [
    r#"{"kind":"changes_since","version":"#,
    r#"{"cursor_value":""#,
    r#"{"cursor_value":"#,
    r#"","kind":"page","order":"DESC","primary_key":[""#,
    r#"","kind":"page","order":"ASC","primary_key":[""#,
    r#""],"session":"records"}"#,
    r#""],"session":"changes_since","#,
    r#""session":"changes_since""#,
    r#""kind":"changes_since""#,
    r#""kind":"page""#,
    r#""order":"ASC""#,
    r#""order":"DESC""#,
    r#""primary_key":["#,
    r#""session":"records""#,
    r#""session":"#,
    r#""version":"#,
    r#"":""#,
    r#"",""#,
    ":00.000Z",
    "{\"",
];

/// Packs a text.
pub(crate) fn pack(text: &str) -> Vec<u8> {
    let decoded = ENGINES.iter().zip(1..).find_map(|(engine, number)| {
        let bytes = engine.decode(text).ok()?;
        (engine.encode(&bytes) == text).then_some((number, bytes))
    });
    let (number, bytes) = decoded.unwrap_or_else(|| (0, text.as_bytes().to_vec()));
    match replaced(&bytes) {
        Some(replaced) => [&[number | HAS_FRAGMENTS][..], &replaced].concat(),
        None => [&[number][..], &bytes].concat(),
    }
}

/// Unpacks a text. Returns `None` for bytes that [`pack`] did not return.
pub(crate) fn unpack(packed: &[u8]) -> Option<String> {
    let (first, packed) = packed.split_first()?;
    let bytes = match first & HAS_FRAGMENTS {
        0 => packed.to_vec(),
        _ => restored(packed)?,
    };
    match first & !HAS_FRAGMENTS {
        0 => String::from_utf8(bytes).ok(),
        number => ENGINES.get(usize::from(number) - 1).map(|engine| engine.encode(bytes)),
    }
}

/// Replaces fragments by their bytes. Returns `None` for bytes that are not ASCII.
fn replaced(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut rest = std::str::from_utf8(bytes).ok().filter(|text| text.is_ascii())?.as_bytes();
    let mut replaced = Vec::with_capacity(rest.len());
    while let Some((byte, after)) = rest.split_first() {
        let fragment = FRAGMENTS
            .iter()
            .zip(FIRST..)
            .find_map(|(text, at)| Some((at, rest.strip_prefix(text.as_bytes())?)));
        let (next, left) = fragment.unwrap_or((*byte, after));
        replaced.push(next);
        rest = left;
    }
    Some(replaced)
}

fn restored(packed: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(packed.len());
    for byte in packed {
        match byte.checked_sub(FIRST) {
            None => bytes.push(*byte),
            Some(at) => bytes.extend_from_slice(FRAGMENTS.get(usize::from(at))?.as_bytes()),
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_text_is_unpacked(text in "\\PC{0,60}|[A-Za-z0-9_=+/-]{0,60}") {
            prop_assert_eq!(unpack(&pack(&text)), Some(text));
        }

        #[test]
        fn json_in_base64_is_unpacked(text in "\\{\"(cursor_value|kind|version)\":\"?[a-z0-9\"]{0,20}\\}") {
            for engine in ENGINES {
                let text = engine.encode(&text);
                prop_assert_eq!(unpack(&pack(&text)), Some(text));
            }
        }

        #[test]
        fn no_bytes_break_the_reader(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let _ = unpack(&bytes);
        }
    }

    #[test]
    fn tokens_of_the_reference_server_are_short() {
        for (text, bytes) in [
            ("eyJraW5kIjoiY2hhbmdlc19zaW5jZSIsInZlcnNpb24iOjQwfQ==", 5),
            (
                "eyJjdXJzb3JfdmFsdWUiOiIyMDI2LTA0LTI3VDA4OjAwOjAwLjAwMFoiLCJraW5kIjoicGFnZSIsIm9yZGVyIjoiREVTQyIsInByaW1hcnlfa2V5IjpbIm0yNiJdLCJzZXNzaW9uIjoicmVjb3JkcyJ9",
                24,
            ),
            ("version-400", 9),
            ("", 1),
        ] {
            let packed = pack(text);
            assert_eq!((unpack(&packed).as_deref(), packed.len()), (Some(text), bytes));
        }
    }
}
