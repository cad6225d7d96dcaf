//! Kinds of records that a query asks for by a noun, and the streams of each.

/// Kind of records that a query asks for by a noun.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RecordKind {
    /// Mail and messages.
    Mail,
    /// Notes and memos.
    Note,
    /// Commits of repositories.
    Commit,
    /// Events of calendars.
    Event,
    /// Contacts, which are persons.
    Contact,
    /// Documents, files and pages.
    Document,
    /// Issues and tickets.
    Issue,
}

/// Name of each kind, with the words of the names of its streams.
const KINDS: [(RecordKind, &str, &[&str]); 7] = [
    (RecordKind::Mail, "mail", &["mail", "email", "message", "thread", "inbox"]),
    (RecordKind::Note, "note", &["note", "memo"]),
    (RecordKind::Commit, "commit", &["commit"]),
    (RecordKind::Event, "event", &["event", "meeting", "appointment", "calendar"]),
    (RecordKind::Contact, "contact", &["contact", "person", "people"]),
    (RecordKind::Document, "document", &["document", "doc", "page", "file", "article"]),
    (RecordKind::Issue, "issue", &["issue", "ticket"]),
];

impl RecordKind {
    /// Parses the name of a section of a list.
    pub(super) fn parse(name: &str) -> Option<Self> {
        KINDS.iter().find(|(_, known, _)| *known == name).map(|(kind, _, _)| *kind)
    }

    /// Returns true if a stream of this name has records of the kind: a word of the name is one of the kind.
    #[must_use]
    pub fn is_of_stream(self, stream: &str) -> bool {
        let name = stream.to_ascii_lowercase();
        let words = name.split(|letter: char| !letter.is_ascii_alphanumeric());
        let singular = words.map(|word| word.strip_suffix('s').unwrap_or(word));
        let known = KINDS.iter().find(|(kind, _, _)| *kind == self).map_or(&[][..], |(_, _, names)| *names);
        singular.into_iter().any(|word| known.contains(&word))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_have_a_kind_by_their_names() {
        for (kind, stream, expect) in [
            (RecordKind::Mail, "messages", true),
            (RecordKind::Mail, "sent-mails", true),
            (RecordKind::Note, "Notes", true),
            (RecordKind::Note, "messages", false),
            (RecordKind::Event, "calendar_events", true),
            (RecordKind::Document, "footnote", false),
        ] {
            assert_eq!(kind.is_of_stream(stream), expect, "{kind:?} {stream}");
        }
    }
}
