//! The reader of a day of a channel that Slack exported: `CHANNEL/2026-04-01.json`, a record for each message.
//!
//! * `names`: the names of people and channels that an export lists
//! * `text`: the text of a message with its attachments and files, `blocks`: that of its blocks
//! * `notation`: mentions and links in a text
//! * `threads`: the first messages of threads
//!
//! **Invariant:** keys have the folder of a channel and the time of a message, whatever the names are.

mod blocks;
mod names;
mod notation;
mod text;
mod threads;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use fetchwell_core::record::RecordData;

use self::names::{Names, name_lists};
pub(crate) use self::names::{is_day, is_name_list, listed_names};
use self::text::{MessageText, message_text};
use self::threads::Threads;
use super::super::intake::Intake;
use super::super::item::{FileRecord, Item, ReadError};
use super::objects::{each_object, text_at, time_of_seconds};

/// Stream of messages.
const STREAM: &str = "messages";

/// Messages that only say who came or left. They are no records.
const MOVES: [&str; 4] = ["channel_join", "channel_leave", "group_join", "group_leave"];

/// Maximum number of exports in one import of which the names are kept.
const MAX_EXPORTS: usize = 64;

/// Maximum number of broken lists of an export that are reported.
const MAX_BROKEN: usize = 16;

/// The exports of an import, by the path of their folder in it.
#[derive(Debug, Default)]
pub(crate) struct SlackExports(HashMap<String, Export>);

/// Names and threads of an export, by which its messages are read.
#[derive(Debug, Default)]
struct Export {
    names: Names,
    threads: Threads,
    /// True if the lists of names on disk were read.
    is_read: bool,
    /// Lists that are broken, with the reason. They are reported with the first day of the export.
    broken: Vec<(String, String)>,
}

impl SlackExports {
    /// Reads a list of names that is an entry of an archive, which may have other files of that name.
    pub(crate) fn read_names(&mut self, item: Item<'_>) {
        let folder = item.path.rsplit_once('/').map_or("", |(folder, _)| folder).to_owned();
        self.export(&folder).read_list(item);
    }

    fn export(&mut self, folder: &str) -> &mut Export {
        if self.0.len() >= MAX_EXPORTS && !self.0.contains_key(folder) {
            self.0.clear();
        }
        self.0.entry(folder.to_owned()).or_default()
    }
}

impl Export {
    /// Reads the lists of names in the folder of an export, once.
    fn read_lists(&mut self, folder: &Path) {
        if std::mem::replace(&mut self.is_read, true) {
            return;
        }
        for list in name_lists(folder) {
            if let Ok(item) = Item::open(list.display().to_string(), &list) {
                self.read_list(item);
            }
        }
    }

    fn read_list(&mut self, item: Item<'_>) {
        let path = item.path.clone();
        if let Err(ReadError::Rejected(problem)) = self.names.read(item)
            && self.broken.len() < MAX_BROKEN
        {
            self.broken.push((path, format!("{problem}; messages have ids in place of names that it lists")));
        }
    }
}

/// The place of a day in its export.
struct Day {
    path: String,
    /// Name of the channel's folder, which is an id for direct messages.
    channel: String,
    /// Path on disk of the channel's folder.
    folder: Option<PathBuf>,
}

/// Reads the messages of a day.
pub(crate) fn read_slack(
    item: Item<'_>,
    exports: &mut SlackExports,
    intake: &mut Intake<'_>,
) -> Result<(), ReadError> {
    let path = item.path.clone();
    let mut segments = path.rsplitn(3, '/').skip(1);
    let folder = item.on_disk.as_deref().and_then(Path::parent).map(Path::to_owned);
    // A day that is imported alone has no folder in its path.
    let on_disk =
        || folder.as_deref().and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
    let channel = segments.next().map(str::to_owned).or_else(on_disk).unwrap_or_default();
    let export = exports.export(segments.next().unwrap_or_default());
    if let Some(folder) = folder.as_deref().and_then(Path::parent) {
        export.read_lists(folder);
    }
    for (list, reason) in std::mem::take(&mut export.broken) {
        intake.reject(&list, &reason);
    }
    let day = Day { path, channel, folder };
    export.threads.begin_day();
    each_object(item, &mut |number, message| export.read_message(&day, number, &message, intake))
}

impl Export {
    fn read_message(
        &mut self,
        day: &Day,
        number: u64,
        message: &RecordData,
        intake: &mut Intake<'_>,
    ) -> Result<(), ReadError> {
        if MOVES.contains(&text_at(message, "subtype")) {
            return Ok(());
        }
        let place = format!("{}: message {number}", day.path);
        let (time, channel) = (text_at(message, "ts"), &day.channel);
        let Some(emitted_at) = time.parse().ok().and_then(time_of_seconds) else {
            intake.reject(&place, "it has no time `ts`");
            return Ok(());
        };
        let author = self.names.author(message);
        let MessageText { title, body, files } = message_text(message, &self.names);
        let mut record = FileRecord {
            stream: STREAM.to_owned(),
            key: format!("{channel}/{time}"),
            data: RecordData::new(),
            emitted_at: Some(emitted_at.clone()),
            identity: None,
        };
        let thread = match text_at(message, "thread_ts") {
            "" => time,
            thread => thread,
        };
        record.put_text("title", &title);
        record.put_text("channel", &self.names.channel_of(channel));
        record.put_text("from", &author);
        record.put_text("date", &emitted_at);
        record.put_text("thread_id", &format!("{channel}/{thread}"));
        if thread == time {
            let is_parent = message.contains_key("thread_ts") || message.contains_key("reply_count");
            self.threads.add(&record.key, &author, &title, is_parent);
        } else {
            let names = &mut self.names;
            let first = self.threads.first_message(channel, thread, day.folder.as_deref(), names);
            record.put_text("thread", &first.unwrap_or_default());
        }
        record.put_list("attachments", files);
        record.put_text("path", &day.path);
        record.put_text("body", &body);
        record.identity = Some(record.data.clone());
        Ok(record.take_into(&place, intake)?)
    }
}
