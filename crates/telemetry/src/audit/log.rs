//! The file of the audit log: a bounded queue, and a thread that appends to the file.
//!
//! The thread opens the file for each write, so that a file that was moved away by a rotation is created again. Lines that
//! cannot be queued or written are counted as lost. A full queue is logged once until the thread has caught up. The
//! first of several failed writes in a row is logged.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use fetchwell_state::private_options;

use crate::db::flush::flush_queue;
use crate::prometheus::exposition::{Exposition, Type};

/// Maximum number of queued reads. Each has the lines of one page, at most some tens of kilobytes.
const QUEUE: usize = 1_024;

/// Size in bytes at which a batch is written without more lines.
const MAX_BATCH: usize = 256 * 1024;

/// The audit log. Clones share the queue; when the last one is dropped, the thread ends.
#[derive(Debug, Clone)]
pub struct AuditLog {
    queue: SyncSender<Message>,
    counts: Arc<Counts>,
}

/// The file of the audit log cannot be opened.
#[derive(Debug, thiserror::Error)]
#[error("the audit log {} cannot be opened ({error}); create its folder, or change `path` in [audit]", .path.display())]
pub struct AuditLogError {
    path: PathBuf,
    error: io::Error,
}

#[derive(Debug)]
enum Message {
    Lines {
        text: String,
        lines: u64,
    },
    /// Requests a reply once all earlier lines are written, or cannot be.
    Flush(SyncSender<()>),
}

#[derive(Debug, Default)]
struct Counts {
    written: AtomicU64,
    lost: AtomicU64,
    /// True from a line that found the queue full until all queued lines are written.
    is_overflowing: AtomicBool,
}

impl AuditLog {
    /// Opens the file, creating it with mode 0600, and starts the thread.
    ///
    /// # Errors
    ///
    /// The file cannot be opened, or no thread can be started.
    pub fn start(path: &Path) -> Result<Self, AuditLogError> {
        let failed = |error| AuditLogError { path: path.to_owned(), error };
        open(path).map_err(failed)?;
        let counts = Arc::new(Counts::default());
        let (queue, messages) = sync_channel(QUEUE);
        let mut writer = Writer { path: path.to_owned(), counts: Arc::clone(&counts), is_failing: false };
        let thread = thread::Builder::new().name("audit".to_owned());
        thread.spawn(move || writer.run(&messages)).map_err(failed)?;
        Ok(Self { queue, counts })
    }

    /// Queues lines without blocking. If the queue is full, they are lost.
    pub(super) fn queue(&self, text: String, lines: u64) {
        if lines > 0 && self.queue.try_send(Message::Lines { text, lines }).is_err() {
            self.counts.lost.fetch_add(lines, Ordering::Relaxed);
            if !self.counts.is_overflowing.swap(true, Ordering::Relaxed) {
                tracing::warn!("the audit log is written too slowly; lines are lost and counted");
            }
        }
    }

    /// Waits until all lines so far are written, for at most `timeout`.
    pub(crate) fn flush(&self, timeout: Duration) {
        flush_queue(&self.queue, Message::Flush, timeout);
    }

    /// Returns the counts of lines for Prometheus.
    pub(crate) fn exposition(&self) -> String {
        let mut text = Exposition::default();
        let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let help = "Lines of the audit log that were written.";
        text.single("fetchwell_audit_lines_total", Type::Counter, help, count(&self.counts.written));
        let help = "Lines of the audit log that were lost.";
        text.single("fetchwell_audit_lines_lost_total", Type::Counter, help, count(&self.counts.lost));
        text.into_text()
    }
}

/// The state of the thread.
#[derive(Debug)]
struct Writer {
    path: PathBuf,
    counts: Arc<Counts>,
    /// True if the last write failed.
    is_failing: bool,
}

impl Writer {
    fn run(&mut self, messages: &Receiver<Message>) {
        while let Ok(message) = messages.recv() {
            self.write_next(message, messages);
        }
    }

    /// Writes a message with those that are queued behind it.
    fn write_next(&mut self, first: Message, messages: &Receiver<Message>) {
        let (mut batch, mut count, mut flushed) = (String::new(), 0, Vec::new());
        let mut next = Some(first);
        while let Some(message) = next {
            match message {
                Message::Lines { text, lines } => {
                    batch.push_str(&text);
                    count += lines;
                }
                Message::Flush(done) => flushed.push(done),
            }
            next = if batch.len() < MAX_BATCH { messages.try_recv().ok() } else { None };
        }
        let is_drained = batch.len() < MAX_BATCH;
        let is_written = self.write(&batch, count);
        if is_written && is_drained && self.counts.is_overflowing.swap(false, Ordering::Relaxed) {
            tracing::info!("the audit log is written fast enough again");
        }
        for done in flushed {
            let _ = done.try_send(());
        }
    }

