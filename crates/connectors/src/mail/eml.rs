//! The reader of single messages: `.eml` files and the messages of a Maildir.

use serde_json::Value;

use super::super::attached::AttachmentReader;
use super::super::item::{FileRecord, Item};
use super::super::skips::Problem;
use super::{MailRecord, read_message};

/// Stream of messages.
pub(crate) const MESSAGES: &str = "messages";

/// Reads a message. Its key is the message id, as in a mailbox, because programs rename the files of a Maildir.
pub(crate) fn read_mail(
    item: &mut Item<'_>,
    attachments: &dyn AttachmentReader,
) -> Result<FileRecord, Problem> {
    let raw = item.read_all()?;
    message_record(&raw, maildir_folder(&item.path), item, attachments)
}

/// Returns the record of a message in a file, with the folder of the mail program that it is in.
pub(super) fn message_record(
    raw: &[u8],
    folder: Option<String>,
    item: &Item<'_>,
    attachments: &dyn AttachmentReader,
) -> Result<FileRecord, Problem> {
    let MailRecord { key, mut data, identity, emitted_at } = read_message(raw, attachments)?;
    data.shift_insert(0, "path".to_owned(), Value::from(path_without_flags(&item.path)));
    if let Some(folder) = folder {
        data.shift_insert(1, "folder".to_owned(), Value::from(folder));
    }
    let emitted_at = emitted_at.or_else(|| item.changed_at.clone());
    Ok(FileRecord { stream: MESSAGES.to_owned(), key, data, emitted_at, identity: Some(identity) })
}

/// Returns a path without the flags that programs append to the name of a message (`:2,S`).
fn path_without_flags(path: &str) -> &str {
    path.rsplit_once(":2,").map_or(path, |(path, _)| path)
}

/// Returns the name of the Maildir folder of a message: `INBOX`, or `Sent/2026` for `.Sent.2026/cur/MESSAGE`.
fn maildir_folder(path: &str) -> Option<String> {
    let mut segments = path.rsplit('/').skip(1);
    segments.next().filter(|name| matches!(*name, "cur" | "new"))?;
    let dotted = segments.next().and_then(|name| name.strip_prefix('.'));
    Some(dotted.map_or_else(|| "INBOX".to_owned(), |name| name.replace('.', "/")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_of_a_maildir_has_its_folder() {
        for (path, expect) in [
            ("cur/1.host:2,S", Some("INBOX")),
            ("mail/new/1.host", Some("INBOX")),
            (".Sent.2026/cur/1.host", Some("Sent/2026")),
            ("a/b.eml", None),
        ] {
            assert_eq!(maildir_folder(path).as_deref(), expect, "{path}");
        }
        assert_eq!(path_without_flags("cur/1.host:2,RS"), "cur/1.host");
    }
}
