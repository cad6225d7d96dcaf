//! Errors of installing a model. Each message names the remedy.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::EmbeddingError;

/// Reason why a model was not installed. No variant has a token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InstallError {
    /// The text is not the name of a repository.
    #[error(
        "`{0}` is not the name of a model; write ORGANIZATION/NAME, `all-MiniLM-L6-v2` or `paraphrase-multilingual-MiniLM-L12-v2`"
    )]
    InvalidName(String),
    /// The text is not a branch, tag or commit.
    #[error("`{0}` is not a branch, tag or commit; leave --revision out for `main`")]
    InvalidRevision(String),
    /// The URL is not the page of a repository.
    #[error(
        "`{0}` is not the page of a model, such as https://huggingface.co/ORGANIZATION/NAME; download the files by hand and name their folder with --from"
    )]
    InvalidPage(String),
    /// The URL of the hub cannot be used.
    #[error(
        "HF_ENDPOINT or --from is not the https URL of a hub ({0}); plain http is for this machine alone"
    )]
    InvalidEndpoint(String),
    /// No request may be sent, and the model is not among the files that other programs downloaded.
    #[error(
        "HF_HUB_OFFLINE is set and the model is not in the cache of the hub (HF_HOME); unset it, or name a folder with --from"
    )]
    Offline,
    /// The token has characters that a header cannot have.
    #[error(
        "the token in HF_TOKEN or in the token file has characters that a token cannot have; create another one on the hub"
    )]
    InvalidToken,
    /// The hub cannot be reached, or breaks off again and again.
    #[error(
        "{place} cannot be reached ({problem}); check the network and HF_ENDPOINT and run the command again, which continues, or download the files by hand and name them with --from"
    )]
    Unreachable {
        /// Host of the hub.
        place: String,
        /// Description of the failure.
        problem: String,
    },
    /// The hub sends less than a kilobyte a second.
    #[error(
        "{place} sends less than {per_minute} bytes a minute; run the command again later, which continues, or choose a mirror with HF_ENDPOINT"
    )]
    Slow {
        /// Host of the hub.
        place: String,
        /// Minimum number of bytes in a minute.
        per_minute: u64,
    },
    /// The hub has no such repository or revision, or shows it to members only.
    #[error("{place} has no {subject}; check the name and the revision; a private one needs HF_TOKEN")]
    NotFound {
        /// Host of the hub.
        place: String,
        /// Name of the repository, the revision or the file.
        subject: String,
    },
    /// The hub wants a token, or another one.
    #[error(
        "{place} refuses access to {repository} (status {status}); check the name, or set HF_TOKEN to a token that may read it"
    )]
    Unauthorized {
        /// Host of the hub.
        place: String,
        /// Name of the repository.
        repository: String,
        /// HTTP status of the reply.
        status: u16,
    },
    /// The authors of the model ask for consent first.
    #[error(
        "{repository} is open only to those who accept its terms; accept them on {page}, and set HF_TOKEN to a token of that account"
    )]
    Gated {
        /// Name of the repository.
        repository: String,
        /// Page on which the terms are accepted.
        page: String,
    },
    /// The hub limits requests.
    #[error("{place} limits requests; run the command again {}, which continues; a token in HF_TOKEN has higher limits", later(*.retry_after))]
    RateLimited {
        /// Host of the hub.
        place: String,
        /// Pause that the hub asked for.
        retry_after: Option<Duration>,
    },
    /// The hub answers with another status.
    #[error("{place} answers with status {status}; run the command again later, which continues")]
    Refused {
        /// Host of the hub.
        place: String,
        /// HTTP status of the reply.
        status: u16,
    },
    /// The answer is a web page.
    #[error(
        "{place} answers with a web page in place of {subject}; sign in to the network if it asks for that, and check HF_ENDPOINT"
    )]
    WebPage {
        /// Host of the hub.
        place: String,
        /// Name of the file or list.
        subject: String,
    },
    /// The answer is not that of a hub.
    #[error(
        "the answer of {place} is not that of a model hub ({problem}); check HF_ENDPOINT, which is normally not set"
    )]
    InvalidAnswer {
        /// Host of the hub.
        place: String,
        /// Description of what is wrong.
        problem: String,
    },
    /// A redirect leads to a host without https.
    #[error(
        "{place} redirects to {target}, where another machine can read and change the download; choose another hub with HF_ENDPOINT"
    )]
    RefusedRedirect {
        /// Host of the hub.
        place: String,
        /// Scheme and host of the target.
        target: String,
    },
    /// The repository or folder lacks a file.
    #[error(
        "there is no {file} in {place}; choose a model that has `tokenizer.json`, and `model.onnx` there or in its folder `onnx`"
    )]
    MissingFile {
        /// Name of the repository, or path of the folder.
        place: String,
        /// Name of the file.
        file: &'static str,
    },
    /// A file has another size than the hub states.
    #[error(
        "{file} has {found} bytes, and {expected} are stated; run the command again, and if it fails again, choose another hub or revision"
    )]
    WrongSize {
        /// Name of the file.
        file: String,
        /// Stated size in bytes.
        expected: u64,
        /// Size in bytes, or the size that was stated elsewhere.
        found: u64,
    },
    /// A file has another checksum than the hub states. It was deleted.
    #[error(
        "{file} has another checksum than the hub states, so it was damaged or replaced on the way and was deleted; run the command again, and if it fails again, choose another hub or revision"
    )]
    WrongChecksum {
        /// Name of the file.
        file: String,
    },
    /// A file is larger than a model that can be used.
    #[error("{file} has {bytes} bytes; the limit is {limit}; choose a smaller model")]
    TooLarge {
        /// Name of the file.
        file: String,
        /// Size in bytes.
        bytes: u64,
        /// Maximum size in bytes.
        limit: u64,
    },
    /// A file of a folder only points to large file storage.
    #[error("{} is only a pointer of git-lfs; run `git lfs pull` in its folder", .file.display())]
    OnlyPointer {
        /// Path of the file.
        file: PathBuf,
    },
    /// The disk is full.
    #[error("the disk is full: {} more bytes are needed for the model in {}; free them and run the command again, which continues", .bytes, .folder.display())]
    DiskFull {
        /// Folder of the models.
        folder: PathBuf,
        /// Number of bytes of the model that are not on the disk yet.
        bytes: u64,
    },
    /// A file cannot be read or written.
    #[error("{} cannot be used ({problem})", .path.display())]
    File {
        /// Path of the file or folder.
        path: PathBuf,
        /// Description of the problem.
        problem: String,
    },
    /// Another process installs the model.
    #[error("another fetchwell is installing a model into {}; wait for it, and run the command again", .folder.display())]
    Busy {
        /// Folder of the model.
        folder: PathBuf,
    },
    /// The folder was not installed by fetchwell, or was changed since.
    #[error("{} was not installed by this command; move it away, or name it with `path` of [embedding]", .folder.display())]
    ForeignFolder {
        /// Folder of the model.
        folder: PathBuf,
    },
    /// The folder of a model has no name that a model can have.
    #[error("{} has no name for the model; add one, such as `fetchwell embeddings install NAME --from FOLDER`", .place.display())]
    NoName {
        /// Path of the folder or file.
        place: PathBuf,
    },
    /// The downloaded model cannot be used.
    #[error(transparent)]
    Unusable(#[from] EmbeddingError),
}