    /// Appends lines to the file. Returns false if they are lost, or if there are none and the last ones were lost.
    fn write(&mut self, batch: &str, lines: u64) -> bool {
        if lines == 0 {
            return !self.is_failing;
        }
        match self.append(batch) {
            Ok(()) => {
                self.counts.written.fetch_add(lines, Ordering::Relaxed);
                if std::mem::take(&mut self.is_failing) {
                    tracing::info!("the audit log is written again");
                }
                true
            }
            Err(error) => {
                self.counts.lost.fetch_add(lines, Ordering::Relaxed);
                if !std::mem::replace(&mut self.is_failing, true) {
                    tracing::warn!(%error, "the audit log cannot be written; its lines are lost and counted");
                }
                false
            }
        }
    }

    fn append(&self, batch: &str) -> io::Result<()> {
        let mut file = open(&self.path)?;
        // A failed write can have left a part of a line.
        if self.is_failing {
            file.write_all(b"\n")?;
        }
        file.write_all(batch.as_bytes())
    }
}

/// Opens the file to append, with mode 0600 also if it existed before.
fn open(path: &Path) -> io::Result<File> {
    let file = private_options().append(true).create(true).open(path)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let metadata = file.metadata()?;
        if metadata.is_file() && metadata.permissions().mode() & 0o077 != 0 {
            file.set_permissions(PermissionsExt::from_mode(0o600))?;
        }
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::{CallAudit, ReadKind, ReadRecord};
    use crate::{Endpoint, RequestId};

    fn read(log: &AuditLog, key: &str) {
        let audit = CallAudit::new(log.clone(), RequestId::fresh(), Endpoint::tool("fetch"));
        let record = ReadRecord { source: Some("work"), connection: None, stream: Some("mail"), key };
        audit.write(Some("ci"), ReadKind::Record, [record]);
        log.flush(Duration::from_secs(10));
    }

    #[test]
    fn lines_are_json_whatever_a_key_contains() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.jsonl");
        let log = AuditLog::start(&path).unwrap();
        read(&log, "a\"\n{\u{202e}");
        let text = std::fs::read_to_string(&path).unwrap();
        let line: serde_json::Value = serde_json::from_str(text.strip_suffix('\n').unwrap()).unwrap();
        assert_eq!((&line["key"], &line["read"]), (&"a\"\n{\u{202e}".into(), &"record".into()), "{text}");
        assert_eq!((&line["caller"], &line["connection"]), (&"ci".into(), &serde_json::Value::Null));
    }

    #[test]
    #[cfg(unix)]
    fn failed_writes_are_counted_and_a_moved_file_is_created_again() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("logs/audit.jsonl");
        assert!(AuditLog::start(&path).unwrap_err().to_string().contains("create its folder"));
        std::fs::create_dir(folder.path().join("logs")).unwrap();
        std::fs::write(&path, "").unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).unwrap();
        let log = AuditLog::start(&path).unwrap();
        read(&log, "one");
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        std::fs::rename(folder.path().join("logs"), folder.path().join("old")).unwrap();
        read(&log, "two");
        assert!(log.exposition().contains("fetchwell_audit_lines_lost_total 1\n"), "{}", log.exposition());
        std::fs::create_dir(folder.path().join("logs")).unwrap();
        read(&log, "three");
        assert!(std::fs::read_to_string(&path).unwrap().contains("\"key\":\"three\""));
        assert!(log.exposition().contains("fetchwell_audit_lines_total 2\n"), "{}", log.exposition());
    }

    #[test]
    fn full_queue_is_noticed_after_a_failed_write_and_again_later() {
        let folder = tempfile::tempdir().unwrap();
        let (queue, messages) = sync_channel(1);
        let log = AuditLog { queue, counts: Arc::default() };
        let (path, counts) = (folder.path().join("audit.jsonl"), Arc::clone(&log.counts));
        let mut writer = Writer { path, counts, is_failing: false };
        // As a failed write counts them.
        log.counts.lost.fetch_add(3, Ordering::Relaxed);
        let is_overflowing = || log.counts.is_overflowing.load(Ordering::Relaxed);
        let overflow = || {
            log.queue("{}\n".to_owned(), 1);
            assert!(!is_overflowing());
            log.queue("{}\n".to_owned(), 1);
            assert!(is_overflowing());
        };
        overflow();
        // The thread catches up, and the next full queue is noticed again.
        writer.write_next(messages.recv().unwrap(), &messages);
        overflow();
        assert!(log.exposition().contains("fetchwell_audit_lines_lost_total 5\n"), "{}", log.exposition());
    }
}
