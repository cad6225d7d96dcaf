//! The calls of tesseract, with their limits.

use std::io;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use fetchwell_core::fit::clip_line;
use fetchwell_core::lru::{LruCache, LruLimits};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::super::item::{FileRecord, OCR_CONFIDENCE, UNREAD_PAGES};
use super::allowance::OcrAllowance;
use super::languages::OcrLanguages;
use super::measure::picture_pages;
use super::process::{Permits, ProgramError, ProgramLimits, run_program};
use super::words::RecognizedText;

/// Maximum time for a page.
const MAX_PAGE_TIME: Duration = Duration::from_secs(120);

/// Maximum time for all pages of a file.
const MAX_FILE_TIME: Duration = Duration::from_secs(30 * 60);

/// Maximum size of the output for a picture in bytes.
const MAX_OUTPUT_BYTES: u64 = 64 * 1024 * 1024;

/// Maximum memory of a program in bytes.
const MAX_MEMORY_BYTES: u64 = 1536 * 1024 * 1024;

/// Maximum number of such programs at once, which may take 6 GiB together.
const MAX_PROCESSES: u64 = 4;

/// Limits of a call that reads no picture.
const QUESTION_LIMITS: ProgramLimits = ProgramLimits {
    time: Duration::from_secs(20),
    output_bytes: 1024 * 1024,
    memory_bytes: Some(MAX_MEMORY_BYTES),
};

/// Maximum size of the error message of a program that is shown, in bytes.
const MAX_SAID_BYTES: usize = 200;

/// Maximum size of the texts that are kept for equal pictures, in bytes.
const MAX_CACHE_BYTES: u64 = 8 * 1024 * 1024;

/// Size of a kept text beside its bytes.
const ENTRY_BYTES: usize = 200;

/// Name of the program that draws the pages of PDF documents.
pub(super) const PDFTOPPM: &str = "pdftoppm";

/// Name of the data with which tesseract finds out how a page is turned.
const ORIENTATION: &str = "osd";

/// Permits for the programs of all threads.
static PROCESSES: Permits = Permits::new(MAX_PROCESSES);

/// The commands that install the programs.
const INSTALL: (&str, &str) = if cfg!(target_os = "macos") {
    ("brew install tesseract", "brew install poppler")
} else if cfg!(windows) {
    ("scoop install tesseract", "scoop install poppler")
} else {
    ("apt-get install tesseract-ocr", "apt-get install poppler-utils")
};

/// The reason why no text is recognized.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OcrError {
    /// tesseract is not on the `PATH`.
    #[error(
        "text recognition needs tesseract, which is not installed or not in PATH; install it with `{}`",
        INSTALL.0
    )]
    NoTesseract,
    /// pdftoppm is not on the `PATH`.
    #[error(
        "text recognition of scanned pages needs pdftoppm, which is not installed or not in PATH; install it with `{}`",
        INSTALL.1
    )]
    NoPdftoppm,
    /// tesseract has no data for a language.
    #[error("tesseract has no data for the language `{language}`; {}, or name another one: it has {installed}", install_language(.language))]
    NoLanguage {
        /// Name that was asked for.
        language: String,
        /// Names of the installed languages, separated by commas.
        installed: String,
    },
    /// tesseract does not answer as it should.
    #[error("tesseract cannot be used: {0}; run `tesseract --list-langs` to check it")]
    Broken(String),
}

/// Returns the remedy for a picture that is not recognized.
pub(crate) fn picture_hint() -> String {
    format!("`--ocr` (`ocr = true`) recognizes text in pictures; it needs tesseract (`{}`)", INSTALL.0)
}

/// Returns the remedy for a document of scanned pages that are not recognized.
pub(crate) fn pdf_hint() -> String {
    let (tesseract, pdftoppm) = INSTALL;
    format!(
        "`--ocr` (`ocr = true`) recognizes the text; it needs tesseract (`{tesseract}`) and pdftoppm (`{pdftoppm}`)"
    )
}

/// Returns the command that installs the data of a language.
fn install_language(language: &str) -> String {
    if cfg!(target_os = "macos") {
        "install all languages with `brew install tesseract-lang`".to_owned()
    } else if cfg!(windows) || language.contains('/') {
        format!("put {language}.traineddata into its folder `tessdata`")
    } else {
        let package = language.to_ascii_lowercase().replace('_', "-");
        format!("install it with `apt-get install tesseract-ocr-{package}`")
    }
}

/// The text recognition of an import.
#[derive(Debug)]
pub struct Recognizer {
    languages: OcrLanguages,
    stop: Arc<AtomicBool>,
    programs: Arc<Programs>,
    /// Pages and time of the files that are recognized. Without it, each file has its own.
    allowance: Option<Arc<OcrAllowance>>,
}

