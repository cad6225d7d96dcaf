//! The grammar of handles, with their one parser and one printer.
//!
//! ```text
//! legacy  = stream ":" record                                   no "/" anywhere
//! scoped  = connection "/" stream ":" record                    exactly one "/"
//! exact   = key "/" key "/" key [ "/" part ]                    two or three "/"
//! key     = 1*( ALPHA / DIGIT / "-" / "." / "_" / "~" / "%" 2UPHEX )
//! part    = "p" number                                          from 0, no leading zeros
//! ```
//!
//! The number of `/` alone distinguishes the forms, because the plain forms (legacy and scoped) allow no `/` inside a
//! segment. In both plain forms the stream ends at the first `:`, so a record may contain more of them. The exact
//! form carries every other record: paths, labels, compound keys, and text that a model would not copy faithfully.
//!
//! Properties, tested by proptest and the fuzz target: `parse(mint(t)) == t` for every address `t`
//! that has a handle, and `mint(parse(h)) == h` for every exact `h`.
//!
//! A `.` or `..` between the separators of a record's key is written `%2E` or `%2E%2E`, so that software that treats
//! the text as a path does not resolve it.

use std::fmt;
use std::str::FromStr;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use super::address::RecordAddress;
use super::fault::{HandleFault, InvalidHandle, Segment};
use super::name::{
    ConnectionId, InvalidName, MAX_HANDLE_BYTES, RecordId, SEPARATORS, StreamName, dot_segment, is_safe_name,
};

/// All characters but the unreserved ones of RFC 3986.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// All characters but the unreserved ones, and the dot: for segments that consist of dots.
const ENCODED_DOTS: &AsciiSet = &ENCODED.add(b'.');

/// Maximum number of bytes of an encoded byte.
const MAX_ENCODED_BYTES: usize = 3;

/// Maximum number of bytes of a handle besides its names: two separators and `/p4294967295`.
const MAX_PART_BYTES: usize = 14;

/// A string that names one record, or one part of a record's text.
///
/// A `Handle` exists only if its text parses, so whatever is displayed can be fetched.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Handle {
    text: String,
    address: RecordAddress,
    part: Option<u32>,
}

impl Handle {
    /// Returns the handle to print for a record, or `None` if the record has none.
    ///
    /// Uses the plain form if it parses back to the same address and a model can copy it: printable ASCII without
    /// space, quotes, backtick, `<`, `>` and `\`. A connection id that contains `:` always gets the exact form,
    /// because `a:b/c:d` looks like a stream `a` to a parser that splits at the first `:`. There is no handle if
    /// neither form fits or if it would be longer than [`MAX_HANDLE_BYTES`].
    #[must_use]
    pub fn mint(address: &RecordAddress) -> Option<Self> {
        let text = if is_plain(address) { plain_text(address) } else { exact_text(address)? };
        Self::sized(text, address, None)
    }

    /// Returns the handle of part `number` of this record's text, always in the exact form.
    ///
    /// Returns `None` if the address has no connection or the handle would be too long.
    #[must_use]
    pub fn with_part(&self, number: u32) -> Option<Self> {
        let text = format!("{}/p{number}", exact_text(&self.address)?);
        Self::sized(text, &self.address, Some(number))
    }

    /// Returns the address of the record.
    #[must_use]
    pub fn address(&self) -> &RecordAddress {
        &self.address
    }

    /// Returns the number of the part of the record's text, counted from 0.
    #[must_use]
    pub fn part(&self) -> Option<u32> {
        self.part
    }

    /// Returns the handle as it was parsed or minted.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns true if the names are so short that the handles of the record and of each of its parts can be minted.
    pub fn is_short(connection: &ConnectionId, stream: &StreamName, record: &RecordId) -> bool {
        let names = connection.as_str().len() + stream.as_str().len() + record.as_str().len();
        names * MAX_ENCODED_BYTES + MAX_PART_BYTES <= MAX_HANDLE_BYTES
    }

    fn sized(text: String, address: &RecordAddress, part: Option<u32>) -> Option<Self> {
        (text.len() <= MAX_HANDLE_BYTES).then(|| Self { text, address: address.clone(), part })
    }
}

impl fmt::Display for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for Handle {
    type Err = InvalidHandle;

