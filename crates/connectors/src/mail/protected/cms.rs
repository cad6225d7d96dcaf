//! The content of an S/MIME message: CMS (RFC 5652) in BER, which `application/pkcs7-mime` contains.
//!
//! Only the kind and the content of signed data are read. Signatures are not checked. Each byte is read at most once at
//! each of the five levels above the content, without recursion.

/// Object identifiers of CMS as they are encoded.
const SIGNED: &[u8] = b"\x2A\x86\x48\x86\xF7\x0D\x01\x07\x02";
const ENVELOPED: &[u8] = b"\x2A\x86\x48\x86\xF7\x0D\x01\x07\x03";
const AUTHENTICATED_ENVELOPED: &[u8] = b"\x2A\x86\x48\x86\xF7\x0D\x01\x09\x10\x01\x17";
const COMPRESSED: &[u8] = b"\x2A\x86\x48\x86\xF7\x0D\x01\x09\x10\x01\x09";

const OCTETS: u8 = 0x04;
const OBJECT_IDENTIFIER: u8 = 0x06;
const CONSTRUCTED_OCTETS: u8 = 0x24;
const SEQUENCE: u8 = 0x30;
const CONTENT: u8 = 0xA0;

/// The first byte of a length that is given by an end mark after the content.
const INDEFINITE: u8 = 0x80;

/// The content of an S/MIME message.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Cms {
    /// A message that is signed, or no content but certificates.
    Signed(Vec<u8>),
    /// A message that only its recipients can read.
    Encrypted,
    /// A compressed message.
    Compressed,
    /// Something else, or damaged.
    Unknown,
}

impl Cms {
    /// Reads the content of a part.
    pub(super) fn read(bytes: &[u8]) -> Self {
        let content = inside(bytes, SEQUENCE);
        let Some((identifier, rest)) = content.and_then(|content| element(content, OBJECT_IDENTIFIER)) else {
            return Self::Unknown;
        };
        match identifier {
            SIGNED => signed_content(rest).map_or(Self::Unknown, Self::Signed),
            ENVELOPED | AUTHENTICATED_ENVELOPED => Self::Encrypted,
            COMPRESSED => Self::Compressed,
            _ => Self::Unknown,
        }
    }
}

/// Returns the content of signed data, which is empty if only certificates are in it.
fn signed_content(bytes: &[u8]) -> Option<Vec<u8>> {
    let data = inside(inside(bytes, CONTENT)?, SEQUENCE)?;
    // The version and the algorithms are before the content.
    let content = inside(skip(skip(data)?)?, SEQUENCE)?;
    let (_type, rest) = element(content, OBJECT_IDENTIFIER)?;
    Some(inside(rest, CONTENT).map(octets).unwrap_or_default())
}

/// Joins the pieces of a text of octets.
fn octets(mut rest: &[u8]) -> Vec<u8> {
    let mut joined = Vec::new();
    loop {
        if let Some((piece, after)) = element(rest, OCTETS) {
            joined.extend_from_slice(piece);
            rest = after;
        } else if let Some(pieces) = inside(rest, CONSTRUCTED_OCTETS) {
            rest = pieces;
        } else {
            return joined;
        }
    }
}

/// The tag and the length of an element, and the bytes after them.
struct Header<'a> {
    tag: u8,
    /// `None` if an end mark gives the length.
    length: Option<usize>,
    rest: &'a [u8],
}

impl<'a> Header<'a> {
    fn parse(bytes: &'a [u8]) -> Option<Self> {
        let (tag, rest) = bytes.split_first()?;
        let (first, rest) = rest.split_first()?;
        if *first == INDEFINITE {
            return Some(Self { tag: *tag, length: None, rest });
        }
        if *first < INDEFINITE {
            return Some(Self { tag: *tag, length: Some(usize::from(*first)), rest });
        }
        let (digits, rest) =
            rest.split_at_checked(usize::from(*first & 0x7F)).filter(|(digits, _)| digits.len() <= 4)?;
        let length = digits.iter().fold(0_usize, |length, digit| length << 8 | usize::from(*digit));
        Some(Self { tag: *tag, length: Some(length), rest })
    }
}

/// Returns the content of the first element and the bytes after it, if it has this tag and a length.
fn element(bytes: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let header = Header::parse(bytes).filter(|header| header.tag == tag)?;
    header.rest.split_at_checked(header.length?)
}

