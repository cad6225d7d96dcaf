//! The languages of text recognition, by the names of tesseract: `eng`, `chi_sim`, `script/Latin`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Language if none is named.
const DEFAULT: &str = "eng";

/// Maximum number of languages.
const MAX_LANGUAGES: usize = 10;

/// Maximum length of the name of a language in bytes.
const MAX_NAME_BYTES: usize = 40;

/// Languages in the order in which tesseract tries them. Empty stands for English.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(try_from = "Vec<String>", into = "Vec<String>")]
pub struct OcrLanguages(Vec<String>);

/// The error for a text that names no languages.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum InvalidOcrLanguage {
    /// The name cannot be one of a language of tesseract.
    #[error("`{0}` is no name of a language of tesseract; write names such as `eng` or `eng+deu`")]
    Name(String),
    /// There are too many languages.
    #[error("there are more than {MAX_LANGUAGES} languages")]
    TooMany,
}

impl OcrLanguages {
    /// Returns true if no language is named.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the names of the languages: those that were set, or English.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        let default = self.0.is_empty().then_some(DEFAULT);
        self.0.iter().map(String::as_str).chain(default)
    }
}

impl FromStr for OcrLanguages {
    type Err = InvalidOcrLanguage;

    fn from_str(text: &str) -> Result<Self, InvalidOcrLanguage> {
        Self::try_from(vec![text.to_owned()])
    }
}

impl TryFrom<Vec<String>> for OcrLanguages {
    type Error = InvalidOcrLanguage;

    /// Takes names, and texts of several with `+` between them. A name that repeats counts once.
    fn try_from(texts: Vec<String>) -> Result<Self, InvalidOcrLanguage> {
        let mut names: Vec<String> = Vec::new();
        for name in texts.iter().flat_map(|text| text.split('+')).map(str::trim) {
            if !is_name(name) {
                return Err(InvalidOcrLanguage::Name(
                    name.chars().filter(|shown| !shown.is_control()).take(MAX_NAME_BYTES).collect(),
                ));
            }
            if !names.iter().any(|known| known == name) {
                names.push(name.to_owned());
            }
        }
        if names.len() > MAX_LANGUAGES { Err(InvalidOcrLanguage::TooMany) } else { Ok(Self(names)) }
    }
}

impl From<OcrLanguages> for Vec<String> {
    fn from(languages: OcrLanguages) -> Self {
        languages.0
    }
}

impl fmt::Display for OcrLanguages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.names().collect::<Vec<_>>().join("+"))
    }
}

/// Returns true for a name that is neither an option of the program nor a path out of its folder.
fn is_name(name: &str) -> bool {
    name.len() <= MAX_NAME_BYTES
        && name.starts_with(|first: char| first.is_ascii_alphabetic())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn languages_are_names_of_tesseract() {
        for (text, expect) in [
            ("eng", Ok("eng")),
            ("eng+deu + eng", Ok("eng+deu")),
            ("chi_sim_vert+script/Latin", Ok("chi_sim_vert+script/Latin")),
            ("", Err("``")),
            ("eng,deu", Err("`eng,deu`")),
            ("-c", Err("`-c`")),
            ("../../etc/x", Err("`../../etc/x`")),
            ("en\u{1b}g", Err("`eng`")),
            ("a+b+c+d+e+f+g+h+i+j+k", Err("more than 10 languages")),
        ] {
            let languages = text.parse::<OcrLanguages>();
            match (languages, expect) {
                (Ok(languages), Ok(expect)) => assert_eq!(languages.to_string(), expect),
                (Err(error), Err(expect)) => assert!(error.to_string().contains(expect), "{error}"),
                (languages, _) => panic!("{text}: {languages:?}"),
            }
        }
        assert_eq!(OcrLanguages::default().to_string(), "eng");
    }
}