    fn from_str(text: &str) -> Result<Self, InvalidHandle> {
        if text.is_empty() {
            return Err(HandleFault::Empty.into());
        }
        if text.len() > MAX_HANDLE_BYTES {
            return Err(HandleFault::TooLong { bytes: text.len() }.into());
        }
        let segments: Vec<&str> = text.split('/').collect();
        match segments.as_slice() {
            [_] => parse_plain(text, None, text),
            [connection, rest] => parse_plain(text, Some(connection), rest),
            [connection, stream, record] => parse_exact(text, [connection, stream, record], None),
            [connection, stream, record, part] => parse_exact(text, [connection, stream, record], Some(part)),
            _ => {
                Err(InvalidHandle { fault: HandleFault::TooManySlashes, canonical: unescaped_reading(text) })
            }
        }
    }
}

// --- writing -----------------------------------------------------------------------------------

fn plain_text(address: &RecordAddress) -> String {
    let RecordAddress { connection, stream, record } = address;
    match connection {
        Some(connection) => format!("{connection}/{stream}:{record}"),
        None => format!("{stream}:{record}"),
    }
}

fn exact_text(address: &RecordAddress) -> Option<String> {
    let encode = |name| utf8_percent_encode(name, ENCODED);
    let connection = encode(address.connection.as_ref()?.as_str());
    let stream = encode(address.stream.as_str());
    Some(format!("{connection}/{stream}/{}", encode_key(address.record.as_str())))
}

/// Percent-encodes a record's key. Dots are encoded where they are a whole path segment.
fn encode_key(key: &str) -> String {
    let mut text = String::with_capacity(key.len());
    for piece in key.split_inclusive(SEPARATORS) {
        let is_dots = dot_segment(piece.strip_suffix(SEPARATORS).unwrap_or(piece)).is_some();
        text.extend(utf8_percent_encode(piece, if is_dots { ENCODED_DOTS } else { ENCODED }));
    }
    text
}

fn is_plain(address: &RecordAddress) -> bool {
    let RecordAddress { connection, stream, record } = address;
    let separable = |name: &str| is_safe_name(name) && survives_copying(name) && !name.contains(':');
    connection.as_ref().is_none_or(|connection| separable(connection.as_str()))
        && separable(stream.as_str())
        && is_safe_name(record.as_str())
        && survives_copying(record.as_str())
}

/// Returns true if a model repeats the text byte for byte: no white space, no look-alikes, and nothing that ends a
/// quotation or a link in Markdown, JSON or HTML.
fn survives_copying(text: &str) -> bool {
    text.bytes()
        .all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\'' | b'`' | b'<' | b'>' | b'\\'))
}

// --- reading -----------------------------------------------------------------------------------

/// Parses `rest` as `stream ":" record`: the plain forms, with or without a connection.
fn parse_plain(text: &str, connection: Option<&str>, rest: &str) -> Result<Handle, InvalidHandle> {
    let Some((stream, record)) = rest.split_once(':') else {
        // In `stream:a/b`, the record has a `/` that is not escaped.
        if let Some((stream, record)) = text.split_once(':') {
            guard_plain(Segment::Stream, stream)?;
            guard_plain(Segment::Record, record)?;
        }
        return Err(HandleFault::NoSeparator.into());
    };
    if let Some(connection) = connection {
        guard_plain(Segment::Connection, connection)?;
    }
    guard_plain(Segment::Stream, stream)?;
    guard_plain(Segment::Record, record)?;
    let address = RecordAddress {
        connection: connection.map(|name| parse_name(Segment::Connection, name)).transpose()?,
        stream: parse_name(Segment::Stream, stream)?,
        record: parse_name(Segment::Record, record)?,
    };
    Ok(Handle { text: text.to_owned(), address, part: None })
}

fn guard_plain(segment: Segment, name: &str) -> Result<(), HandleFault> {
    if name.is_empty() {
        return Err(HandleFault::NotAName { segment, problem: InvalidName::Empty });
    }
    if !is_safe_name(name) {
        return Err(HandleFault::UnsafeName { segment, name: name.to_owned() });
    }
    Ok(())
}

