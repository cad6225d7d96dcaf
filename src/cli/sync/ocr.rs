//! The flags of text recognition, which commands that import files share.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::Args;
use fetchwell_connectors::{ImportKind, ImportOptions, OcrError, OcrLanguages, Recognizer};
use fetchwell_core::terminal::output::note;

use crate::app::failure::Failure;

/// Text recognition of pictures and scanned pages.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct OcrArgs {
    /// Recognize the text of pictures (PNG, JPEG, TIFF) and of scanned pages in PDF documents, also of those attached to messages,
    /// with the program tesseract.
    #[arg(long)]
    ocr: bool,
    /// The languages of such text by the names of tesseract, such as `eng+deu` [default: `eng`]
    #[arg(long, value_name = "LANG", requires = "ocr")]
    ocr_language: Option<OcrLanguages>,
}

impl OcrArgs {
    /// Sets the options of an import, if the command asks for text recognition.
    pub(crate) fn apply(&self, options: &mut ImportOptions) {
        if self.ocr {
            options.ocr = true;
            options.ocr_languages = self.ocr_language.clone().unwrap_or_default();
        }
    }

    /// Returns the text recognition of a command that asks for one. Setting `stop` ends it.
    pub(crate) fn recognizer(&self, stop: &Arc<AtomicBool>) -> Option<Arc<Recognizer>> {
        let mut options = ImportOptions::default();
        self.apply(&mut options);
        options.recognizer(stop)
    }

    /// Checks that the kind of an import has text recognition, if the command asks for it.
    pub(crate) fn check_kind(&self, kind: ImportKind) -> Result<(), Failure> {
        let mut options = ImportOptions::default();
        self.apply(&mut options);
        match kind.unused_option(&options) {
            Some(option) => {
                Err(Failure::usage(&format_args!("--{option} does not apply to imports of kind {kind}")))
            }
            None => Ok(()),
        }
    }

    /// Checks that tesseract has the languages, if the command asks for text recognition. Without tesseract, files that need it
    /// are rejected and all others imported.
    pub(crate) fn check_program(&self) -> Result<(), Failure> {
        if !self.ocr {
            return Ok(());
        }
        let languages = self.ocr_language.clone().unwrap_or_default();
        match Recognizer::new(languages, Arc::default()).check() {
            Ok(()) => Ok(()),
            Err(error @ OcrError::NoTesseract) => {
                note(&format_args!("warning: {error}"));
                Ok(())
            }
            Err(error) => Err(Failure::new(error.to_string())),
        }
    }
}
