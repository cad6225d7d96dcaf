//! Operators of a search that a source may not apply.

use std::collections::BTreeSet;

/// Kind of operator in the text of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SearchOperator {
    /// A phrase in quotes.
    Phrase,
    /// A word or phrase that a record must not contain.
    Exclusion,
    /// Words of the title.
    Title,
    /// Words of the author or sender.
    From,
    /// Attachments that a record must have.
    Attachment,
    /// Words of the name of an attachment.
    Filename,
    /// A time before or after which a record was written.
    Time,
    /// A text of operators without any word.
    NoWords,
}

impl SearchOperator {
    /// Returns the operator as a warning names it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Phrase => "\"phrase\"",
            Self::Exclusion => "-word",
            Self::Title => "title:",
            Self::From => "from:",
            Self::Attachment => "has:attachment",
            Self::Filename => "filename:",
            Self::Time => "a time (hits without a date are shown)",
            Self::NoWords => "a query without words (nothing was searched there)",
        }
    }

    /// Returns one warning that names the operators that a source did not apply, or `None` if there are none.
    #[must_use]
    pub fn warning(unapplied: &BTreeSet<Self>) -> Option<String> {
        let names: Vec<&str> = unapplied.iter().map(|operator| operator.as_str()).collect();
        (!names.is_empty()).then(|| {
            format!(
                "record servers and MCP servers take plain words; not applied there: {}",
                names.join(", ")
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_warning_names_all_operators_that_were_not_applied() {
        assert_eq!(SearchOperator::warning(&BTreeSet::new()), None);
        let unapplied = BTreeSet::from([SearchOperator::From, SearchOperator::Phrase]);
        assert_eq!(
            SearchOperator::warning(&unapplied).unwrap(),
            "record servers and MCP servers take plain words; not applied there: \"phrase\", from:"
        );
    }
}