fn parse_exact(text: &str, keys: [&str; 3], part: Option<&str>) -> Result<Handle, InvalidHandle> {
    let [connection, stream, record] = keys;
    let is_unescaped = unescaped_segments(text).is_some();
    if is_unescaped && let Some(canonical) = unescaped_reading(text) {
        return Err(InvalidHandle { fault: HandleFault::NotCanonical, canonical: Some(canonical) });
    }
    let address = RecordAddress {
        connection: Some(decode::<ConnectionId>(Segment::Connection, connection)?),
        stream: decode::<StreamName>(Segment::Stream, stream)?,
        record: decode::<RecordId>(Segment::Record, record)?,
    };
    let part = part.map(parse_part).transpose()?;
    let minted = Handle::mint(&address).and_then(|whole| match part {
        Some(number) => whole.with_part(number),
        None => Some(whole),
    });
    match minted {
        Some(handle) if handle.text == text => Ok(handle),
        other => {
            // The exact reading of an unescaped text names another record.
            let canonical = other.filter(|_| !is_unescaped).map(|handle| handle.text);
            Err(InvalidHandle { fault: HandleFault::NotCanonical, canonical })
        }
    }
}

fn parse_part(part: &str) -> Result<u32, HandleFault> {
    let number = part.strip_prefix('p').filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
    number
        .filter(|digits| *digits == "0" || !digits.starts_with('0'))
        .and_then(|digits| digits.parse().ok())
        .ok_or_else(|| HandleFault::BadPart { part: part.to_owned() })
}

fn decode<Name: FromStr<Err = InvalidName>>(segment: Segment, key: &str) -> Result<Name, HandleFault> {
    let mut escapes = key.split('%').skip(1);
    let complete = |escape: &str| {
        escape.get(..2).is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
    };
    if !escapes.all(complete) {
        return Err(HandleFault::BadEscape { segment });
    }
    let name = percent_decode_str(key).decode_utf8().map_err(|_not_utf8| HandleFault::NotUtf8 { segment })?;
    parse_name(segment, &name)
}

fn parse_name<Name: FromStr<Err = InvalidName>>(segment: Segment, name: &str) -> Result<Name, HandleFault> {
    name.parse().map_err(|problem| HandleFault::NotAName { segment, problem })
}

/// Returns the handle of `connection/stream:record` with the record left unescaped, as in `cin_1/files:notes/a.md`,
/// which other adapters print. Returns `None` if the stream contains a `/`: in `c/s/a:b` the `:` belongs to the
/// record.
fn unescaped_reading(text: &str) -> Option<String> {
    let (connection, stream, record) = unescaped_segments(text)?;
    let address = RecordAddress {
        connection: Some(connection.parse().ok()?),
        stream: stream.parse().ok()?,
        record: record.parse().ok()?,
    };
    Handle::mint(&address).map(|handle| handle.text)
}

