//! Readers of what other programs export as JSON.
//!
//! * `objects`: the objects of an array, one by one
//! * `chatgpt`, `claude`: conversations, `slack`: a day of a channel, `github`: issues and pull requests

mod chatgpt;
mod claude;
mod github;
mod objects;
mod slack;

pub(super) use self::chatgpt::read_chatgpt;
pub(super) use self::claude::read_claude;
pub(super) use self::github::read_github;
pub(super) use self::slack::read_slack;
