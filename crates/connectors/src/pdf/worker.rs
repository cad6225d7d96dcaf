//! The process that reads a document.
//!
//! A document of a few kilobytes can expand to gigabytes or run for hours in any parser. `fetchwell read-pdf` therefore
//! reads it in a process of its own, with limits for its memory and time, and prints the text as JSON.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::super::documents::Document;
use super::super::item::{FileKind, FileRecord, Item};
use super::super::recognition::{
    Permits, ProgramError, ProgramLimits, RecognizedPages, Recognizer, pdf_hint, run_program,
};
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

/// Permits for the processes of all threads.
static PROCESSES: Permits = Permits::new(MAX_PROCESSES);

/// Reads a document. `program` is the program that reads it in a process of its own; without it, this process does. `recognizer`
/// reads pages without text.
pub(crate) fn read_pdf(
    item: &mut Item<'_>,
    program: Option<&Path>,
    recognizer: Option<&Recognizer>,
) -> Result<FileRecord, Problem> {
    let bytes = item.read_all()?;
    // The process that reads it takes the bytes.
    let copy = recognizer.map(|_| bytes.clone());
    let mut pdf = match program {
        Some(program) => read_in_process(program, bytes)?,
        None => extract_pdf(bytes)?,
    };
    let Some((recognizer, bytes)) = recognizer.zip(copy).filter(|_| !pdf.unread.is_empty()) else {
        return match &pdf.problem {
            Some(problem) => Err(problem.with_remark(&pdf_hint())),
            None => Ok(into_record(pdf, item)),
        };
    };
    let recognized = recognizer.recognize_pages(&bytes, &pdf.unread);
    let recognized = match (recognized, &pdf.problem) {
        (Ok(recognized), Some(problem)) if recognized.texts.is_empty() => {
            let reason = recognized.problems.into_iter().next().unwrap_or_default();
            return Err(problem.with_remark(&reason));
        }
        (Ok(recognized), _) => recognized,
        (Err(reason), Some(problem)) => return Err(problem.with_remark(&reason)),
        // The other pages have a text.
        (Err(reason), None) => RecognizedPages { problems: vec![reason], ..RecognizedPages::default() },
    };
    let RecognizedPages { all, texts, problems } = recognized;
    for (number, text) in texts {
        if let Some(page) = number.checked_sub(1).and_then(|at| pdf.texts.get_mut(at)) {
            *page = text;
        }
    }
    let mut record = into_record(pdf, item);
    recognizer.put_fields(&mut record, all.mean_confidence(), problems);
    Ok(record)
}

fn into_record(pdf: PdfText, item: &Item<'_>) -> FileRecord {
    let text = pdf.text();
    let PdfText { title, heading, author, subject, keywords, created, modified, pages, .. } = pdf;
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
    document.into_record(FileKind::Pdf, item)
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
    let limits = ProgramLimits { time: MAX_TIME, output_bytes: MAX_OUTPUT_BYTES, memory_bytes: None };
    let ended = || {
        Problem::too_large(
            "the process that reads it ended: it needs too much memory, or is broken in a new way",
        )
    };
    let not_started = |reason: &str| {
        Problem::new(SkipReason::Internal, format!("the process that reads it cannot be started{reason}"))
    };
    match run_program(Command::new(program).arg("read-pdf"), bytes, limits, None) {
        Ok(output) => serde_json::from_slice(&output).unwrap_or_else(|_error| Err(ended())),
        Err(ProgramError::Timeout) => {
            Err(Problem::too_large(format!("it takes longer than {} s to read", MAX_TIME.as_secs())))
        }
        Err(ProgramError::Missing) => Err(not_started("")),
        Err(ProgramError::Io(error)) => Err(not_started(&format!(" ({error})"))),
        Err(_) => Err(ended()),
    }
}
