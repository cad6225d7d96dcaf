//! The reader of attachments: named bytes become text by the readers of all kinds of files.
//!
//! An attachment is read like a file of a folder, in a process of its own if it is a PDF document. Its records become one text
//! instead of records of the store. A kind of file that is read in folders is read here as well.

use std::fmt;
use std::io::Cursor;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::super::ImportError;
use super::super::archive::ArchiveLimits;
use super::super::attached::{
    AttachedFile, AttachedText, AttachmentBounds, AttachmentReader, FurtherFiles, ReadProblem, shown_path,
};
use super::super::intake::{Intake, Report, UnreadAttachment};
use super::super::item::Item;
use super::super::recognition::Recognizer;
use super::attachment_text::{AttachmentText, UnreadPages};
use super::detect::detect_kind;
use super::read::{FileReader, contradiction};
use super::selection::FileSelection;

/// Maximum number of problems of one attachment that are listed.
const MAX_PROBLEMS: usize = 20;

/// A reader of attachments of every kind of file that is read.
pub(crate) struct Attachments<'a> {
    /// Program that reads PDF documents in a process of its own.
    program: Option<&'a Path>,
    /// Text recognition of pictures and scanned pages.
    ocr: Option<&'a Recognizer>,
    stop: &'a AtomicBool,
    /// Bounds of the message that the messages to read are attached to.
    outer: Option<&'a AttachmentBounds>,
}

impl<'a> Attachments<'a> {
    /// Creates the reader of an import of these files, with its program for PDF documents and its text recognition.
    pub(crate) fn new(selection: &'a FileSelection, stop: &'a AtomicBool) -> Self {
        let FileSelection { program, ocr, .. } = selection;
        Self { program: program.as_deref(), ocr: ocr.as_deref(), stop, outer: None }
    }
}

impl AttachmentReader for Attachments<'_> {
    fn begin(&self, message_bytes: usize) -> AttachmentBounds {
        self.outer.map_or_else(|| AttachmentBounds::for_message(message_bytes), AttachmentBounds::nested)
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn read(&self, file: &AttachedFile<'_>, bounds: &AttachmentBounds) -> AttachedText {
        let mut problems = Problems::default();
        let item = match Item::from_reader(file.name.to_owned(), None, Box::new(Cursor::new(file.bytes))) {
            Ok(item) => item,
            Err(error) => {
                problems.add(file.name, &error.to_string());
                return problems.into_text(String::new());
            }
        };
        let program = self.program.map(Path::to_owned);
        let ocr = self.ocr.map(|ocr| Arc::new(ocr.within(bounds.recognition())));
        let selection = FileSelection { program, ocr, ..FileSelection::default() };
        let Some(kind) = detect_kind(&item).filter(|kind| selection.has(*kind)) else {
            contradiction(&item, &selection).into_iter().for_each(|reason| problems.add(file.name, reason));
            return problems.into_text(String::new());
        };
        if let Err(reason) = bounds.count_file() {
            problems.add(file.name, &reason);
            return problems.into_text(String::new());
        }
        let nested = Attachments { outer: Some(bounds), ..*self };
        let mut text = AttachmentText::new(file.name, bounds.text_left());
        let limits = ArchiveLimits::new(file.bytes.len() as u64).at_level(bounds.level());
        let ended = {
            let mut intake = Intake::collect(&mut text, &mut problems, self.stop);
            let reader = FileReader::new(&selection, &mut intake, &nested).within(bounds);
            reader.read_whole(kind, item, &limits)
        };
        match ended {
            Ok(()) => {}
            Err(ImportError::AttachmentBounds) if text.is_full() => {
                let max = bounds.text_left();
                let reason =
                    format!("its text is cut: {max} bytes are left for the attachments of the message");
                problems.add(file.name, &reason);
            }
            // The file beyond the bounds was rejected, and the message of a stop is not written.
            Err(ImportError::AttachmentBounds | ImportError::Stopped) => {}
            Err(error) => problems.add(file.name, &error.to_string()),
        }
        let (text, unread) = text.into_parts();
        for UnreadPages { path, reason } in unread {
            problems.add(&path, &reason);
        }
        problems.into_text(text)
    }
}

/// The problems of one attachment.
#[derive(Debug, Default)]
struct Problems {
    listed: Vec<ReadProblem>,
    /// Files of problems beyond the maximum.
    further: FurtherFiles,
}

impl Problems {
    fn add(&mut self, name: &str, reason: &str) {
        self.add_files(name, reason, 1);
    }

    fn add_files(&mut self, name: &str, reason: &str, files: u64) {
        let name = shown_path(name);
        if self.listed.len() < MAX_PROBLEMS {
            self.listed.push(ReadProblem { name, reason: reason.to_owned(), files });
        } else {
            self.further.add(&name, files);
        }
    }

    /// Returns the text of the attachment with its problems.
    fn into_text(mut self, text: String) -> AttachedText {
        self.listed.extend(self.further.into_problem());
        AttachedText { text, problems: self.listed }
    }
}

impl Report for Problems {
    fn rejected(&mut self, place: &dyn fmt::Display, reason: &str) {
        self.add(&place.to_string(), reason);
    }

    fn unread_attachment(&mut self, unread: &UnreadAttachment<'_>) {
        let UnreadAttachment { place, name, reason, files } = *unread;
        self.add_files(&format!("{place}/{name}"), reason, files);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use zip::ZipWriter;
    use zip::write::SimpleFileOptions;

    use super::*;

    #[test]
    fn an_archive_beyond_the_bounds_has_one_problem() {
        let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
        for name in ["a.txt", "b.txt", "c.txt"] {
            zip.start_file(name, SimpleFileOptions::default()).unwrap();
            zip.write_all(b"text").unwrap();
        }
        let bytes = zip.finish().unwrap().into_inner();
        let file = AttachedFile { name: "a.zip", bytes: &bytes };
        let stop = AtomicBool::new(false);
        let selection = FileSelection::default();
        let reader = Attachments::new(&selection, &stop);
        let bounds = reader.begin(10_000);
        // The archive and one file in it may be read.
        for _ in 2..1_000 {
            bounds.count_file().unwrap();
        }
        let AttachedText { text, problems } = reader.read(&file, &bounds);
        assert_eq!(text, "[a.txt]\n\ntext");
        let names: Vec<_> = problems.iter().map(|problem| problem.name.as_str()).collect();
        assert_eq!(names, ["a.zip/b.txt"]);
        // A stop of the user is no problem of the attachment.
        stop.store(true, Ordering::Relaxed);
        let stopped = reader.read(&file, &reader.begin(10_000));
        assert!(stopped.is_empty() && reader.is_stopped(), "{stopped:?}");
    }
}
