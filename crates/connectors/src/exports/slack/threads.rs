//! The first messages of threads, after which replies are named.
//!
//! A reply may be sent days after the first message, and a synchronization reads only the days that changed. So first
//! messages are kept while an import runs, and looked for in the day of the first message if it is on disk.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;

use super::super::super::item::{Item, ReadError};
use super::super::objects::{each_object, text_at};
use super::names::Names;
use super::text::message_text;

/// Maximum number of first messages that are kept.
const MAX_THREADS: usize = 100_000;

/// Maximum number of messages of a day that are kept until its end.
const MAX_DAY: usize = 100_000;

/// The first messages that are known, by their keys.
#[derive(Debug, Default)]
pub(super) struct Threads {
    /// Messages that have replies.
    parents: HashMap<String, String>,
    /// All messages of the day that is being read.
    day: HashMap<String, String>,
    /// Days that were read for their first messages.
    read: HashSet<String>,
}

impl Threads {
    /// Forgets the messages of the day before.
    pub(super) fn begin_day(&mut self) {
        self.day.clear();
    }

    /// Remembers a message that is no reply.
    pub(super) fn add(&mut self, key: &str, author: &str, title: &str, is_parent: bool) {
        let (known, max) =
            if is_parent { (&mut self.parents, MAX_THREADS) } else { (&mut self.day, MAX_DAY) };
        if known.len() < max {
            known.insert(key.to_owned(), shown(author, title));
        }
    }

    /// Returns the author and title of the first message of a thread, if it is known or in the folder of its channel.
    pub(super) fn first_message(
        &mut self,
        channel: &str,
        thread: &str,
        folder: Option<&Path>,
        names: &mut Names,
    ) -> Option<String> {
        let key = format!("{channel}/{thread}");
        let known = self.day.get(&key).or_else(|| self.parents.get(&key));
        if let Some(known) = known {
            return Some(known.clone());
        }
        // The name of a day is in the zone of the workspace.
        let day = day_of(thread)?;
        for day in [Some(day), day.yesterday().ok(), day.tomorrow().ok()].into_iter().flatten() {
            let name = format!("{day}.json");
            if let Some(folder) = folder
                && self.read.len() < MAX_THREADS
                && self.read.insert(format!("{channel}/{name}"))
            {
                self.read_day(channel, &folder.join(name), names);
            }
        }
        self.parents.get(&key).cloned()
    }

    /// Remembers the messages of a day that have replies. A day that is missing or broken is one without.
    fn read_day(&mut self, channel: &str, file: &Path, names: &mut Names) {
        let Ok(item) = Item::open(String::new(), file) else { return };
        let read = each_object(item, &mut |_number, message| {
            let time = text_at(&message, "ts");
            if text_at(&message, "thread_ts") == time || message.contains_key("reply_count") {
                let author = names.author(&message);
                let title = message_text(&message, names).title;
                self.add(&format!("{channel}/{time}"), &author, &title, true);
            }
            Ok::<(), ReadError>(())
        });
        // The day is read as a file of its own, too, and its error is reported there.
        drop(read);
    }
}

fn shown(author: &str, title: &str) -> String {
    match (author, title) {
        ("", title) => title.to_owned(),
        (author, "") => author.to_owned(),
        (author, title) => format!("{author}: {title}"),
    }
}

/// Returns the day of a time in seconds since 1970, in UTC.
fn day_of(seconds: &str) -> Option<Date> {
    let seconds = seconds.split('.').next()?.parse().ok()?;
    Some(Timestamp::from_second(seconds).ok()?.to_zoned(TimeZone::UTC).date())
}
