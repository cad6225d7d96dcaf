//! Names of files from keys and names of streams, which are untrusted.

use sha2::{Digest, Sha256};

/// Maximum length in bytes of the part of a name that is taken from a key.
const MAX_STEM: usize = 80;

/// Names that Windows gives to devices, with any extension.
const DEVICES: [&str; 6] = ["con", "prn", "aux", "nul", "com", "lpt"];

/// Returns a file name for a key. A key of lower-case letters, digits, `.`, `-` and `_` is the name; other keys get a hash, so
/// that two keys never have one name, whatever the file system.
pub(super) fn file_name(key: &str, extension: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"._-".contains(&byte);
    let stem = key.split('.').next().unwrap_or_default().trim_end_matches(|c: char| c.is_ascii_digit());
    let is_safe = !key.is_empty()
        && key.len() <= MAX_STEM
        && key.bytes().all(is_plain)
        && !key.starts_with('.')
        && !DEVICES.contains(&stem);
    // The extension is that of the export; a note keeps its own.
    let dotted = format!(".{extension}");
    if is_safe {
        return if key.ends_with(&dotted) { key.to_owned() } else { format!("{key}{dotted}") };
    }
    let name: String = key
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || "_-".contains(c) { c.to_ascii_lowercase() } else { '-' })
        .take(MAX_STEM)
        .collect();
    let name = name.trim_matches('-');
    let digest = Sha256::digest(key);
    let hash: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    if name.is_empty() { format!("{hash}{dotted}") } else { format!("{name}-{hash}{dotted}") }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn names_never_lead_out_of_the_folder_and_are_distinct() {
        let keys = [
            "m1",
            "plan.md",
            "M1",
            "a/plan.md",
            "../../etc/passwd",
            "..",
            ".",
            ".hidden",
            "/etc/passwd",
            "a\\b",
            "a b",
            "con",
            "com1",
            "nul.md",
            "é",
            "e",
            "",
            "a:b",
            "x\u{0}y",
            "CON",
        ];
        let names: Vec<String> = keys.iter().map(|key| file_name(key, "md")).collect();
        for (key, name) in keys.iter().zip(&names) {
            let is_name = !name.contains(['/', '\\', ':', '\u{0}', ' ']) && !name.starts_with('.');
            assert!(is_name && name.ends_with(".md") && name.len() <= MAX_STEM + 20, "{key}: {name}");
        }
        let folded: HashSet<String> = names.iter().map(|name| name.to_lowercase()).collect();
        assert_eq!(folded.len(), keys.len(), "{names:?}");
        assert_eq!(file_name("m1", "md"), "m1.md");
        assert_eq!(file_name("plan.md", "md"), "plan.md");
        assert!(file_name(&"x".repeat(5_000), "csv").len() < 110);
    }
}
