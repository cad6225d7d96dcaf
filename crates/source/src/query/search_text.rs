//! Text of a search as typed parts: plain words and operators.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{SearchDate, SearchOperator};

/// Parsed text of a search. A record matches if it passes every operator and has any of the words. Without words, all
/// records that pass the operators match, the newest first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SearchText {
    /// Plain text. Any of its words is enough; a record with more of them ranks higher.
    pub words: String,
    /// Phrases that a record must contain, each with its words in order.
    pub phrases: Vec<String>,
    /// Words or phrases that a record must not contain.
    pub excluded: Vec<String>,
    /// Fields of a record that must contain some words.
    pub fields: Vec<FieldText>,
    /// True if a record must have attachments.
    pub has_attachment: bool,
    /// Earliest time at which a record was written.
    pub after: Option<Timestamp>,
    /// Time before which a record was written.
    pub before: Option<Timestamp>,
    /// Times that the words name. They raise records and exclude none, so they are no operators.
    pub dates: Vec<SearchDate>,
}

/// Words that a field of a record must contain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldText {
    /// Field to search.
    pub field: SearchField,
    /// Words that the field must contain, all of them.
    pub text: String,
}

/// Field of a record that a search can name, whatever its connector calls it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SearchField {
    /// The title of the record.
    Title,
    /// The author or sender of the record.
    From,
    /// The name of an attachment of the record.
    Filename,
}

impl SearchField {
    /// Returns the name of the field in a query.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Title => "title",
            Self::From => "from",
            Self::Filename => "filename",
        }
    }
}

impl SearchText {
    /// Creates a text without operators.
    #[must_use]
    pub fn plain(text: &str) -> Self {
        Self { words: text.to_owned(), ..Self::default() }
    }

    /// Returns true if the text has no operators.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        let Self { words: _, phrases, excluded, fields, has_attachment, after, before, dates: _ } = self;
        let has_texts = !phrases.is_empty() || !excluded.is_empty() || !fields.is_empty();
        !has_texts && !has_attachment && after.is_none() && before.is_none()
    }

    /// Returns the kinds of operators in the text.
    #[must_use]
    pub fn operators(&self) -> BTreeSet<SearchOperator> {
        let has_field = |field| self.fields.iter().any(|text| text.field == field);
        [
            (SearchOperator::Phrase, !self.phrases.is_empty()),
            (SearchOperator::Exclusion, !self.excluded.is_empty()),
            (SearchOperator::Title, has_field(SearchField::Title)),
            (SearchOperator::From, has_field(SearchField::From)),
            (SearchOperator::Attachment, self.has_attachment),
            (SearchOperator::Filename, has_field(SearchField::Filename)),
            (SearchOperator::Time, self.after.is_some() || self.before.is_some()),
        ]
        .into_iter()
        .filter_map(|(operator, is_used)| is_used.then_some(operator))
        .collect()
    }

    /// Returns the words, the phrases and the words of fields as one text, for a source without operators.
    #[must_use]
    pub fn plain_words(&self) -> String {
        let fields = self.fields.iter().map(|field| &field.text);
        let texts = std::iter::once(&self.words).chain(&self.phrases).chain(fields);
        let texts: Vec<&str> = texts.map(|text| text.trim()).filter(|text| !text.is_empty()).collect();
        match texts.as_slice() {
            [_] if self.is_plain() => self.words.clone(),
            _ => texts.join(" "),
        }
    }

    /// Returns the text as JSON: a string without operators, otherwise an object. A cursor is bound to it, so the form
    /// must not change.
    #[must_use]
    pub fn to_json(&self) -> Value {
        if self.is_plain() {
            return Value::String(self.words.clone());
        }
        let fields: Vec<_> =
            self.fields.iter().map(|field| json!([field.field.as_str(), field.text])).collect();
        let second = |time: Option<Timestamp>| time.map(Timestamp::as_second);
        let mut json = json!({
            "words": self.words,
            "phrases": self.phrases,
            "excluded": self.excluded,
            "fields": fields,
            "after": second(self.after),
            "before": second(self.before),
        });
        if let Some(json) = json.as_object_mut().filter(|_| self.has_attachment) {
            json.insert("has_attachment".to_owned(), Value::Bool(true));
        }
        json
    }
}

impl From<&str> for SearchText {
    fn from(text: &str) -> Self {
        Self::plain(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_text_stays_as_it_was_written() {
        let text = SearchText::plain(" pay  \"now\" ");
        assert!(text.is_plain());
        assert_eq!(text.plain_words(), " pay  \"now\" ");
        assert_eq!(text.to_json(), json!(" pay  \"now\" "));
    }

    #[test]
    fn a_source_without_operators_gets_the_words_of_all_required_parts() {
        let text = SearchText {
            phrases: vec!["exact words".to_owned()],
            excluded: vec!["draft".to_owned()],
            fields: vec![FieldText { field: SearchField::From, text: "alice".to_owned() }],
            ..SearchText::plain("invoice")
        };
        assert!(!text.is_plain());
        assert_eq!(text.plain_words(), "invoice exact words alice");
        assert_eq!(text.to_json()["fields"], json!([["from", "alice"]]));
        assert_eq!(
            Vec::from_iter(text.operators()),
            [SearchOperator::Phrase, SearchOperator::Exclusion, SearchOperator::From]
        );
        assert_eq!(text.to_json().get("has_attachment"), None);
        let fields = vec![FieldText { field: SearchField::Filename, text: "menu.pdf".to_owned() }];
        let text = SearchText { fields, has_attachment: true, ..SearchText::default() };
        assert!(!text.is_plain() && text.plain_words() == "menu.pdf");
        assert_eq!(text.to_json()["has_attachment"], true);
        assert_eq!(Vec::from_iter(text.operators()), [SearchOperator::Attachment, SearchOperator::Filename]);
    }
}
