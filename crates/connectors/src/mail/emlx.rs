//! The reader of messages of Apple Mail (`.emlx`): the number of its bytes in a line, a message, and a property list
//! of Mail.

use super::super::attached::AttachmentReader;
use super::super::item::{FileRecord, Item};
use super::super::skips::Problem;
use super::eml::message_record;

/// Maximum length of the line with the number of bytes.
const MAX_COUNT_BYTES: usize = 24;

/// Reads a message. Its folder is the mailbox in its path (`INBOX.mbox/.../Messages/1.emlx`).
pub(crate) fn read_emlx(
    item: &mut Item<'_>,
    attachments: &dyn AttachmentReader,
) -> Result<FileRecord, Problem> {
    let bytes = item.read_all()?;
    let message = message_of(&bytes).ok_or("it does not begin with the number of bytes of its message")?;
    let mut mailboxes = item.path.rsplit('/').filter_map(|segment| segment.strip_suffix(".mbox"));
    let folder = mailboxes.next().map(str::to_owned);
    message_record(message, folder, item, attachments)
}

/// Returns true if a file begins as one of Apple Mail does: with a number alone in a line.
pub(crate) fn begins_with_count(head: &[u8]) -> bool {
    split_count(head).is_some()
}

/// Returns the message of a file. Where its number of bytes is wrong, the property list or the file ends it.
fn message_of(bytes: &[u8]) -> Option<&[u8]> {
    let (count, rest) = split_count(bytes)?;
    let is_end = |after: &[u8]| after.is_empty() || after.starts_with(b"<?xml");
    if let Some((message, after)) = rest.split_at_checked(count)
        && is_end(after.trim_ascii_start())
    {
        return Some(message);
    }
    const LIST: &[u8] = b"\n<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!DOCTYPE plist";
    let end = rest.windows(LIST.len()).rposition(|window| window == LIST);
    Some(end.and_then(|end| rest.get(..end + 1)).unwrap_or(rest))
}

/// Splits the number in the first line from what follows.
fn split_count(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let end = bytes.iter().take(MAX_COUNT_BYTES).position(|byte| *byte == b'\n')?;
    let (line, rest) = bytes.split_at_checked(end + 1)?;
    let count = std::str::from_utf8(line).ok()?.trim();
    let is_number = !count.is_empty() && count.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then_some(())?;
    Some((count.parse().unwrap_or(usize::MAX), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_ends_where_the_property_list_begins() {
        let message = "Subject: x\n\nbody\n";
        let list = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!DOCTYPE plist PUBLIC><plist/>\n";
        for count in [message.len().to_string() + "     ", "5".to_owned(), "99999999999999999999".to_owned()]
        {
            let file = format!("{count}\n{message}{list}");
            assert_eq!(message_of(file.as_bytes()), Some(message.as_bytes()), "{count}");
        }
        assert_eq!(message_of(b"99\nSubject: x\n\nno list"), Some(&b"Subject: x\n\nno list"[..]));
        assert!(message_of(b"Subject: x\n").is_none() && message_of(b"\n").is_none());
    }
}
