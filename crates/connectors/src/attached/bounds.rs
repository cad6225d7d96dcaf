//! Bounds of the attachments of a message, and of the messages and archives in them.
//!
//! A small message can have attachments that expand to gigabytes or take hours to read. All files in a message share its bounds
//! of number and time; the text of each message is bounded by itself, because a message that is attached becomes a part of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::super::recognition::OcrAllowance;

/// Maximum number of files that are read: attachments, and files in archives that are attached.
const MAX_FILES: usize = 1_000;

/// Maximum number of messages that a message with attachments is attached to.
const MAX_LEVELS: u32 = 5;

/// Time after which no further file of a message is read, besides that of text recognition.
const MAX_TIME: Duration = Duration::from_secs(120);

/// Maximum bytes of the texts of all attachments of a message, as a multiple of its size. Documents have less than 20 times the
/// text of their bytes. Messages that are read ahead are bounded by their size, and so are their texts by this.
const MAX_RATIO: usize = 30;

/// Bytes of text that attachments may have in any case.
const MIN_TEXT_BYTES: usize = 64 * 1024;

/// Maximum bytes of the texts of all attachments of a message, as of a PDF document.
const MAX_TEXT_BYTES: usize = 32 * 1024 * 1024;

/// The files, the time and the bytes of text that are left for the attachments of a message.
#[derive(Debug)]
pub(crate) struct AttachmentBounds {
    /// Number of messages that this one is attached to.
    level: u32,
    text: AtomicUsize,
    shared: Arc<SharedBounds>,
}

/// The bounds that a message shares with those attached to it.
#[derive(Debug)]
struct SharedBounds {
    files: AtomicUsize,
    /// End of the time, without that of text recognition.
    until: Instant,
    recognition: Arc<OcrAllowance>,
}

impl AttachmentBounds {
    /// Creates the bounds of a message with this size in bytes.
    pub(crate) fn for_message(bytes: usize) -> Self {
        let text = bytes.saturating_mul(MAX_RATIO).clamp(MIN_TEXT_BYTES, MAX_TEXT_BYTES);
        let (files, until) = (AtomicUsize::new(MAX_FILES), Instant::now() + MAX_TIME);
        let shared = SharedBounds { files, until, recognition: Arc::new(OcrAllowance::for_message()) };
        Self { level: 0, text: AtomicUsize::new(text), shared: Arc::new(shared) }
    }

    /// Returns the bounds of a message that is attached to this one.
    pub(crate) fn nested(&self) -> Self {
        let text = AtomicUsize::new(self.text_left());
        Self { level: self.level + 1, text, shared: Arc::clone(&self.shared) }
    }

    /// Returns the number of messages that this one is attached to.
    pub(crate) fn level(&self) -> u32 {
        self.level
    }

    /// Counts a file that is read next.
    ///
    /// # Errors
    ///
    /// The file must not be read, for the reason in the text.
    pub(crate) fn count_file(&self) -> Result<(), String> {
        if self.level > MAX_LEVELS {
            return Err(format!("it is in more than {MAX_LEVELS} messages that are attached to each other"));
        }
        if Instant::now() > self.shared.until + self.shared.recognition.used() {
            let seconds = MAX_TIME.as_secs();
            return Err(format!("reading the attachments before it took longer than {seconds} s"));
        }
        let left =
            self.shared.files.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        left.map(|_left| ()).map_err(|_none| format!("the message has more than {MAX_FILES} attached files"))
    }

    /// Returns the pages and the time that are left for text recognition.
    pub(crate) fn recognition(&self) -> &Arc<OcrAllowance> {
        &self.shared.recognition
    }

    /// Returns the bytes of text that are left.
    pub(crate) fn text_left(&self) -> usize {
        self.text.load(Ordering::Relaxed)
    }

    /// Counts the bytes of the text of an attachment.
    pub(crate) fn use_text(&self, bytes: usize) {
        self.text.store(self.text_left().saturating_sub(bytes), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attached_messages_share_files_and_have_their_own_text() {
        let bounds = AttachmentBounds::for_message(10_000);
        assert_eq!(bounds.text_left(), 300_000);
        let nested = bounds.nested();
        nested.use_text(100_000);
        assert_eq!((bounds.text_left(), nested.text_left()), (300_000, 200_000));
        for _ in 0..MAX_FILES {
            nested.count_file().unwrap();
        }
        assert!(bounds.count_file().unwrap_err().contains("more than 1000 attached files"));
        let deep = (0..6).fold(AttachmentBounds::for_message(1), |bounds, _| bounds.nested());
        assert!(deep.count_file().unwrap_err().contains("more than 5 messages"));
        for (bytes, expect) in [(1, MIN_TEXT_BYTES), (usize::MAX, MAX_TEXT_BYTES)] {
            assert_eq!(AttachmentBounds::for_message(bytes).text_left(), expect);
        }
    }
}
