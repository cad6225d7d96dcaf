//! Understanding of queries in plain language: the words that are those of a request, and the times that are named.
//!
//! * `request_words`: the share that each word of a query has, and the kinds of records that it asks for
//! * `record_kind`: kinds of records, and the streams of each
//! * `word_lists`: the words of requests in seven languages, from the files of `words/`
//! * `dates`: dates and times in plain text
//! * `time_window`: how near a record is to a time of a query
//!
//! **Invariant:** pure. The time and the time zone of the caller come in as values.

pub mod dates;
mod record_kind;
pub(crate) mod request_words;
mod time_window;
mod word_lists;

pub use record_kind::RecordKind;
pub use time_window::TimeWindow;
pub(crate) use time_window::word_share;
