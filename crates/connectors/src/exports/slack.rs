//! The reader of a day of a channel that Slack exported: `CHANNEL/2026-04-01.json`, a record for each message.

use std::collections::HashMap;

use fetchwell_core::fit::first_characters;
use fetchwell_core::record::RecordData;
use serde_json::Value;

use super::super::intake::Intake;
use super::super::item::{FileRecord, Item, ReadError};
use super::objects::{each_object, text_at, time_of_seconds};

/// Stream of messages.
const STREAM: &str = "messages";

/// Reads the messages of a day.
pub(crate) fn read_slack(item: Item<'_>, intake: &mut Intake<'_>) -> Result<(), ReadError> {
    let path = item.path.clone();
    let channel = path.rsplit('/').nth(1).unwrap_or_default().to_owned();
    let mut names = HashMap::new();
    each_object(item, &mut |number, message| {
        let place = format!("{path}: message {number}");
        let time = text_at(&message, "ts");
        let Some(emitted_at) = time.parse().ok().and_then(time_of_seconds) else {
            intake.reject(&place, "it has no time `ts`");
            return Ok(());
        };
        let user = user_name(&message, &mut names);
        let text = plain_text(&message_text(&message), &names);
        let mut record = FileRecord {
            stream: STREAM.to_owned(),
            key: format!("{channel}/{time}"),
            data: RecordData::new(),
            emitted_at: Some(emitted_at.clone()),
            identity: None,
        };
        record.put_text("title", &title(&text));
        record.put_text("channel", &channel);
        record.put_text("from", &user);
        record.put_text("date", &emitted_at);
        let thread = text_at(&message, "thread_ts");
        record.put_text("thread_id", &format!("{channel}/{}", if thread.is_empty() { time } else { thread }));
        record.put_list("attachments", names_of_files(&message));
        record.put_text("path", &path);
        record.put_text("body", &text);
        record.identity = Some(record.data.clone());
        Ok(record.take_into(&place, intake)?)
    })
}

/// Returns the start of the first line of a message as its title.
fn title(text: &str) -> String {
    const MAX_TITLE: usize = 80;
    first_characters(text.lines().next().unwrap_or_default(), MAX_TITLE).to_owned()
}

/// Returns the name of the author, and remembers it for mentions.
fn user_name(message: &RecordData, names: &mut HashMap<String, String>) -> String {
    let id = text_at(message, "user");
    let profile = message.get("user_profile").and_then(Value::as_object);
    let fields = ["real_name", "display_name", "name"];
    let name = profile
        .and_then(|profile| fields.iter().map(|field| text_at(profile, field)).find(|name| !name.is_empty()));
    if let Some(name) = name {
        names.insert(id.to_owned(), name.to_owned());
    }
    let known = names.get(id).map(String::as_str);
    known
        .into_iter()
        .chain([text_at(message, "username"), id])
        .find(|name| !name.is_empty())
        .unwrap_or_default()
        .to_owned()
}

/// Returns the text of a message with those of its attachments, which messages of programs have instead of a text.
fn message_text(message: &RecordData) -> String {
    let mut texts = vec![text_at(message, "text")];
    let attachments = message.get("attachments").and_then(Value::as_array).into_iter().flatten();
    for attachment in attachments.filter_map(Value::as_object) {
        let [title, text, fallback] = ["title", "text", "fallback"].map(|field| text_at(attachment, field));
        texts.extend([title, if text.is_empty() { fallback } else { text }]);
    }
    texts.retain(|text| !text.trim().is_empty());
    texts.dedup();
    texts.join("\n")
}

fn names_of_files(message: &RecordData) -> Vec<String> {
    let files = message.get("files").and_then(Value::as_array).into_iter().flatten();
    files.filter_map(|file| file.get("name")?.as_str().map(str::to_owned)).collect()
}

/// Returns the text of a message without Slack's notation: `<@U1>`, `<#C1|general>`, `<https://x.test|label>`.
fn plain_text(text: &str, names: &HashMap<String, String>) -> String {
    let mut written = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('<') {
        written.push_str(before);
        let Some((inner, after)) = after.split_once('>') else {
            written.push('<');
            rest = after;
            continue;
        };
        let (target, label) =
            inner.split_once('|').map_or((inner, None), |(target, label)| (target, Some(label)));
        match (target.chars().next(), label) {
            (Some('@'), label) => {
                let id = target.get(1..).unwrap_or_default();
                let name = label.or_else(|| names.get(id).map(String::as_str)).unwrap_or(id);
                written.push('@');
                written.push_str(name);
            }
            (Some('#'), Some(label)) => {
                written.push('#');
                written.push_str(label);
            }
            (_, Some(label)) => {
                written.push_str(label);
                written.push_str(&format!(" ({target})"));
            }
            (_, None) => written.push_str(target),
        }
        rest = after;
    }
    written.push_str(rest);
    written.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_programs_have_the_text_of_their_attachments() {
        let message = serde_json::json!({"text": "", "attachments": [
            {"title": "Build 7", "text": "It failed", "fallback": "Build 7 failed"}, {"fallback": "No text"},
        ]});
        assert_eq!(message_text(message.as_object().unwrap()), "Build 7\nIt failed\nNo text");
    }

    #[test]
    fn the_notation_of_slack_becomes_text() {
        let names = HashMap::from([("U1".to_owned(), "Ann".to_owned())]);
        for (text, expect) in [
            ("hi <@U1> and <@U2>", "hi @Ann and @U2"),
            (
                "see <https://x.test|the page> &amp; <https://y.test>",
                "see the page (https://x.test) & https://y.test",
            ),
            ("<#C1|general> 1 &lt; 2 <", "#general 1 < 2 <"),
        ] {
            assert_eq!(plain_text(text, &names), expect);
        }
    }
}
