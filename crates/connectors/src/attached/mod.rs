//! Attachments of messages: what a reader of them takes and returns, and their bounds.
//!
//! Messages do not know the readers of other files, which read messages themselves. So a message gets an
//! `AttachmentReader`, and the importer of files has one for all of its kinds.
//!
//! * `bounds`: bounds of all attachments of a message
//! * `name`: the names of attachments as records have them
//! * `problems`: what is missing in their texts

mod bounds;
mod name;
mod problems;

pub(crate) use self::bounds::AttachmentBounds;
pub(crate) use self::name::{UNNAMED, file_name, with_extension};
pub(crate) use self::problems::{FurtherFiles, ReadProblem, shown_path};

/// A reader of attachments.
pub(crate) trait AttachmentReader: Sync {
    /// Returns the bounds of the attachments of a message with this size in bytes.
    fn begin(&self, message_bytes: usize) -> AttachmentBounds;

    /// Returns true if the user stopped the import. A message whose attachments were read meanwhile may lack their texts.
    fn is_stopped(&self) -> bool {
        false
    }

    /// Reads an attachment as text. Never fails: what cannot be read is among the problems. The text of one of a kind that is
    /// not read is empty.
    fn read(&self, file: &AttachedFile<'_>, bounds: &AttachmentBounds) -> AttachedText;
}

/// An attachment to read.
#[derive(Debug)]
pub(crate) struct AttachedFile<'a> {
    /// Name of the file, without a folder.
    pub(crate) name: &'a str,
    pub(crate) bytes: &'a [u8],
}

/// The text of an attachment.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct AttachedText {
    pub(crate) text: String,
    /// Parts that are missing in the text.
    pub(crate) problems: Vec<ReadProblem>,
}

impl AttachedText {
    /// Returns true if nothing was read, and nothing failed: the attachment is of no kind that is read.
    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty() && self.problems.is_empty()
    }
}

/// A reader that reads no attachment.
#[derive(Debug)]
pub(crate) struct NoAttachments;

impl AttachmentReader for NoAttachments {
    fn begin(&self, message_bytes: usize) -> AttachmentBounds {
        AttachmentBounds::for_message(message_bytes)
    }

    fn read(&self, _file: &AttachedFile<'_>, _bounds: &AttachmentBounds) -> AttachedText {
        AttachedText::default()
    }
}
