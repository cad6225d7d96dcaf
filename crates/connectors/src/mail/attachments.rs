//! The attachments of a message: their names, their texts, and the ones that could not be read.
//!
//! The text of each of the first `MAX_OWN_FIELDS` attachments is a field of its own, with the number of the attachment in the list
//! of names. Further texts, and those of parts without a name, follow each other in one field.

use std::fmt;

use fetchwell_core::record::{OTHER_ATTACHED_TEXT, RecordData, attachment_field, attachment_heading};
use serde_json::Value;

use super::super::attached::{
    AttachedFile, AttachedText, AttachmentBounds, AttachmentReader, FurtherFiles, ReadProblem, UNNAMED,
    with_extension,
};
use super::super::intake::{ATTACHMENT_PROBLEMS, AttachmentProblem};
use super::limits::unmask;

/// Maximum number of attachments with a field of their own for their text.
const MAX_OWN_FIELDS: usize = 20;

/// Maximum number of problems that a record has.
const MAX_PROBLEMS: usize = 50;

/// Maximum bytes of the texts of a message with its attachments. A record is smaller than 64 MiB.
const MAX_RECORD_BYTES: usize = 60 * 1024 * 1024;

/// The attachments of a message, as far as they were read.
pub(super) struct Attachments<'r> {
    reader: &'r dyn AttachmentReader,
    /// Size of the message in bytes.
    message_bytes: usize,
    /// Bounds, from the first attachment on.
    bounds: Option<AttachmentBounds>,
    names: Vec<String>,
    own: Vec<OwnText>,
    others: String,
    problems: Vec<AttachmentProblem>,
    /// Files of problems beyond the maximum.
    further: FurtherFiles,
}

/// Text of an attachment with a field of its own.
#[derive(Debug)]
struct OwnText {
    /// Number of the attachment in the list of names, from 1.
    number: usize,
    text: String,
}

/// A part of a message that is a file.
#[derive(Debug)]
pub(super) struct AttachedPart<'a> {
    pub(super) name: Option<String>,
    /// Declared type, such as `application/pdf`.
    pub(super) media_type: String,
    pub(super) bytes: &'a [u8],
}

impl fmt::Debug for Attachments<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Attachments").field("names", &self.names.len()).finish_non_exhaustive()
    }
}

impl<'r> Attachments<'r> {
    /// Creates the list of a message with this size in bytes.
    pub(super) fn new(reader: &'r dyn AttachmentReader, message_bytes: usize) -> Self {
        Self {
            reader,
            message_bytes,
            bounds: None,
            names: Vec::new(),
            own: Vec::new(),
            others: String::new(),
            problems: Vec::new(),
            further: FurtherFiles::default(),
        }
    }

    /// Adds names of attachments without a text.
    pub(super) fn add_names(&mut self, names: impl IntoIterator<Item = String>) {
        self.names.extend(names);
    }

    /// Adds an attachment with its text.
    pub(super) fn add(&mut self, name: Option<String>, text: &str) {
        let Some(name) = name else { return append(&mut self.others, text) };
        let text = text.trim_end();
        let number = self.names.len() + 1;
        match text {
            "" => {}
            _ if number <= MAX_OWN_FIELDS => {
                let mut own = String::new();
                append(&mut own, text);
                self.own.push(OwnText { number, text: own });
            }
            _ => append(&mut self.others, &format!("{}\n{text}", attachment_heading(&name))),
        }
        self.names.push(name);
    }

    /// Adds an attachment that is a file, with its text if it is of a kind that is read.
    pub(super) fn add_file(&mut self, part: AttachedPart<'_>) {
        let AttachedPart { name, media_type, bytes } = part;
        let file_name = with_extension(name.as_deref().unwrap_or(UNNAMED), &media_type);
        let bounds = self.bounds.get_or_insert_with(|| self.reader.begin(self.message_bytes));
        let read = self.reader.read(&AttachedFile { name: &file_name, bytes }, bounds);
        if read.is_empty() {
            return self.add_names(name);
        }
        let AttachedText { text, problems } = read;
        bounds.use_text(text.len());
        self.add(Some(name.unwrap_or(file_name)), &text);
        for ReadProblem { name, reason, files } in problems {
            let bytes = bytes.len();
            self.add_problem(AttachmentProblem {
                name,
                media_type: media_type.clone(),
                bytes,
                reason,
                files,
            });
        }
    }

    /// Adds a part that is missing in the texts.
    pub(super) fn add_problem(&mut self, problem: AttachmentProblem) {
        if self.problems.len() < MAX_PROBLEMS {
            self.problems.push(problem);
        } else {
            self.further.add(&problem.name, problem.files);
        }
    }

    /// Returns the names and the fields with texts and problems, of which the names come before the text of the message and the
    /// others behind it. Texts that do not fit beside that of `body_bytes` bytes are left out, the last ones first.
    pub(super) fn into_fields(mut self, body_bytes: usize) -> AttachmentFields {
        let total = |attachments: &Self| {
            let own: usize = attachments.own.iter().map(|own| own.text.len()).sum();
            body_bytes.saturating_add(own).saturating_add(attachments.others.len())
        };
        while total(&self) > MAX_RECORD_BYTES {
            let (name, bytes) = if !self.others.is_empty() {
                (OTHER_ATTACHED_TEXT.to_owned(), std::mem::take(&mut self.others).len())
            } else if let Some(OwnText { number, text }) = self.own.pop() {
                (self.name(number), text.len())
            } else {
                break;
            };
            let reason = format!("the texts of the message take more than {MAX_RECORD_BYTES} bytes");
            self.add_problem(AttachmentProblem { name, media_type: String::new(), bytes, reason, files: 1 });
        }
        let mut problems: Vec<Value> = self.problems.iter().map(AttachmentProblem::to_value).collect();
        if let Some(ReadProblem { name, reason, files }) = self.further.into_problem() {
            let further = AttachmentProblem { name, media_type: String::new(), bytes: 0, reason, files };
            problems.push(further.to_value());
        }
        let mut texts = RecordData::new();
        for OwnText { number, text } in self.own {
            texts.insert(attachment_field(number), Value::from(text));
        }
        if !self.others.is_empty() {
            texts.insert(OTHER_ATTACHED_TEXT.to_owned(), Value::from(self.others));
        }
        if !problems.is_empty() {
            texts.insert(ATTACHMENT_PROBLEMS.to_owned(), Value::from(problems));
        }
        AttachmentFields { names: self.names, texts }
    }

    fn name(&self, number: usize) -> String {
        number.checked_sub(1).and_then(|at| self.names.get(at)).cloned().unwrap_or_default()
    }
}

/// The fields of a record about attachments.
#[derive(Debug)]
pub(super) struct AttachmentFields {
    /// Names in the order of the message.
    pub(super) names: Vec<String>,
    /// Fields with texts, and with the problems.
    pub(super) texts: RecordData,
}

/// Appends a text after an empty line.
pub(super) fn append(texts: &mut String, text: &str) {
    let text = unmask(text).replace("\r\n", "\n");
    let text = text.trim_end();
    if !texts.is_empty() && !text.is_empty() {
        texts.push_str("\n\n");
    }
    texts.push_str(text);
}