impl InstallError {
    /// Returns the error of a file operation. On a full disk it says how many bytes of the model are missing.
    pub(super) fn io(path: &Path, error: &io::Error, missing_bytes: u64) -> Self {
        use io::ErrorKind::{QuotaExceeded, StorageFull};
        if matches!(error.kind(), StorageFull | QuotaExceeded) {
            let folder = path.parent().unwrap_or(path).to_owned();
            return Self::DiskFull { folder, bytes: missing_bytes };
        }
        Self::File { path: path.to_owned(), problem: error.to_string() }
    }

    /// Returns true if the same request may succeed soon.
    pub(super) fn is_transient(&self) -> bool {
        match self {
            Self::Unreachable { .. } => true,
            Self::Refused { status, .. } => *status >= 500,
            Self::RateLimited { retry_after, .. } => retry_after.is_some_and(|pause| pause <= MAX_PAUSE),
            _ => false,
        }
    }

    /// Returns the pause that the hub asks for.
    pub(super) fn pause(&self) -> Option<Duration> {
        match self {
            Self::RateLimited { retry_after, .. } => *retry_after,
            _ => None,
        }
    }
}

/// Longest pause that the command waits for by itself.
const MAX_PAUSE: Duration = Duration::from_secs(10);

fn later(retry_after: Option<Duration>) -> String {
    retry_after.map_or_else(|| "later".to_owned(), |pause| format!("in {} s", pause.as_secs().max(1)))
}
