//! Titles in the properties of documents, which programs fill with names of files and placeholders.

/// Titles that programs write in place of a missing one, in lower case without a number at the end.
const PLACEHOLDERS: [&str; 22] = [
    "untitled",
    "untitled document",
    "untitled presentation",
    "unnamed",
    "unbenannt",
    "sans titre",
    "sin título",
    "no title",
    "(no title)",
    "title",
    "document",
    "dokument",
    "new document",
    "powerpoint presentation",
    "powerpoint-präsentation",
    "présentation powerpoint",
    "presentation",
    "slide",
    "layout",
    "about:blank",
    "contents",
    "table of contents",
];

/// Starts of titles that name the program which printed the document.
const PROGRAMS: [&str; 5] = [
    "microsoft word -",
    "microsoft powerpoint -",
    "microsoft excel -",
    "microsoft outlook -",
    "microsoft visio -",
];

/// Extensions of the files from which documents are made.
const EXTENSIONS: [&str; 28] = [
    "ai", "cdr", "doc", "docm", "docx", "dot", "dotx", "dvi", "eps", "fm", "htm", "html", "indd", "key",
    "md", "odp", "odt", "pages", "pdf", "ppt", "pptx", "ps", "qxd", "rtf", "tex", "txt", "xls", "xlsx",
];

/// Returns true if the title in the properties of a document names it, rather than a file or nothing.
pub(super) fn is_title(title: &str) -> bool {
    let lower = title.trim().to_lowercase();
    let without_number = lower.trim_end_matches(|character: char| {
        character.is_ascii_digit() || matches!(character, ' ' | '-' | '_')
    });
    let is_file = lower
        .rsplit_once('.')
        .is_some_and(|(name, extension)| !name.is_empty() && EXTENSIONS.contains(&extension));
    let is_path = lower.starts_with("file:") || lower.get(1..3) == Some(":\\") || lower.starts_with("\\\\");
    lower.chars().any(char::is_alphanumeric)
        && !PLACEHOLDERS.contains(&without_number)
        && !PROGRAMS.iter().any(|program| lower.starts_with(program))
        && !is_file
        && !is_path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_and_placeholders_are_no_titles() {
        for title in
            ["Annual report", "1984", "Untitled: a life", "Node.js", "Documents of the war", "Étude", "Q&A"]
        {
            assert!(is_title(title), "{title}");
        }
        for title in [
            "",
            "-",
            "untitled",
            "Untitled-2",
            "Microsoft Word - x.docx",
            "Microsoft Word - Annual report",
            "report.DOC",
            "Annual report final.docx",
            "PowerPoint Presentation",
            "Document1",
            "C:\\a\\b",
            "file:///a/b",
            "paper.dvi",
        ] {
            assert!(!is_title(title), "{title}");
        }
    }
}
