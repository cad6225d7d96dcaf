//! Readers of what other programs export.
//!
//! * `objects`: the objects of an array, one by one
//! * `chatgpt`, `claude`: conversations, `slack`: a day of a channel, `github`: issues and pull requests
//! * `evernote`, `keep`: notes
//! * `kindle`: highlights, `bookmarks`: bookmarks of browsers
//! * `whatsapp`, `telegram`: messages of chats, `chat_time`: times as programs write them for people

mod bookmarks;
mod chat_time;
mod chatgpt;
mod claude;
mod evernote;
mod github;
mod keep;
mod kindle;
mod objects;
mod slack;
mod telegram;
mod whatsapp;

pub(crate) use self::bookmarks::{is_bookmarks, read_bookmarks};
pub(crate) use self::chatgpt::read_chatgpt;
pub(crate) use self::claude::read_claude;
pub(crate) use self::evernote::read_enex;
pub(crate) use self::github::read_github;
pub(crate) use self::keep::read_keep;
pub(crate) use self::kindle::{is_kindle, read_kindle};
pub(crate) use self::slack::{SlackExports, is_day as is_slack_day, is_name_list, listed_names, read_slack};
pub(crate) use self::telegram::read_telegram;
pub(crate) use self::whatsapp::{is_whatsapp, read_whatsapp};
