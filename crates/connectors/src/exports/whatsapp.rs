//! The reader of chats that WhatsApp exported as text (`_chat.txt`, `WhatsApp Chat with Ann.txt`): a record for each
//! message.
//!
//! The date has the form of the telephone's country, which the file does not name: the numbers of all messages tell
//! their order.

use fetchwell_core::record::RecordData;
use jiff::civil::DateTime;

use super::super::intake::Intake;
use super::super::item::{FileRecord, Item, ReadError};
use super::super::values::DateOrder;
use super::chat_time::Stamp;
use super::objects::title_from;

/// Stream of messages.
const STREAM: &str = "messages";

/// Number of lines at the start of a file in which the signs of a chat are looked for.
const SIGN_LINES: usize = 20;

/// Maximum length of the name of a sender in bytes.
const MAX_NAME_BYTES: usize = 120;

/// Notes behind the name of a file, in several languages and in lower case.
const FILE_NOTES: [&str; 14] = [
    "file attached",
    "datei angehängt",
    "archivo adjunto",
    "fichier joint",
    "file allegato",
    "arquivo anexado",
    "ficheiro anexado",
    "bestand bijgevoegd",
    "plik załączony",
    "bifogad fil",
    "fil vedhæftet",
    "fil vedlagt",
    "файл добавлен",
    "dosya ekli",
];

/// Words after the name of a chat in the name of its file (`WhatsApp Chat with Ann`), in several languages.
const CHAT_WORDS: [&str; 9] = [" with ", " mit ", " con ", " avec ", " com ", " met ", " med ", " - ", " z "];

/// Reads the messages of a chat.
pub(crate) fn read_whatsapp(mut item: Item<'_>, intake: &mut Intake<'_>) -> Result<(), ReadError> {
    let text = item.read_text()?;
    let messages = read_messages(&text);
    let order = order_of(&messages).ok_or("the dates of its messages are in no known form")?;
    let (path, chat) = (item.path.clone(), chat_name(&item.path).to_owned());
    for (number, message) in (1_u64..).zip(messages) {
        let place = format!("{path}: message {number}");
        let Some(time) = message.stamp.to_time(order) else {
            intake.reject(&place, "its date is none");
            continue;
        };
        if !message.is_notice(&chat) {
            message.into_record(time, &chat, &path).take_into(&place, intake)?;
        }
    }
    Ok(())
}

/// Returns true if a text begins as a chat does: two messages, or one with a name that says so.
pub(crate) fn is_whatsapp(start: &str, name: &str) -> bool {
    let first = start.lines().map(str::trim).find(|line| !line.is_empty());
    if first.and_then(split_message).is_none() {
        return false;
    }
    let messages = start.lines().take(SIGN_LINES).filter_map(split_message).count();
    let lower = name.to_ascii_lowercase();
    messages > 1 || lower.contains("whatsapp") || lower == "_chat.txt"
}

/// A message as the file has it.
#[derive(Debug)]
struct ChatMessage<'t> {
    stamp: Stamp,
    sender: &'t str,
    text: String,
}

/// Splits a line that begins a message into its time, its sender and its text. A notice has no sender.
fn split_message(line: &str) -> Option<(Stamp, &str, &str)> {
    let line = line.trim_start_matches(is_mark);
    let (stamp, rest) = match line.strip_prefix('[') {
        Some(bracketed) => bracketed.split_once(']')?,
        None => line.split_once(" - ")?,
    };
    let stamp = Stamp::parse(stamp)?;
    let rest = rest.trim_start().trim_start_matches(is_mark);
    let (sender, text) =
        rest.split_once(": ").or_else(|| Some((rest.strip_suffix(':')?, ""))).unwrap_or(("", rest));
    let is_sender = sender.len() <= MAX_NAME_BYTES && !sender.is_empty();
    let (sender, text) = if is_sender { (sender, text) } else { ("", rest) };
    Some((
        stamp,
        sender.trim_matches(|character: char| {
            is_mark(character) || character == '~' || character.is_whitespace()
        }),
        text,
    ))
}

/// Returns true for a mark of the direction of text, which telephones write before names and notices.
fn is_mark(character: char) -> bool {
    matches!(character, '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}' | '\u{FEFF}')
}

fn read_messages(text: &str) -> Vec<ChatMessage<'_>> {
    let mut messages: Vec<ChatMessage<'_>> = Vec::new();
    for line in text.lines() {
        match (split_message(line), messages.last_mut()) {
            (Some((stamp, sender, text)), _) => {
                messages.push(ChatMessage { stamp, sender, text: text.to_owned() });
            }
            (None, Some(message)) => {
                message.text.push('\n');
                message.text.push_str(line);
            }
            // Lines before the first message are none.
            (None, None) => {}
        }
    }
    messages
}

