//! The words that tesseract prints as a table (TSV), with their confidence.
//!
//! A row has twelve fields: its level, the numbers of the page, block, paragraph, line and word, four of the place, the confidence
//! from 0 to 100, and the text. Rows of level 5 are words.

/// Names of the first fields of the table.
const HEADER: &str = "level\tpage_num\tblock_num\tpar_num\tline_num\tword_num\t";

/// Number of fields of a row.
const FIELDS: usize = 12;

/// Problem of a text that is no such table.
const GARBLED: &str = "it prints something other than a table of words";

/// Level of a page.
const PAGE: &str = "1";

/// Level of a word.
const WORD: &str = "5";

/// The text of pages, with the confidence of its words.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct RecognizedText {
    /// Text of all pages: words with spaces, lines, and an empty line between paragraphs.
    pub(crate) text: String,
    /// Number of pages in the table, with and without words.
    pub(super) pages: usize,
    words: u32,
    /// Sum of the confidence of all words, each from 0 to 100.
    confidence: f64,
}

/// Returns the text of the words that tesseract prints for a picture.
///
/// # Errors
///
/// The text says that this is no table of words.
pub fn recognized_words(table: &str) -> Result<String, String> {
    RecognizedText::parse(table).map(|found| found.text)
}

/// Place of a word: its page, block, paragraph and line.
type Place = [u32; 4];

impl RecognizedText {
    /// Parses the table of one picture.
    ///
    /// # Errors
    ///
    /// The text is no such table.
    pub(super) fn parse(table: &str) -> Result<Self, String> {
        let mut rows = table.lines();
        rows.next().filter(|header| header.starts_with(HEADER)).ok_or(GARBLED)?;
        let (mut found, mut last) = (Self::default(), None);
        for row in rows {
            let fields: Vec<&str> = row.splitn(FIELDS, '\t').collect();
            let [level, page, block, paragraph, line, _, _, _, _, _, confidence, word] = *fields.as_slice()
            else {
                return Err(GARBLED.to_owned());
            };
            if level != WORD {
                found.pages += usize::from(level == PAGE);
                continue;
            }
            let mut place: Place = [0; 4];
            for (part, text) in place.iter_mut().zip([page, block, paragraph, line]) {
                *part = text.parse().map_err(|_error| GARBLED)?;
            }
            let confidence: f64 = confidence.parse().map_err(|_error| GARBLED)?;
            if !(0.0..=100.0).contains(&confidence) {
                return Err(GARBLED.to_owned());
            }
            let word: String = word.chars().filter(|character| !character.is_control()).collect();
            if !word.trim().is_empty() {
                found.push(last.replace(place), place, word.trim());
                found.words = found.words.saturating_add(1);
                found.confidence += confidence;
            }
        }
        Ok(found)
    }

    /// Appends a word behind the last one.
    fn push(&mut self, last: Option<Place>, place: Place, word: &str) {
        let separator = match (last, place) {
            (None, _) => "",
            (Some(last), place) if last == place => " ",
            (Some([page, block, paragraph, _]), [p, b, q, _]) if [page, block, paragraph] == [p, b, q] => {
                "\n"
            }
            _ => "\n\n",
        };
        self.text.push_str(separator);
        self.text.push_str(word);
    }

    /// Adds the words of another page to the mean, and returns its text.
    pub(crate) fn add(&mut self, page: Self) -> String {
        self.words = self.words.saturating_add(page.words);
        self.confidence += page.confidence;
        page.text
    }

    /// Returns the mean confidence of all words from 0 to 100, with one decimal. `None` without a word.
    pub(crate) fn mean_confidence(&self) -> Option<f64> {
        let words = f64::from(self.words);
        (self.words > 0).then(|| (self.confidence / words * 10.0).round() / 10.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the table of rows with these places, confidences and words.
    fn table(rows: &[(&str, &str, &str)]) -> String {
        let rows = rows.iter().map(|(place, confidence, word)| {
            format!("{}\t1\t0\t0\t9\t9\t{confidence}\t{word}\n", place.replace(' ', "\t"))
        });
        format!("{HEADER}left\ttop\twidth\theight\tconf\ttext\n{}", rows.collect::<String>())
    }

    #[test]
    fn words_become_lines_and_paragraphs() {
        let found = RecognizedText::parse(&table(&[
            ("1 1 0 0 0", "-1", ""),
            ("5 1 1 1 1", "90.5", "The"),
            ("5 1 1 1 1", "80.0", "fer\u{1b}ry\u{7}"),
            ("5 1 1 1 2", "70", "\"sails"),
            ("5 1 1 1 2", "95", " "),
            ("4 1 1 2 0", "-1", ""),
            ("5 1 1 2 1", "60", "at"),
            ("5 1 2 1 1", "50", "7\t8"),
            ("5 2 1 1 1", "0", "Page"),
        ]))
        .unwrap();
        assert_eq!(found.text, "The ferry\n\"sails\n\nat\n\n78\n\nPage");
        assert_eq!((found.mean_confidence(), found.pages), (Some(58.4), 1));
        let none = RecognizedText::parse(&table(&[("1 1 0 0 0", "-1", "")])).unwrap();
        assert_eq!((none.text.as_str(), none.mean_confidence()), ("", None));
    }

    #[test]
    fn garbage_is_no_table() {
        let header = table(&[]);
        for text in [
            String::new(),
            "The ferry sails".to_owned(),
            format!("{header}5\t1\t1"),
            table(&[("5 1 1 1 1", "NaN", "x")]),
            table(&[("5 1 1 1 1", "101", "x")]),
            table(&[("5 1 -1 1 1", "10", "x")]),
            table(&[("5 1 1 1 99999999999", "10", "x")]),
        ] {
            assert!(RecognizedText::parse(&text).is_err(), "{text}");
        }
    }
}