/// Splits `connection/stream:record` if the first `:` is in the second segment.
fn unescaped_segments(text: &str) -> Option<(&str, &str, &str)> {
    let (connection, rest) = text.split_once('/')?;
    let (stream, record) = rest.split_once(':')?;
    (!stream.contains('/')).then_some((connection, stream, record))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::test_runner::Config;

    use super::*;

    fn address(connection: Option<&str>, stream: &str, record: &str) -> RecordAddress {
        RecordAddress {
            connection: connection.map(|name| name.parse().unwrap()),
            stream: stream.parse().unwrap(),
            record: record.parse().unwrap(),
        }
    }

    #[test]
    fn a_part_always_has_the_exact_form() {
        let whole = Handle::mint(&address(Some("cin_4f2a"), "orders", "o1")).unwrap();
        assert_eq!(whole.as_str(), "cin_4f2a/orders:o1");
        let part = whole.with_part(1).unwrap();
        assert_eq!(part.as_str(), "cin_4f2a/orders/o1/p1");
        assert_eq!(part.as_str().parse::<Handle>().unwrap(), part);
        assert_eq!(part.part(), Some(1));
        assert!(Handle::mint(&address(None, "orders", "o1")).unwrap().with_part(1).is_none());
    }

    #[test]
    fn a_handle_that_would_be_too_long_is_not_minted() {
        let fits = "k".repeat(MAX_HANDLE_BYTES - "c/s:".len());
        assert_eq!(Handle::mint(&address(Some("c"), "s", &fits)).unwrap().as_str().len(), MAX_HANDLE_BYTES);
        assert_eq!(Handle::mint(&address(Some("cc"), "s", &fits)), None);
        assert_eq!(Handle::mint(&address(Some("c"), "s", &"😀".repeat(400))), None);
    }

    /// Names that cover every branch of the grammar: separators, escapes, dots, quotes, any text.
    fn any_name() -> impl Strategy<Value = String> {
        prop_oneof![
            "[a-z_0-9]{1,8}",
            r#"[a-c:/\\.%\["' `<>~p0-9]{1,12}"#,
            r#"\["[a-z]{1,4}","[0-9-]{1,6}"\]"#,
            "\\PC{1,12}",
            any::<String>(),
        ]
    }

    fn any_address() -> impl Strategy<Value = RecordAddress> {
        let names = (proptest::option::of(any_name()), any_name(), any_name());
        names.prop_filter_map("every part is a name", |(connection, stream, record)| {
            Some(RecordAddress {
                connection: connection.map(|name| name.parse()).transpose().ok()?,
                stream: stream.parse().ok()?,
                record: record.parse().ok()?,
            })
        })
    }

    /// Strings close to the grammar, so that many of them parse.
    fn any_handle_text() -> impl Strategy<Value = String> {
        let key = || "([a-zA-Z0-9._~-]|%[0-9A-F][0-9A-F]|%[a-f]7|:){1,6}";
        prop_oneof![
            (key(), key(), key()).prop_map(|(a, b, c)| format!("{a}/{b}/{c}")),
            (key(), key(), key(), "[0-9]{1,3}").prop_map(|(a, b, c, n)| format!("{a}/{b}/{c}/p{n}")),
            (key(), key()).prop_map(|(a, b)| format!("{a}/{b}")),
            key(),
            any::<String>(),
        ]
    }

    proptest! {
        #![proptest_config(Config { cases: 2_000, ..Config::default() })]

        #[test]
        fn law_parse_after_mint_gives_the_address(address in any_address()) {
            if let Some(handle) = Handle::mint(&address) {
                let read: Handle = handle.to_string().parse().unwrap();
                prop_assert_eq!(read.address(), &address);
                prop_assert_eq!(read.part(), None);
            } else {
                // Only an address without a connection, or with too long a text, has no handle.
                let too_long = exact_text(&address).is_some_and(|text| text.len() > MAX_HANDLE_BYTES);
                prop_assert!(address.connection.is_none() || too_long);
            }
        }

        #[test]
        fn law_parse_after_mint_gives_the_part(address in any_address(), number in any::<u32>()) {
            if let Some(handle) = Handle::mint(&address).and_then(|whole| whole.with_part(number)) {
                let read: Handle = handle.to_string().parse().unwrap();
                prop_assert_eq!(read.address(), &address);
                prop_assert_eq!(read.part(), Some(number));
            }
        }

        #[test]
        fn law_short_names_have_handles_of_parts(address in any_address()) {
            let Some(connection) = &address.connection else { return Ok(()) };
            if Handle::is_short(connection, &address.stream, &address.record) {
                let longest = Handle::mint(&address).and_then(|whole| whole.with_part(u32::MAX));
                prop_assert!(longest.is_some());
            }
        }

        #[test]
        fn law_mint_after_parse_gives_the_exact_handle(text in any_handle_text()) {
            if let Ok(handle) = text.parse::<Handle>() {
                let slashes = text.matches('/').count();
                let minted = || Handle::mint(handle.address()).unwrap();
                let rewritten = match (slashes, handle.part()) {
                    (2, None) => minted().to_string(),
                    (3, Some(number)) => minted().with_part(number).unwrap().to_string(),
                    (0 | 1, None) => plain_text(handle.address()),
                    other => panic!("{other:?} from {text:?}"),
                };
                prop_assert_eq!(rewritten, text);
            }
        }

        #[test]
        fn law_a_minted_handle_survives_copying(address in any_address()) {
            if let Some(handle) = Handle::mint(&address) {
                prop_assert!(survives_copying(handle.as_str()), "{handle}");
            }
        }

        #[test]
        fn law_a_canonical_hint_parses(text in any_handle_text()) {
            if let Err(InvalidHandle { canonical: Some(hint), .. }) = text.parse::<Handle>() {
                prop_assert!(hint.parse::<Handle>().is_ok(), "{hint} for {text}");
            }
        }
    }
}