/// The state of the programs of an import, and the texts that they recognized.
#[derive(Debug)]
struct Programs {
    /// Answer of the installed tesseract, from the first use.
    installed: OnceLock<Result<Installed, OcrError>>,
    /// True if pdftoppm was needed and is missing.
    lacks_pdftoppm: AtomicBool,
    /// Texts by the SHA-256 of the pictures. Many messages have the same logo.
    recognized: LruCache<[u8; 32], RecognizedText>,
}

#[derive(Debug, Clone, Copy)]
struct Installed {
    /// True if tesseract can find out how a page is turned.
    finds_orientation: bool,
}

/// The time that is left for a file.
#[derive(Debug)]
pub(super) struct FileTime(Instant);

impl FileTime {
    /// Returns the maximum time of this number of pages.
    ///
    /// # Errors
    ///
    /// No time is left.
    pub(super) fn for_pages(&self, pages: usize) -> Result<Duration, String> {
        let left = self.0.saturating_duration_since(Instant::now());
        let pages = u32::try_from(pages).unwrap_or(u32::MAX);
        if left.is_zero() {
            return Err(format!("the file takes longer than {} minutes", MAX_FILE_TIME.as_secs() / 60));
        }
        Ok(left.min(MAX_PAGE_TIME.saturating_mul(pages)))
    }
}

impl Recognizer {
    /// Creates the text recognition of an import. Nothing is started before the first use. Setting `stop` ends it.
    #[must_use]
    pub fn new(languages: OcrLanguages, stop: Arc<AtomicBool>) -> Self {
        let weight = |_key: &[u8; 32], found: &RecognizedText| ENTRY_BYTES + found.text.len();
        let recognized = LruCache::with_weights(LruLimits::new(MAX_CACHE_BYTES), weight);
        let programs =
            Programs { installed: OnceLock::new(), lacks_pdftoppm: AtomicBool::new(false), recognized };
        Self { languages, stop, programs: Arc::new(programs), allowance: None }
    }

    /// Returns the recognition of files that share an allowance.
    pub(crate) fn within(&self, allowance: &Arc<OcrAllowance>) -> Self {
        let (languages, stop) = (self.languages.clone(), Arc::clone(&self.stop));
        Self { languages, stop, programs: Arc::clone(&self.programs), allowance: Some(Arc::clone(allowance)) }
    }

    /// Begins the time of a file.
    pub(super) fn start_file(&self) -> FileTime {
        let left = self.allowance.as_ref().map_or(MAX_FILE_TIME, |allowance| allowance.time_left());
        FileTime(Instant::now() + left.min(MAX_FILE_TIME))
    }

    /// Counts a page that is recognized next.
    ///
    /// # Errors
    ///
    /// The allowance of the files has no page or no time left, which the text says.
    pub(super) fn take_page(&self) -> Result<(), String> {
        self.allowance.as_ref().map_or(Ok(()), |allowance| allowance.take_page())
    }

    /// Checks that tesseract is installed and has the languages.
    ///
    /// # Errors
    ///
    /// The program or the data of a language is missing, or it does not answer.
    pub fn check(&self) -> Result<(), OcrError> {
        self.installed().map(drop)
    }

    /// Returns true if a program or a language was missing, so that another import may recognize what this one does not.
    pub(crate) fn is_unavailable(&self) -> bool {
        let Programs { installed, lacks_pdftoppm, .. } = &*self.programs;
        installed.get().is_some_and(Result::is_err) || lacks_pdftoppm.load(Ordering::Relaxed)
    }

    /// Returns true if the user stopped the import.
    pub(super) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Sets the fields of a record with recognized text: the languages, the mean confidence of the words, and the pages that could
    /// not be recognized.
    pub(crate) fn put_fields(&self, record: &mut FileRecord, confidence: Option<f64>, unread: Vec<String>) {
        record.put_text("ocr_languages", &self.languages.to_string());
        if let Some(confidence) = confidence {
            record.data.insert(OCR_CONFIDENCE.to_owned(), Value::from(confidence));
        }
        record.put_list(UNREAD_PAGES, unread);
    }

    fn installed(&self) -> Result<Installed, OcrError> {
        self.programs.installed.get_or_init(|| self.ask()).clone()
    }