/// Returns the order of the numbers of dates: the one in which all are dates, and among several the one in which most
/// messages follow the one before.
fn order_of(messages: &[ChatMessage<'_>]) -> Option<DateOrder> {
    let first = messages.first()?.stamp;
    if first.has_year_first {
        return Some(DateOrder::YearMonthDay);
    }
    let is_american = first.has_half && first.separator == '/';
    let usual = if is_american {
        [DateOrder::MonthDayYear, DateOrder::DayMonthYear, DateOrder::YearMonthDay]
    } else {
        [DateOrder::DayMonthYear, DateOrder::MonthDayYear, DateOrder::YearMonthDay]
    };
    let ranked = usual.into_iter().map(|order| {
        let times: Vec<DateTime> =
            messages.iter().filter_map(|message| message.stamp.to_time(order)).collect();
        let following =
            times.iter().zip(times.iter().skip(1)).filter(|(before, after)| before <= after).count();
        (order, times.len(), following)
    });
    // The first of equal ones.
    let best = ranked.rev().max_by_key(|(_, dates, following)| (*dates, *following))?;
    (best.1 > 0).then_some(best.0)
}

impl ChatMessage<'_> {
    /// Returns true for a notice of the program: it has no sender, or on telephones of Apple the name of the chat.
    fn is_notice(&self, chat: &str) -> bool {
        let is_marked = self.sender == chat && self.text.starts_with(is_mark);
        self.sender.is_empty() || is_marked && split_attachment(&self.text).0.is_empty()
    }

    fn into_record(self, time: DateTime, chat: &str, path: &str) -> FileRecord {
        let date = time.strftime("%Y-%m-%dT%H:%M:%S").to_string();
        let (attachment, text) = split_attachment(&self.text);
        let mut record = FileRecord {
            stream: STREAM.to_owned(),
            key: format!("{chat}/{date}"),
            data: RecordData::new(),
            emitted_at: Some(format!("{date}Z")),
            identity: None,
        };
        record.put_text("title", title_from(&text, &attachment));
        record.put_text("channel", chat);
        record.put_text("from", self.sender);
        record.put_text("date", &date);
        record.put_list("attachments", if attachment.is_empty() { Vec::new() } else { vec![attachment] });
        record.put_text("path", path);
        record.put_text("body", &text);
        record.identity = Some(record.data.clone());
        record
    }
}

/// Splits the name of an attachment from the text of a message: `<attached: IMG.jpg>`, `IMG.jpg (file attached)`, or what
/// stands for media that the export left out (`<Media omitted>`, `image omitted`).
fn split_attachment(text: &str) -> (String, String) {
    let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
    let is_notice = first.starts_with(is_mark);
    let first = first.trim_matches(|character: char| is_mark(character) || character.is_whitespace());
    let plain = |text: &str| text.replace(is_mark, "").trim().to_owned();
    if let Some(inner) = first.strip_prefix('<').and_then(|first| first.strip_suffix('>')) {
        let name = inner.rsplit_once(": ").map_or(inner, |(_, name)| name);
        let is_link = inner.contains("://");
        if !is_link && !inner.contains('<') {
            return (plain(name), plain(rest));
        }
    }
    if let Some((name, note)) = first.rsplit_once(" (")
        && let Some(note) = note.strip_suffix(')')
        && (is_notice || FILE_NOTES.contains(&note.to_lowercase().as_str()))
        && is_file_name(name)
    {
        return (plain(name), plain(rest));
    }
    // Telephones of Apple mark their notices.
    let is_media =
        is_notice && rest.is_empty() && first.split_whitespace().count() <= 3 && !first.contains("://");
    if is_media { (plain(first), String::new()) } else { (String::new(), plain(text)) }
}

/// Returns true for a name such as `IMG-20240305-WA0001.jpg` or `Plan 2.pdf`.
fn is_file_name(name: &str) -> bool {
    let extension = name.rsplit_once('.').map(|(_, extension)| extension).unwrap_or_default();
    // The extension of a video may be `3gp`.
    matches!(extension.len(), 2..=5)
        && extension.bytes().all(|byte| byte.is_ascii_alphanumeric())
        && extension.bytes().any(|byte| byte.is_ascii_alphabetic())
}

