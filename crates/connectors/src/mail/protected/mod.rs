//! Parts that only another program can read: S/MIME (RFC 8551), OpenPGP (RFC 3156) and Outlook's `winmail.dat`.
//!
//! A record says what such a part is and what to do. The text of a message that is only signed is read.
//!
//! * `cms`: the content of S/MIME
//! * `pgp`: texts with blocks of OpenPGP
//! * `tnef`: the names in a `winmail.dat`

mod cms;
mod pgp;
mod tnef;

use mail_parser::{MessagePart, MimeHeaders, PartType};

use self::cms::Cms;
use self::pgp::ENCRYPTED;
pub(super) use self::pgp::without_armor;
use self::tnef::{attachment_names, is_tnef};

const SMIME: &str = "[Encrypted with S/MIME. To search its text, decrypt it in the mail program that has the key and import it again]";

const COMPRESSED: &str = "[Compressed with S/MIME. To search its text, save it uncompressed in a mail program and import it again]";

const UNREADABLE: &str = "[S/MIME that cannot be read. To search its text, open it in a mail program, save it as text and import that]";

/// A part that only another program can read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Protected {
    /// A part of a message (RFC 2045) that is signed.
    Signed(Vec<u8>),
    /// A description of the part, in the place of the text of the message.
    Body(&'static str),
    /// A description of the part, as the text of an attachment, and the names of the attachments in it.
    Attachment(String, Vec<String>),
}

impl Protected {
    /// Returns the content of a part, or `None` for one that is not protected.
    pub(super) fn read(part: &MessagePart<'_>, name: Option<&str>) -> Option<Self> {
        let content_type = part.content_type();
        let subtype = content_type.and_then(|found| found.subtype()).unwrap_or_default().to_ascii_lowercase();
        match &part.body {
            PartType::Multipart(_) if subtype == "encrypted" => {
                let protocol = content_type.and_then(|found| found.attribute("protocol")).unwrap_or_default();
                let is_smime = protocol.to_ascii_lowercase().contains("pkcs7");
                Some(Self::Body(if is_smime { SMIME } else { ENCRYPTED }))
            }
            PartType::Binary(bytes) | PartType::InlineBinary(bytes) => {
                let name = name.unwrap_or_default().to_ascii_lowercase();
                let is_smime =
                    matches!(subtype.as_str(), "pkcs7-mime" | "x-pkcs7-mime") || name == "smime.p7m";
                if is_smime {
                    return Some(Self::from_cms(Cms::read(bytes)));
                }
                is_tnef(bytes).then(|| Self::from_names(attachment_names(bytes)))
            }
            _ => None,
        }
    }

    fn from_cms(cms: Cms) -> Self {
        match cms {
            Cms::Signed(content) if content.is_empty() => {
                Self::Attachment("[Certificates of S/MIME]".to_owned(), Vec::new())
            }
            Cms::Signed(content) => Self::Signed(content),
            Cms::Encrypted => Self::Body(SMIME),
            Cms::Compressed => Self::Body(COMPRESSED),
            Cms::Unknown => Self::Body(UNREADABLE),
        }
    }

    fn from_names(names: Vec<String>) -> Self {
        let list = if names.is_empty() { "formatted text".to_owned() } else { names.join(", ") };
        let text = format!(
            "[Outlook's own format (TNEF) with: {list}. To search it, extract it with a program such as `tnef` and import the files]"
        );
        Self::Attachment(text, names)
    }
}
