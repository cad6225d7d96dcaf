//! The names of people and channels that an export lists beside the folders of its channels.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use fetchwell_core::fit::first_characters;
use fetchwell_core::record::RecordData;
use serde_json::Value;

use super::super::super::item::{Item, ReadError};
use super::super::objects::{each_object, text_at};

/// The lists of an export: those of people first, and then those of channels and direct messages.
const LISTS: [&str; 6] =
    ["users.json", "org_users.json", "channels.json", "groups.json", "dms.json", "mpims.json"];

/// Number of lists of people.
const LISTS_OF_PEOPLE: usize = 2;

/// Maximum number of people and channels that are known.
const MAX_NAMES: usize = 500_000;

/// Maximum number of people after which direct messages are named.
const MAX_MEMBERS: usize = 16;

/// Maximum length of a name or an id in characters. A message may have it thousands of times.
const MAX_NAME: usize = 200;

/// The names of an export.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// Names of people by their ids.
    people: HashMap<String, String>,
    /// Channels by their ids and the names of their folders.
    channels: HashMap<String, Channel>,
}

/// A channel, or the direct messages of some people.
#[derive(Debug, Clone)]
enum Channel {
    Named(String),
    /// Ids of the people.
    Direct(Vec<String>),
}

impl Names {
    /// Reads a list of names.
    pub(super) fn read(&mut self, item: Item<'_>) -> Result<(), ReadError> {
        let is_people = LISTS.iter().take(LISTS_OF_PEOPLE).any(|list| item.name() == *list);
        each_object(item, &mut |_number, listed| {
            if self.people.len() + self.channels.len() < MAX_NAMES {
                if is_people { self.add_person(&listed) } else { self.add_channel(&listed) }
            }
            Ok(())
        })
    }

    fn add_person(&mut self, person: &RecordData) {
        let profile = person.get("profile").and_then(Value::as_object);
        if let Some(name) = profile.and_then(name_in).or_else(|| name_in(person)) {
            self.people.insert(text_at(person, "id").to_owned(), name);
        }
    }

    fn add_channel(&mut self, channel: &RecordData) {
        let (id, name) = (text_at(channel, "id"), truncated(text_at(channel, "name")));
        let members = channel.get("members").and_then(Value::as_array).into_iter().flatten();
        let members = members.filter_map(Value::as_str).take(MAX_MEMBERS);
        let members: Vec<String> = members.map(|id| truncated(id).to_owned()).collect();
        // A direct message of two has no name, and one of several has a name such as `mpdm-ann--bob--cleo-1`.
        let is_direct = (name.is_empty() || name.starts_with("mpdm-")) && !members.is_empty();
        let known = if is_direct { Channel::Direct(members) } else { Channel::Named(name.to_owned()) };
        for key in [id, text_at(channel, "name")] {
            if !key.is_empty() {
                self.channels.insert(key.to_owned(), known.clone());
            }
        }
    }

    /// Returns the name of the author of a message, or an id. A name in a message is remembered.
    pub(super) fn author(&mut self, message: &RecordData) -> String {
        let id = text_at(message, "user");
        let profile = message.get("user_profile").and_then(Value::as_object);
        if !self.people.contains_key(id)
            && let Some(name) = profile.and_then(name_in)
            && self.people.len() < MAX_NAMES
        {
            self.people.insert(id.to_owned(), name);
        }
        let bot = message.get("bot_profile").and_then(Value::as_object);
        let names = [
            self.person(id).unwrap_or_default(),
            text_at(message, "username"),
            bot.map_or("", |bot| text_at(bot, "name")),
            id,
            text_at(message, "bot_id"),
        ];
        truncated(names.into_iter().find(|name| !name.is_empty()).unwrap_or_default()).to_owned()
    }

    /// Returns the name of a person.
    pub(super) fn person(&self, id: &str) -> Option<&str> {
        self.people.get(id).map(String::as_str)
    }

    /// Returns the name of a channel by its id or folder, or the names of the people who write each other there.
    pub(super) fn channel_of(&self, key: &str) -> String {
        match self.channels.get(key) {
            Some(Channel::Named(name)) if !name.is_empty() => name.clone(),
            Some(Channel::Direct(members)) => {
                let names = members.iter().map(|id| self.person(id).unwrap_or(id));
                truncated(&names.collect::<Vec<_>>().join(", ")).to_owned()
            }
            _ => key.to_owned(),
        }
    }
}

