//! The pages of a PDF document as pictures, which the program `pdftoppm` (poppler) draws one by one.

use std::io::Write;
use std::path::Path;

use serde::{Deserialize, Serialize};
use tempfile::NamedTempFile;

use super::measure::{MAX_PAGES, MAX_PIXELS};
use super::recognizer::{FileTime, PDFTOPPM, Recognizer, own_group};
use super::words::RecognizedText;

/// Resolution of pages in pixels per inch, which tesseract recommends.
const RESOLUTION: u32 = 300;

/// Minimum resolution. Text of the usual sizes cannot be recognized with less.
const MIN_RESOLUTION: u32 = 70;

/// Maximum number of pixels of a page that is drawn. A4 has 9 million at 300 pixels per inch.
const MAX_PAGE_PIXELS: f64 = 40_000_000.0;

/// Maximum size of the header of a drawn page in bytes.
const HEADER_BYTES: u64 = 64;

/// Points per inch.
const POINTS: f64 = 72.0;

/// A page of a document without text that can be read.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct PdfPage {
    /// Number of the page, from 1.
    pub(crate) number: usize,
    /// Width in points.
    pub(crate) width: f64,
    /// Height in points.
    pub(crate) height: f64,
}

/// The result of the recognition of pages.
#[derive(Debug, Default)]
pub(crate) struct RecognizedPages {
    /// Confidence of all pages. The text is in `texts`.
    pub(crate) all: RecognizedText,
    /// Numbers and texts of the pages that were recognized.
    pub(crate) texts: Vec<(usize, String)>,
    /// Pages that were not, each with the reason.
    pub(crate) problems: Vec<String>,
}

impl Recognizer {
    /// Recognizes the text of pages of a document. A page that fails is among the problems.
    ///
    /// # Errors
    ///
    /// A program or a language is missing, there are too many pages, or the user stopped the import.
    pub(crate) fn recognize_pages(
        &self,
        document: &[u8],
        pages: &[PdfPage],
    ) -> Result<RecognizedPages, String> {
        self.check().map_err(|error| error.to_string())?;
        if pages.len() > MAX_PAGES {
            let count = pages.len();
            return Err(format!(
                "text is recognized on at most {MAX_PAGES} pages of a document, and {count} have none; divide it"
            ));
        }
        let file =
            temporary(document).map_err(|error| format!("no temporary file can be written ({error})"))?;
        let (time, mut recognized) = (self.start_file(), RecognizedPages::default());
        for page in pages {
            if let Err(reason) = self.take_page() {
                recognized.problems.push(format!("page {} and those after it: {reason}", page.number));
                break;
            }
            match self.recognize_page(file.path(), page, &time) {
                Ok(found) => recognized.texts.push((page.number, recognized.all.add(found))),
                Err(reason) if self.is_stopped() => return Err(reason),
                Err(reason) => recognized.problems.push(format!("page {}: {reason}", page.number)),
            }
        }
        Ok(recognized)
    }

    fn recognize_page(&self, file: &Path, page: &PdfPage, time: &FileTime) -> Result<RecognizedText, String> {
        let resolution = resolution(page)?;
        let mut command = own_group(PDFTOPPM);
        let (number, shown) = (page.number.to_string(), resolution.to_string());
        command.args(["-f", &number, "-l", &number, "-r", &shown, "-gray", "-cropbox"]).arg(file);
        let picture = self.run(&mut command, Vec::new(), time.for_pages(1)?, MAX_PIXELS + HEADER_BYTES)?;
        if !picture.starts_with(b"P5") {
            return Err("pdftoppm draws no page".to_owned());
        }
        self.recognize(picture, Some(resolution), time.for_pages(1)?)
    }
}

/// Returns the resolution at which a page is drawn, in pixels per inch.
fn resolution(page: &PdfPage) -> Result<u32, String> {
    let is_within = |resolution: &u32| {
        let scale = f64::from(*resolution) / POINTS;
        page.width * scale * page.height * scale <= MAX_PAGE_PIXELS
    };
    (MIN_RESOLUTION..=RESOLUTION)
        .rev()
        .find(is_within)
        .ok_or_else(|| format!("it is too large: {:.0} x {:.0} points", page.width, page.height))
}

/// Writes a document to a file that only this user can read. Dropping it deletes it.
fn temporary(document: &[u8]) -> std::io::Result<NamedTempFile> {
    let mut file = NamedTempFile::with_prefix("fetchwell-")?;
    file.write_all(document)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_pages_have_a_lower_resolution() {
        for (width, height, expect) in [
            (595.0, 842.0, Some(300)),
            (1.0, 1.0, Some(300)),
            (0.0, 0.0, Some(300)),
            (2_384.0, 3_370.0, Some(160)),
            (14_400.0, 14_400.0, None),
            (f64::INFINITY, 1.0, None),
            (f64::NAN, 1.0, None),
        ] {
            assert_eq!(resolution(&PdfPage { number: 1, width, height }).ok(), expect, "{width}");
        }
    }
}
