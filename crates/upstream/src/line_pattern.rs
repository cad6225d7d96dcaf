//! Forms of lines with a result, for tools that answer with text.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Form of a line, such as `- {title} ({id})`: literal text with the names of what stands between.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct LinePattern {
    written: String,
    /// Literal text before the first field.
    start: String,
    /// Fields, each with the literal text after it.
    fields: Vec<(LineField, String)>,
}

/// Part of a result in a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LineField {
    /// The id by which it is fetched.
    Id,
    /// Title of the record.
    Title,
    /// The text or a passage of it.
    Text,
    /// The link for a person.
    Url,
    /// The time at which it was written.
    Date,
    /// Text that is not used.
    Ignored,
}

/// Error of a text that is no form of a line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidLinePattern {
    /// A name in braces is unknown.
    #[error(
        "`{{{0}}}` is unknown; use {{id}}, {{title}}, {{text}}, {{url}}, {{date}} or {{}} for text to skip"
    )]
    UnknownField(String),
    /// The pattern has no id.
    #[error("it has no {{id}}, by which a result is fetched")]
    NoId,
    /// A name occurs twice.
    #[error("`{{{0}}}` occurs twice; write {{}} for text to skip")]
    RepeatedField(String),
    /// Two fields stand side by side.
    #[error(
        "two names follow each other without text between them, so that it is not known where the first one ends"
    )]
    Adjacent,
    /// A brace is not closed.
    #[error("a brace is not closed")]
    Unclosed,
}

impl LinePattern {
    /// Returns the fields of a line, or `None` for a line of another form. Each field ends where the literal text after it
    /// first occurs; the last one ends with the line.
    pub(crate) fn read<'a>(&self, line: &'a str) -> Option<Vec<(LineField, &'a str)>> {
        let mut rest = line.trim().strip_prefix(self.start.as_str())?;
        let mut read = Vec::with_capacity(self.fields.len());
        for (number, (field, after)) in self.fields.iter().enumerate() {
            let is_last = number + 1 == self.fields.len();
            let (text, remaining) = match (is_last, after.is_empty()) {
                (true, true) => (rest, ""),
                (true, false) => (rest.strip_suffix(after.as_str())?, ""),
                (false, _) => rest.split_once(after.as_str())?,
            };
            read.push((*field, text.trim()));
            rest = remaining;
        }
        let has_id = read.iter().any(|(field, text)| *field == LineField::Id && !text.is_empty());
        has_id.then_some(read)
    }
}

impl FromStr for LinePattern {
    type Err = InvalidLinePattern;

    fn from_str(written: &str) -> Result<Self, InvalidLinePattern> {
        let text = written.trim();
        let (start, mut rest) = text.split_once('{').ok_or(InvalidLinePattern::NoId)?;
        let mut fields: Vec<(LineField, String)> = Vec::new();
        loop {
            let (name, after) = rest.split_once('}').ok_or(InvalidLinePattern::Unclosed)?;
            let field = match name {
                "id" => LineField::Id,
                "title" => LineField::Title,
                "text" => LineField::Text,
                "url" => LineField::Url,
                "date" => LineField::Date,
                "" => LineField::Ignored,
                other => return Err(InvalidLinePattern::UnknownField(other.to_owned())),
            };
            if field != LineField::Ignored && fields.iter().any(|(known, _)| *known == field) {
                return Err(InvalidLinePattern::RepeatedField(name.to_owned()));
            }
            let Some((literal, next)) = after.split_once('{') else {
                fields.push((field, after.to_owned()));
                break;
            };
            if literal.is_empty() {
                return Err(InvalidLinePattern::Adjacent);
            }
            fields.push((field, literal.to_owned()));
            rest = next;
        }
        if !fields.iter().any(|(field, _)| *field == LineField::Id) {
            return Err(InvalidLinePattern::NoId);
        }
        Ok(Self { written: written.to_owned(), start: start.to_owned(), fields })
    }
}

impl TryFrom<String> for LinePattern {
    type Error = InvalidLinePattern;

    fn try_from(text: String) -> Result<Self, InvalidLinePattern> {
        text.parse()
    }
}

impl From<LinePattern> for String {
    fn from(pattern: LinePattern) -> Self {
        pattern.written
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn read<'a>(pattern: &str, line: &'a str) -> Option<Vec<&'a str>> {
        let fields = pattern.parse::<LinePattern>().unwrap().read(line)?;
        Some(fields.into_iter().map(|(_, text)| text).collect())
    }

    #[test]
    fn lines_are_read_by_their_form() {
        assert_eq!(read("- {title} ({id})", "- Tax plan (n/7)"), Some(vec!["Tax plan", "n/7"]));
        assert_eq!(read("- {title} ({id})", "  - A (b) c (d)  "), Some(vec!["A", "b) c (d"]));
        assert_eq!(read("{}[{id}]: {text}", "3. [x]: y: z"), Some(vec!["3.", "x", "y: z"]));
        assert_eq!(read("- {title} ({id})", "No results"), None);
        assert_eq!(read("ID: {id}", "ID: "), None);
    }

    #[test]
    fn forms_without_an_id_or_an_end_are_refused() {
        for (text, expect) in [
            ("- {title}", InvalidLinePattern::NoId),
            ("no fields", InvalidLinePattern::NoId),
            ("{id", InvalidLinePattern::Unclosed),
            ("{id}{title}", InvalidLinePattern::Adjacent),
            ("{id} {name}", InvalidLinePattern::UnknownField("name".to_owned())),
            ("{id} {} {title} {} {id}", InvalidLinePattern::RepeatedField("id".to_owned())),
        ] {
            assert_eq!(text.parse::<LinePattern>(), Err(expect), "{text}");
        }
    }
}
