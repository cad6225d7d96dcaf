//! Readers of documents: files that become one record each.
//!
//! * `document`: the fields of documents of all kinds
//! * `text`, `html`, `markdown`: the readers

mod document;
mod html;
mod markdown;
mod text;

pub(super) use document::Document;
pub(super) use html::read_html;
pub(super) use markdown::read_note;
pub(super) use text::read_text;

pub(super) use crate::record::html_to_text;
