//! Receivers of the rejections and of the progress of an import.

use std::fmt;
use std::sync::Arc;

use serde_json::{Value, json};

use super::super::skips::SkipReason;

/// A receiver of an import's rejections.
pub trait Report {
    /// Reports a rejected piece of the file. `place` is a line number, an item number or a file name.
    fn rejected(&mut self, place: &dyn fmt::Display, reason: &str);

    /// Reports a file that an earlier synchronization rejected, and that has not changed since.
    fn still_rejected(&mut self, _path: &str, _reason: &str) {}

    /// Reports a file or folder that is skipped by design.
    fn skipped(&mut self, _path: &str, _reason: SkipReason) {}

    /// Reports how a table or file was understood, where that is not obvious. Nothing was rejected.
    fn noted(&mut self, _place: &str, _note: &str) {}

    /// Reports an attachment of an accepted record, or a file in it, that could not be read.
    fn unread_attachment(&mut self, _unread: &UnreadAttachment<'_>) {}

    /// Reports that a record was accepted.
    fn accepted(&mut self) {}

    /// Returns the receiver of the progress.
    fn progress(&self) -> Arc<dyn Progress> {
        Arc::new(NoProgress)
    }
}

/// An attachment that could not be read completely, or several for one reason.
#[derive(Debug, Clone, Copy)]
pub struct UnreadAttachment<'a> {
    /// Place of the record.
    pub place: &'a str,
    /// Name of the attachment, or the path of a file in it. The first names of several.
    pub name: &'a str,
    /// Reason with a text for people.
    pub reason: &'a str,
    /// Number of files.
    pub files: u64,
}

/// Name of the field with the attachments of a message that could not be read completely.
pub(crate) const ATTACHMENT_PROBLEMS: &str = "attachment_problems";

/// An attachment that could not be read completely, as its record has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AttachmentProblem {
    /// Name of the attachment, or the path of a file in it.
    pub(crate) name: String,
    /// Declared type, such as `application/pdf`. Empty without one.
    pub(crate) media_type: String,
    /// Size of the attachment in bytes.
    pub(crate) bytes: usize,
    pub(crate) reason: String,
    /// Number of files that it stands for.
    pub(crate) files: u64,
}

impl AttachmentProblem {
    /// Returns the value in the field of a record.
    pub(crate) fn to_value(&self) -> Value {
        let Self { name, media_type, bytes, reason, files } = self;
        let mut value = json!({ "name": name, "type": media_type, "bytes": bytes, "reason": reason });
        if let (Some(value), 2..) = (value.as_object_mut(), files) {
            value.insert("files".to_owned(), Value::from(*files));
        }
        value
    }
}

/// A receiver of the progress of an import.
pub trait Progress: Send + Sync {
    /// Adds bytes to those that will be read.
    fn expect(&self, _bytes: u64) {}

    /// Counts bytes that were read.
    fn read(&self, _bytes: u64) {}

    /// Reports that the search index is brought up to date, with the numbers of changes that were added to it and that are
    /// missing. Both are 0 before they are known.
    fn index(&self, _added: u64, _missing: u64) {}
}

/// A receiver that shows nothing.
#[derive(Debug)]
pub struct NoProgress;

impl Progress for NoProgress {}