/// Returns the name of a chat: that in the name of its file, or of the archive of a `_chat.txt`.
fn chat_name(path: &str) -> &str {
    let mut segments = path.rsplit('/');
    let name = segments.next().unwrap_or(path);
    let name = if name.eq_ignore_ascii_case("_chat.txt") { segments.next().unwrap_or(name) } else { name };
    // The name of a person may have a dot.
    let extension = name.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase());
    let is_known = extension.is_some_and(|extension| matches!(extension.as_str(), "txt" | "zip"));
    let stem = if is_known { name.get(..name.len() - 4).unwrap_or(name) } else { name };
    let word = CHAT_WORDS.iter().filter(|_| stem.to_ascii_lowercase().contains("whatsapp"));
    let named = word.filter_map(|word| stem.split_once(word)).min_by_key(|(before, _)| before.len());
    named.map_or(stem, |(_, name)| name).trim()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expect: &[(&str, &str, &str)]) {
        let messages = read_messages(text);
        let order = order_of(&messages).unwrap();
        let read: Vec<(String, &str, &str)> = messages
            .iter()
            .map(|message| {
                (message.stamp.to_time(order).unwrap().to_string(), message.sender, message.text.as_str())
            })
            .collect();
        let read: Vec<(&str, &str, &str)> =
            read.iter().map(|(time, sender, text)| (time.as_str(), *sender, *text)).collect();
        assert_eq!(read, expect);
    }

    #[test]
    fn messages_have_senders_and_times() {
        check(
            "[05/03/2024, 14:05:12] Ana: shall we meet?\r\n\u{200E}[05/03/2024, 14:06:01] ~\u{202F}Ben: yes\r\nand: bring it\r\n[13/03/2024, 14:06:01] Ana: \u{200E}image omitted",
            &[
                ("2024-03-05T14:05:12", "Ana", "shall we meet?"),
                ("2024-03-05T14:06:01", "Ben", "yes\nand: bring it"),
                ("2024-03-13T14:06:01", "Ana", "\u{200E}image omitted"),
            ],
        );
        check(
            "3/5/24, 2:05\u{202F}PM - Messages are encrypted.\n3/5/24, 2:06\u{202F}PM - Ana: hi - there\n3/6/24, 2:06\u{202F}PM - +1 555 0100: <Media omitted>",
            &[
                ("2024-03-05T14:05:00", "", "Messages are encrypted."),
                ("2024-03-05T14:06:00", "Ana", "hi - there"),
                ("2024-03-06T14:06:00", "+1 555 0100", "<Media omitted>"),
            ],
        );
        // The order of the messages tells the order of the numbers.
        check(
            "01/02/24, 10:00 - Ana: a\n02/01/24, 10:00 - Ana: b\n02/02/24, 10:00 - Ana: c",
            &[
                ("2024-01-02T10:00:00", "Ana", "a"),
                ("2024-02-01T10:00:00", "Ana", "b"),
                ("2024-02-02T10:00:00", "Ana", "c"),
            ],
        );
        check("2024/3/5 下午2:05 - 安娜: 你好", &[("2024-03-05T14:05:00", "安娜", "你好")]);
        check("05.03.24, 14:05 - Ana: hallo", &[("2024-03-05T14:05:00", "Ana", "hallo")]);
    }

    #[test]
    fn chats_are_recognized_and_named() {
        let two = "[05/03/2024, 14:05:12] Ana: a\n[05/03/2024, 14:06:01] Ben: b\n";
        for (start, name, expect) in [
            (two, "x.txt", true),
            ("05/03/2024, 14:05 - Ana: a\n", "WhatsApp Chat with Ana.txt", true),
            ("05/03/2024, 14:05 - Ana: a\n", "notes.txt", false),
            ("[05/03/2024] a note\n", "_chat.txt", false),
            ("Minutes\n[05/03/2024, 14:05:12] Ana: a\n", "x.txt", false),
        ] {
            assert_eq!(is_whatsapp(start, name), expect, "{name}");
        }
        for (path, expect) in [
            ("WhatsApp Chat with Ana.txt", "Ana"),
            ("a/WhatsApp Chat - Ana B..zip/_chat.txt", "Ana B."),
            ("WhatsApp-Chat mit Ana.txt", "Ana"),
            ("Chat de WhatsApp con Ana.txt", "Ana"),
            ("chat - ana.txt", "chat - ana"),
            ("WhatsApp Chat with Dr. Smith/_chat.txt", "Dr. Smith"),
            ("WhatsApp Chat with Dr. Smith.TXT", "Dr. Smith"),
        ] {
            assert_eq!(chat_name(path), expect);
        }
    }

    #[test]
    fn attachments_are_told_from_texts() {
        for (text, attachment, body) in [
            ("\u{200E}<attached: 0001-PHOTO.jpg>", "0001-PHOTO.jpg", ""),
            ("IMG-20240305-WA0001.jpg (file attached)\nThe ibis", "IMG-20240305-WA0001.jpg", "The ibis"),
            ("Plan 2.pdf (Datei angehängt)", "Plan 2.pdf", ""),
            ("<Media omitted>", "Media omitted", ""),
            ("\u{200E}Bild weggelassen", "Bild weggelassen", ""),
            ("a <b> c", "", "a <b> c"),
            ("see you (at noon)", "", "see you (at noon)"),
            ("Wir treffen uns um 9.30 (pünktlich)", "", "Wir treffen uns um 9.30 (pünktlich)"),
            ("I like node.js (really)", "", "I like node.js (really)"),
            ("\u{200E}VID-1.3gp (arquivo novo)", "VID-1.3gp", ""),
            ("\u{200E}um 9.30 (file attached)", "", "um 9.30 (file attached)"),
            ("", "", ""),
        ] {
            assert_eq!(split_attachment(text), (attachment.to_owned(), body.to_owned()), "{text}");
        }
    }
}