    /// Asks tesseract for its languages.
    fn ask(&self) -> Result<Installed, OcrError> {
        let mut command = own_group("tesseract");
        let answer = run_program(command.arg("--list-langs"), Vec::new(), QUESTION_LIMITS, Some(&self.stop));
        let answer = answer.map_err(|error| match error {
            ProgramError::Missing => OcrError::NoTesseract,
            error => OcrError::Broken(describe(&error, QUESTION_LIMITS)),
        })?;
        let text = String::from_utf8_lossy(&answer);
        // The first line is a heading.
        let names: Vec<&str> = text.lines().skip(1).map(str::trim).filter(|name| !name.is_empty()).collect();
        if !text.starts_with("List of available languages") {
            return Err(OcrError::Broken("it lists no languages".to_owned()));
        }
        for language in self.languages.names() {
            if !names.contains(&language) {
                let known: Vec<&str> = names.iter().copied().filter(|name| *name != ORIENTATION).collect();
                let installed = if known.is_empty() {
                    "none".to_owned()
                } else {
                    clip_line(&known.join(", "), MAX_SAID_BYTES)
                };
                return Err(OcrError::NoLanguage { language: language.to_owned(), installed });
            }
        }
        Ok(Installed { finds_orientation: names.contains(&ORIENTATION) })
    }

    /// Recognizes the text of a picture. `resolution` is its number of pixels per inch, if it is known.
    ///
    /// # Errors
    ///
    /// The picture is too large or broken, or tesseract is missing, fails, or exceeds a limit.
    pub(super) fn recognize(
        &self,
        picture: Vec<u8>,
        resolution: Option<u32>,
        time: Duration,
    ) -> Result<RecognizedText, String> {
        let installed = self.installed().map_err(|error| error.to_string())?;
        let hash: [u8; 32] = Sha256::digest(&picture).into();
        if let Some(found) = self.programs.recognized.get(&hash) {
            return Ok(found);
        }
        let mut command = own_group("tesseract");
        command.args(["stdin", "stdout", "-c", "tessedit_create_tsv=1", "-l", &self.languages.to_string()]);
        command.args(["--psm", if installed.finds_orientation { "1" } else { "3" }]);
        if let Some(resolution) = resolution {
            command.args(["--dpi", &resolution.to_string()]);
        }
        let table = self.run(&mut command, picture, time, MAX_OUTPUT_BYTES)?;
        let found = RecognizedText::parse(&String::from_utf8_lossy(&table))
            .map_err(|problem| OcrError::Broken(problem).to_string())?;
        if found.pages == 0 {
            Err("tesseract cannot read it: it may be damaged".to_owned())
        } else {
            self.programs.recognized.insert(hash, found.clone());
            Ok(found)
        }
    }

    /// Recognizes the text of all pages of a picture file. Returns it with the number of pages.
    pub(super) fn recognize_file(&self, picture: Vec<u8>) -> Result<(RecognizedText, usize), String> {
        let pages = picture_pages(&picture)?;
        (0..pages).try_for_each(|_page| self.take_page())?;
        let time = self.start_file().for_pages(pages)?;
        Ok((self.recognize(picture, None, time)?, pages))
    }

    /// Runs a program as soon as there is a permit.
    ///
    /// # Errors
    ///
    /// The text says why it failed.
    pub(super) fn run(
        &self,
        command: &mut Command,
        input: Vec<u8>,
        time: Duration,
        output_bytes: u64,
    ) -> Result<Vec<u8>, String> {
        let limits = ProgramLimits { time, output_bytes, memory_bytes: Some(MAX_MEMORY_BYTES) };
        let name = command.get_program().to_string_lossy().into_owned();
        let _permit = PROCESSES.acquire();
        let start = Instant::now();
        let outcome = run_program(command, input, limits, Some(&self.stop));
        self.allowance.iter().for_each(|allowance| allowance.use_time_since(start));
        outcome.map_err(|error| match error {
            ProgramError::Missing if name == PDFTOPPM => {
                self.programs.lacks_pdftoppm.store(true, Ordering::Relaxed);
                OcrError::NoPdftoppm.to_string()
            }
            error => format!("{name} cannot read it: {}", describe(&error, limits)),
        })
    }
}

/// Returns a program that leads a process group and uses one core. Several run at once.
pub(super) fn own_group(name: &str) -> Command {
    let mut command = Command::new(name);
    command.env("OMP_THREAD_LIMIT", "1").env("LC_ALL", "C.UTF-8");
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    command
}

/// Returns the reason for the failure of a program.
fn describe(error: &ProgramError, limits: ProgramLimits) -> String {
    match error {
        ProgramError::Missing => io::Error::from(io::ErrorKind::NotFound).to_string(),
        ProgramError::Io(error) => error.to_string(),
        ProgramError::Timeout => format!("it takes longer than {} s", limits.time.as_secs()),
        ProgramError::TooMuchOutput => format!("it prints more than {} bytes", limits.output_bytes),
        ProgramError::Stopped => "the import was stopped".to_owned(),
        ProgramError::Failed(status, said) => match clip_line(said, MAX_SAID_BYTES) {
            said if said.is_empty() => format!("it ended with {status}"),
            said => format!("it says: {said}"),
        },
    }
}
