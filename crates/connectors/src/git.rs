//! The importer of git repositories: a record for each commit that `HEAD` reaches.
//!
//! `git log` runs with a fixed list of arguments. Settings of the repository that would start other programs or use the
//! network are overridden: signatures, file system monitors, pagers, and objects that a partial clone lacks.

use std::ffi::OsStr;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

use fetchwell_core::hex::hexadecimal;
use fetchwell_core::record::RecordData;
use sha2::{Digest, Sha256};

use super::ImportError;
use super::intake::Intake;
use super::item::FileRecord;

/// Stream of commits.
const STREAM: &str = "commits";

/// Maximum size of a commit message in bytes.
const MAX_COMMIT_BYTES: u64 = 16 * 1024 * 1024;

/// Number of fields before the message.
const FIELDS: usize = 7;

/// Arguments of git before the name of the repository.
const SETTINGS: [&str; 7] = [
    "--no-pager",
    "-c",
    "log.showSignature=false",
    "-c",
    "core.fsmonitor=false",
    "-c",
    "core.hooksPath=/dev/null",
];

/// Arguments of `git log`: hash, author, times, parents, names, and the message, each commit before a NUL.
const LOG: [&str; 10] = [
    "log",
    "-z",
    "--no-color",
    "--no-show-signature",
    "--no-notes",
    "--no-ext-diff",
    "--encoding=UTF-8",
    "--format=%H%x1f%an%x1f%ae%x1f%aI%x1f%cI%x1f%P%x1f%D%x1f%B",
    "HEAD",
    "--",
];

/// Arguments of git that list all names with their hashes.
const REFS: [&str; 2] = ["show-ref", "--head"];

/// Imports the commits of a repository.
///
/// # Errors
///
/// git is not installed or cannot read the repository, the store cannot be written, or the user stopped the import.
pub fn import_git(path: &Path, intake: &mut Intake<'_>) -> Result<(), ImportError> {
    let unreadable = |problem: String| ImportError::Unreadable { path: path.to_owned(), problem };
    let mut git = git_command(path).args(LOG).spawn().map_err(|error| start_error(path, &error))?;
    // Read at the same time, so that git never waits for it.
    let errors = git.stderr.take().map(|errors| thread::spawn(move || first_bytes(errors)));
    let read = match git.stdout.take() {
        Some(output) => import_git_log(&mut BufReader::with_capacity(1 << 16, output), path, intake),
        None => Err(unreadable("its output cannot be read".to_owned())),
    };
    if read.is_err() {
        // git would wait for its output to be read.
        let _ = git.kill();
    }
    let problem = errors.and_then(|reading| reading.join().ok()).unwrap_or_default();
    let status = git.wait().map_err(|error| unreadable(error.to_string()))?;
    read?;
    if status.success() { Ok(()) } else { Err(unreadable(format!("git says: {}", problem.trim()))) }
}

/// Returns the hashes of all names of a repository, as one digest. It changes whenever [`import_git`] could read
/// something else.
pub(crate) fn refs_digest(path: &Path) -> Result<String, ImportError> {
    let output = git_command(path).args(REFS).output().map_err(|error| start_error(path, &error))?;
    if !output.status.success() {
        let problem =
            String::from_utf8_lossy(output.stderr.get(..4 * 1024).unwrap_or(&output.stderr)).into_owned();
        return Err(ImportError::Unreadable {
            path: path.to_owned(),
            problem: format!("git says: {}", problem.trim()),
        });
    }
    Ok(hexadecimal(&Sha256::digest(&output.stdout)))
}

/// Returns git with the settings for a repository.
fn git_command(path: &Path) -> Command {
    let mut git = Command::new("git");
    git.args(SETTINGS)
        .args([OsStr::new("-C"), path.as_os_str()])
        .envs([
            ("GIT_OPTIONAL_LOCKS", "0"),
            ("GIT_NO_LAZY_FETCH", "1"),
            ("GIT_TERMINAL_PROMPT", "0"),
            ("LC_ALL", "C"),
        ])
        .env_remove("GIT_DIR")
        .env_remove("GIT_WORK_TREE")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    git
}