/// Returns the name in a profile.
fn name_in(profile: &RecordData) -> Option<String> {
    let fields = ["real_name", "display_name", "name"];
    let mut names = fields.iter().map(|field| text_at(profile, field).trim());
    names.find(|name| !name.is_empty()).map(|name| truncated(name).to_owned())
}

fn truncated(name: &str) -> &str {
    first_characters(name, MAX_NAME)
}

/// Returns the paths of the lists in the folder of an export.
pub(super) fn name_lists(folder: &Path) -> impl Iterator<Item = PathBuf> {
    LISTS.iter().map(|list| folder.join(list))
}

/// Returns true if a path is that of a list of names.
pub(crate) fn is_name_list(path: &str) -> bool {
    path.rsplit('/').next().is_some_and(|name| LISTS.contains(&name))
}

/// Returns true if the name of a file is that of a day of a channel: `2026-04-01.json`.
pub(crate) fn is_day(name: &str) -> bool {
    let day = name.strip_suffix(".json").unwrap_or_default();
    day.len() == 10 && day.parse::<jiff::civil::Date>().is_ok()
}

/// Returns the paths of the lists on which the records of a file on disk depend, if it is a day of an export.
pub(crate) fn listed_names(file: &Path) -> Vec<PathBuf> {
    let is_day = file.file_name().and_then(|name| name.to_str()).is_some_and(is_day);
    let folder = file.parent().and_then(Path::parent).filter(|_| is_day);
    folder.map(|folder| name_lists(folder).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn names(lists: &[(&str, Value)]) -> Names {
        let mut names = Names::default();
        for (path, list) in lists {
            let text = list.to_string();
            let item = Item::from_reader((*path).to_owned(), None, Box::new(text.as_bytes())).unwrap();
            assert!(names.read(item).is_ok(), "{path}");
        }
        names
    }

    #[test]
    fn people_and_channels_have_their_names() {
        let names = names(&[
            ("x/dms.json", json!([{"id": "D1", "members": ["U1", "U2", 3]}])),
            ("x/mpims.json", json!([{"id": "G1", "name": "mpdm-ann--bob-1", "members": ["U1", "U9"]}])),
            (
                "x/channels.json",
                json!([{"id": "C1", "name": "general", "members": ["U1"]}, {"id": "C2"}, {"id": "long", "name": "n".repeat(500)}]),
            ),
            (
                "x/users.json",
                json!([
                    {"id": "U1", "name": "ann", "profile": {"real_name": "Ann Berg", "display_name": "ann"}},
                    {"id": "U2", "name": "bob", "profile": {"real_name": " ", "display_name": ""}},
                    {"id": "U3", "name": ""},
                ]),
            ),
        ]);
        for (key, expect) in [
            ("D1", "Ann Berg, bob"),
            ("mpdm-ann--bob-1", "Ann Berg, U9"),
            ("C1", "general"),
            ("general", "general"),
            ("C2", "C2"),
            ("other", "other"),
            ("long", &"n".repeat(MAX_NAME)),
        ] {
            assert_eq!(names.channel_of(key), expect, "{key}");
        }
        assert_eq!((names.person("U1"), names.person("U3")), (Some("Ann Berg"), None));
    }

    #[test]
    fn authors_are_people_or_programs() {
        let mut names = names(&[("users.json", json!([{"id": "U1", "name": "ann"}]))]);
        for (message, expect) in [
            (json!({"user": "U1", "user_profile": {"real_name": "Other"}}), "ann"),
            (json!({"user": "U2", "user_profile": {"real_name": "Bob Tan"}}), "Bob Tan"),
            (json!({"user": "U2"}), "Bob Tan"),
            (json!({"username": "CI", "bot_id": "B1"}), "CI"),
            (json!({"user": "U7", "bot_profile": {"name": "Deploy"}}), "Deploy"),
            (json!({"user": "U8"}), "U8"),
            (json!({"bot_id": "B1"}), "B1"),
            (json!({}), ""),
        ] {
            assert_eq!(names.author(message.as_object().unwrap()), expect, "{message}");
        }
    }

    #[test]
    fn days_depend_on_the_lists_of_their_export() {
        assert_eq!(listed_names(Path::new("a/general/2026-04-01.json"))[0], Path::new("a/users.json"));
        assert!(listed_names(Path::new("a/general/notes.json")).is_empty());
        assert!(listed_names(Path::new("2026-04-01.json")).is_empty());
        assert!(is_name_list("a.zip/users.json") && !is_name_list("a/myusers.json"));
    }
}
