//! Readers of documents: files that become one record each.
//!
//! * `html_text`: the visible text of HTML
//! * `markdown`: notes with a front matter

mod html_text;
mod markdown;

pub(super) use html_text::html_to_text;
pub use markdown::import_markdown;