/// Returns the bytes in the first element, if it has this tag. Bytes after it may follow, because an end mark may be
/// missing in a damaged message.
fn inside(bytes: &[u8], tag: u8) -> Option<&[u8]> {
    Header::parse(bytes).filter(|header| header.tag == tag).map(|header| header.rest)
}

/// Returns the bytes after the first element.
fn skip(bytes: &[u8]) -> Option<&[u8]> {
    let (mut rest, mut open) = (bytes, 0_usize);
    loop {
        let header = Header::parse(rest)?;
        match header.length {
            Some(0) if header.tag == 0 => open = open.checked_sub(1)?,
            Some(length) => rest = header.rest.get(length..)?,
            None => open += 1,
        }
        if header.length.is_none_or(|length| length == 0) {
            rest = header.rest;
        }
        if open == 0 {
            return Some(rest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Encodes an element with a length.
    fn der(tag: u8, content: &[u8]) -> Vec<u8> {
        let length = u16::try_from(content.len()).unwrap().to_be_bytes();
        [&[tag, 0x82][..], &length, content].concat()
    }

    /// Encodes an element that ends with an end mark.
    fn ber(tag: u8, content: &[u8]) -> Vec<u8> {
        [&[tag, INDEFINITE][..], content, b"\0\0"].concat()
    }

    /// Encodes signed data with these octets.
    fn signed(octets: &[u8], encode: fn(u8, &[u8]) -> Vec<u8>) -> Vec<u8> {
        let data_type = der(OBJECT_IDENTIFIER, b"\x2A\x86\x48\x86\xF7\x0D\x01\x07\x01");
        let content = encode(SEQUENCE, &[data_type, encode(CONTENT, octets)].concat());
        let algorithms = encode(0x31, &encode(SEQUENCE, &der(OBJECT_IDENTIFIER, b"\x01")));
        let data =
            encode(SEQUENCE, &[b"\x02\x01\x01".to_vec(), algorithms, content, der(CONTENT, b"xx")].concat());
        encode(SEQUENCE, &[der(OBJECT_IDENTIFIER, SIGNED), encode(CONTENT, &data)].concat())
    }

    #[test]
    fn signed_content_is_read_and_other_kinds_are_known() {
        let text = b"Content-Type: text/plain\r\n\r\nhello";
        assert_eq!(Cms::read(&signed(&der(OCTETS, text), der)), Cms::Signed(text.to_vec()));
        let pieces = ber(CONSTRUCTED_OCTETS, &[der(OCTETS, &text[..10]), der(OCTETS, &text[10..])].concat());
        assert_eq!(Cms::read(&signed(&pieces, ber)), Cms::Signed(text.to_vec()));
        assert_eq!(Cms::read(&signed(b"", der)), Cms::Signed(Vec::new()));
        for (kind, expect) in [
            (ENVELOPED, Cms::Encrypted),
            (AUTHENTICATED_ENVELOPED, Cms::Encrypted),
            (COMPRESSED, Cms::Compressed),
            (b"\x01", Cms::Unknown),
        ] {
            let bytes = ber(SEQUENCE, &[der(OBJECT_IDENTIFIER, kind), der(CONTENT, b"x")].concat());
            assert_eq!(Cms::read(&bytes), expect);
        }
        assert_eq!(Cms::read(b"no CMS"), Cms::Unknown);
    }

    #[test]
    fn damaged_content_takes_linear_time() {
        let text = signed(&ber(CONSTRUCTED_OCTETS, &der(OCTETS, b"text")), ber);
        for end in 0..text.len() {
            let _ = Cms::read(&text[..end]);
        }
        for at in 0..text.len() {
            for byte in [0, 1, 0x24, 0x30, 0x7F, 0x80, 0x84, 0xA0, 0xFF] {
                let mut damaged = text.clone();
                damaged[at] = byte;
                let _ = Cms::read(&damaged);
            }
        }
        crate::measured::assert_linear(50_000, &|count| {
            let open = [0x30, 0x80, 0x02, 0x01, 0x01].into_iter().chain([0x31, 0x80].repeat(count));
            let nested =
                [&der(OBJECT_IDENTIFIER, SIGNED)[..], &[0xA0, 0x80], &open.collect::<Vec<u8>>()].concat();
            assert_eq!(Cms::read(&ber(SEQUENCE, &nested)), Cms::Unknown);
            assert_eq!(octets(&[CONSTRUCTED_OCTETS, INDEFINITE].repeat(count)), Vec::<u8>::new());
        });
    }
}
