//! The names of the attachments in a `winmail.dat`: TNEF, in which Outlook puts them for other copies of Outlook.
//!
//! The file is a signature and then attributes: a level, an id, a length, the data and a checksum (MS-OXTNEF). Only the
//! attributes with names are read.

/// Signature of TNEF, in its order of bytes.
const SIGNATURE: &[u8] = b"\x78\x9F\x3E\x22";

/// Bytes of the signature and the key after it.
const HEADER_BYTES: usize = 6;

/// Id of the attribute with the name of an attachment (`attAttachTitle`), in its order of bytes.
const ATTACHMENT_TITLE: &[u8] = b"\x10\x80\x01\x00";

/// Maximum number of names that are read.
const MAX_NAMES: usize = 1_000;

/// Maximum length of a name in bytes.
const MAX_NAME_BYTES: usize = 1_000;

/// Returns true if bytes are a `winmail.dat`.
pub(super) fn is_tnef(bytes: &[u8]) -> bool {
    bytes.starts_with(SIGNATURE)
}

/// Returns the names of the attachments. They are in the code page of the sender: UTF-8 or Windows-1252 is assumed.
pub(super) fn attachment_names(bytes: &[u8]) -> Vec<String> {
    let mut names = Vec::new();
    let mut rest = bytes.get(HEADER_BYTES..).unwrap_or_default();
    while let Some((data, is_title, after)) = next_attribute(rest) {
        let name = data.split(|byte| *byte == 0).next().unwrap_or_default();
        if is_title && !name.is_empty() && name.len() <= MAX_NAME_BYTES {
            names.push(std::str::from_utf8(name).map_or_else(
                |_not_utf8| encoding_rs::WINDOWS_1252.decode_without_bom_handling(name).0.into_owned(),
                str::to_owned,
            ));
        }
        if names.len() == MAX_NAMES {
            break;
        }
        rest = after;
    }
    names
}

/// Returns the data of the first attribute, true if it is the name of an attachment, and the bytes after it.
fn next_attribute(bytes: &[u8]) -> Option<(&[u8], bool, &[u8])> {
    let (_level, rest) = bytes.split_first()?;
    let (id, rest) = rest.split_at_checked(4)?;
    let (length, rest) = rest.split_first_chunk::<4>()?;
    let (data, rest) = rest.split_at_checked(usize::try_from(u32::from_le_bytes(*length)).ok()?)?;
    let (_checksum, rest) = rest.split_at_checked(2)?;
    Some((data, id == ATTACHMENT_TITLE, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attribute(id: &[u8], data: &[u8]) -> Vec<u8> {
        let length = u32::try_from(data.len()).unwrap().to_le_bytes();
        [b"\x02", id, &length, data, b"\0\0"].concat()
    }

    #[test]
    fn names_of_attachments_are_read() {
        let file = [
            SIGNATURE.to_vec(),
            b"\x01\x00".to_vec(),
            attribute(b"\x06\x90\x08\x00", b"\x00\x00\x01\x00"),
            attribute(ATTACHMENT_TITLE, b"Plan.docx\0"),
            attribute(b"\x0F\x80\x06\x00", b"content"),
            attribute(ATTACHMENT_TITLE, b"\xDCbersicht.xlsx\0"),
            attribute(ATTACHMENT_TITLE, "Möwe.pdf".as_bytes()),
        ]
        .concat();
        assert!(is_tnef(&file));
        assert_eq!(attachment_names(&file), ["Plan.docx", "Übersicht.xlsx", "Möwe.pdf"]);
        for end in 0..file.len() {
            assert!(attachment_names(&file[..end]).len() <= 3);
        }
        let many = [&file[..HEADER_BYTES], &attribute(ATTACHMENT_TITLE, b"a").repeat(100_000)].concat();
        assert_eq!(attachment_names(&many).len(), MAX_NAMES);
    }
}