/// Returns the error of starting git.
fn start_error(path: &Path, error: &io::Error) -> ImportError {
    match error.kind() {
        io::ErrorKind::NotFound => ImportError::NoGit,
        _ => ImportError::Unreadable { path: path.to_owned(), problem: error.to_string() },
    }
}

/// Reads a stream to its end. Returns its start as text.
fn first_bytes(mut stream: impl Read) -> String {
    let mut start = Vec::new();
    let _ = stream.by_ref().take(4 * 1024).read_to_end(&mut start);
    let _ = io::copy(&mut stream, &mut io::sink());
    String::from_utf8_lossy(&start).into_owned()
}

/// Imports the output of `git log` in the format of [`import_git`].
///
/// # Errors
///
/// The output cannot be read, the store cannot be written, or the user stopped the import.
pub fn import_git_log(
    reader: &mut impl BufRead,
    path: &Path,
    intake: &mut Intake<'_>,
) -> Result<(), ImportError> {
    let mut bytes = Vec::new();
    for number in 1_u64.. {
        bytes.clear();
        let count = reader.by_ref().take(MAX_COMMIT_BYTES).read_until(0, &mut bytes);
        let count = count
            .map_err(|error| ImportError::Unreadable { path: path.to_owned(), problem: error.to_string() })?;
        if count == 0 {
            break;
        }
        let place = format!("commit {number}");
        if bytes.pop_if(|last| *last == 0).is_none() && count as u64 == MAX_COMMIT_BYTES {
            intake.reject(&place, &format!("it is longer than {MAX_COMMIT_BYTES} bytes"));
            skip_commit(reader, path)?;
            continue;
        }
        match commit_record(&String::from_utf8_lossy(&bytes)) {
            Some(record) => record.take_into(&place, intake)?,
            None => intake.reject(&place, "it has a control character in its headers"),
        }
    }
    Ok(())
}

/// Skips the rest of a commit that is too long.
fn skip_commit(reader: &mut impl BufRead, path: &Path) -> Result<(), ImportError> {
    reader
        .skip_until(0)
        .map(drop)
        .map_err(|error| ImportError::Unreadable { path: path.to_owned(), problem: error.to_string() })
}

/// Returns the record of a commit.
fn commit_record(text: &str) -> Option<FileRecord> {
    let fields: Vec<&str> = text.splitn(FIELDS + 1, '\x1F').collect();
    let [hash, author, email, date, committed, parents, names, message] = *fields.as_slice() else {
        return None;
    };
    let is_hash = hash.len() >= 40 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
    let (title, body) = message.trim().split_once('\n').unwrap_or((message.trim(), ""));
    let mut record = FileRecord {
        stream: STREAM.to_owned(),
        key: hash.to_owned(),
        data: RecordData::new(),
        emitted_at: Some(date.to_owned()),
        identity: None,
    };
    record.put_text("title", title);
    record.put_text("hash", hash);
    record.put_text("author", author);
    record.put_text("author_email", email);
    record.put_text("date", date);
    record.put_text("committed_at", committed);
    record.put_list("parents", parents.split_whitespace().collect());
    let names = names.split(", ").map(|name| name.trim_start_matches("HEAD -> ").trim_start_matches("tag: "));
    record.put_list("refs", names.filter(|name| !name.is_empty()).collect());
    record.put_text("body", body);
    is_hash.then_some(record)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_has_its_fields() {
        let hash = "a".repeat(40);
        let text = format!(
            "{hash}\x1FAnn\x1Fann@x.test\x1F2026-04-01T10:00:00+02:00\x1F2026-04-02T10:00:00Z\x1Fp q\x1FHEAD -> main, tag: v1\x1FFix the ferry\n\nIt \x1F sank.\n"
        );
        let record = commit_record(&text).unwrap();
        assert_eq!(
            (record.key.as_str(), record.data["title"].as_str()),
            (hash.as_str(), Some("Fix the ferry"))
        );
        assert_eq!(record.data["refs"], serde_json::json!(["main", "v1"]));
        assert_eq!(record.data["body"], "It \x1F sank.");
        assert!(commit_record("abc\x1Fx").is_none());
    }
}
