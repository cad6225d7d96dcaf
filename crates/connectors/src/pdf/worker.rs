//! The process that reads a document.
//!
//! A document of a few kilobytes can expand to gigabytes or run for hours in any parser. `fetchwell read-pdf` therefore
//! reads it in a process of its own, with limits for its memory and time, and prints the text as JSON.

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use super::super::documents::Document;
use super::super::item::{FileKind, FileRecord, Item};
use super::super::skips::{Problem, SkipReason};
use super::extract::{PdfText, extract_pdf};

/// Maximum time for one document.
const MAX_TIME: Duration = Duration::from_secs(60);

/// Maximum size of the output of the process in bytes: the text as JSON.
const MAX_OUTPUT_BYTES: u64 = 128 * 1024 * 1024;

/// Memory that the process may use, in bytes.
const MAX_MEMORY_BYTES: u64 = 768 * 1024 * 1024;

/// Maximum memory of all such processes at once, in bytes.
const MAX_ALL_MEMORY_BYTES: u64 = 3 * 1024 * 1024 * 1024;

/// Maximum number of processes at once: 3 GiB / 768 MiB.
const MAX_PROCESSES: u64 = MAX_ALL_MEMORY_BYTES / MAX_MEMORY_BYTES;

/// Number of processes that run, of all threads.
static PROCESSES: Processes = Processes { running: Mutex::new(0), ended: Condvar::new() };

/// Counts the processes that run.
struct Processes {
    running: Mutex<u64>,
    ended: Condvar,
}

/// Permit for one process. Dropping it admits the next one.
struct ProcessPermit<'p>(&'p Processes);

impl Processes {
    /// Waits until fewer processes run than may.
    fn acquire(&self) -> ProcessPermit<'_> {
        let mut running = self.running.lock();
        self.ended.wait_while(&mut running, |running| *running >= MAX_PROCESSES);
        *running += 1;
        ProcessPermit(self)
    }
}

impl Drop for ProcessPermit<'_> {
    fn drop(&mut self) {
        *self.0.running.lock() -= 1;
        self.0.ended.notify_one();
    }
}

/// Reads a document. `program` is the program that reads it in a process of its own; without it, this process does.
pub(crate) fn read_pdf(item: &mut Item<'_>, program: Option<&Path>) -> Result<FileRecord, Problem> {
    let bytes = item.read_all()?;
    let pdf = match program {
        Some(program) => read_in_process(program, bytes)?,
        None => extract_pdf(bytes)?,
    };
    let PdfText { title, heading, author, subject, keywords, created, modified, pages, text } = pdf;
    let keywords = keywords.split([',', ';']).map(|word| word.trim().to_owned());
    let document = Document {
        title,
        heading,
        authors: vec![author],
        subject,
        keywords: keywords.filter(|word| !word.is_empty()).collect(),
        created,
        modified,
        count: Some(("pages", pages)),
        text,
        ..Document::default()
    };
    Ok(document.into_record(FileKind::Pdf, item))
}

/// Limits the memory of this process, on systems that can.
pub fn limit_pdf_memory() {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, Rlimit, setrlimit};
        let limit = Rlimit { current: Some(MAX_MEMORY_BYTES), maximum: Some(MAX_MEMORY_BYTES) };
        // Without the limit, the time is limited still.
        let _ = setrlimit(Resource::As, limit);
    }
}

fn read_in_process(program: &Path, bytes: Vec<u8>) -> Result<PdfText, Problem> {
    let _permit = PROCESSES.acquire();
    let mut child = Command::new(program)
        .arg("read-pdf")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| {
            Problem::new(
                SkipReason::Internal,
                format!("the process that reads it cannot be started ({error})"),
            )
        })?;
    let output = exchange(&mut child, bytes);
    // The process has ended, or is not needed any more.
    let _ = child.kill();
    let _ = child.wait();
    let output = output?;
    let answer: Result<PdfText, Problem> = serde_json::from_slice(&output).map_err(|_error| {
        Problem::too_large(
            "the process that reads it ended: it needs too much memory, or is broken in a new way",
        )
    })?;
    answer
}

/// Sends a document and receives the output, within the maximum time.
fn exchange(child: &mut Child, bytes: Vec<u8>) -> Result<Vec<u8>, Problem> {
    let (mut input, output) =
        child.stdin.take().zip(child.stdout.take()).ok_or("the process that reads it has no pipes")?;
    let (sender, received) = channel();
    let writing = thread::spawn(move || drop(input.write_all(&bytes)));
    let reading = thread::spawn(move || {
        let mut bytes = Vec::new();
        let read = output.take(MAX_OUTPUT_BYTES).read_to_end(&mut bytes);
        drop(sender.send(read.map(|_count| bytes)));
    });
    let answer = received.recv_timeout(MAX_TIME);
    let _ = child.kill();
    let _ = (writing.join(), reading.join());
    match answer {
        Ok(read) => read.map_err(|error| Problem::new(SkipReason::Internal, error.to_string())),
        Err(RecvTimeoutError::Timeout) => {
            Err(Problem::too_large(format!("it takes longer than {} s to read", MAX_TIME.as_secs())))
        }
        Err(RecvTimeoutError::Disconnected) => {
            Err(Problem::new(SkipReason::Internal, "the process that reads it ended"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_waits_while_the_maximum_runs() {
        let processes = Processes { running: Mutex::new(0), ended: Condvar::new() };
        let mut permits: Vec<ProcessPermit<'_>> = (0..MAX_PROCESSES).map(|_| processes.acquire()).collect();
        let (sender, admitted) = channel();
        thread::scope(|scope| {
            scope.spawn(|| {
                let permit = processes.acquire();
                sender.send(*processes.running.lock()).unwrap();
                drop(permit);
            });
            assert_eq!(admitted.recv_timeout(Duration::from_millis(50)), Err(RecvTimeoutError::Timeout));
            permits.pop();
            assert_eq!(admitted.recv(), Ok(MAX_PROCESSES));
        });
        drop(permits);
        assert_eq!(*processes.running.lock(), 0);
    }
}
