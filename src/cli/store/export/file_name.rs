//! Names of files from keys and names of streams, which are untrusted.

use fetchwell_core::hex::hexadecimal;
use sha2::{Digest, Sha256};

/// Maximum length in bytes of the part of a name that is taken from a key.
const MAX_STEM: usize = 80;

/// Names that Windows gives to devices, with any extension.
const DEVICES: [&str; 6] = ["con", "prn", "aux", "nul", "com", "lpt"];

/// Number of hexadecimal digits of a hash in a name.
const HASH_DIGITS: usize = 16;

/// Returns a file name for a key. A plain key of lower-case letters, digits, `.`, `-` and `_` is followed by the extension;
/// other keys get a hash, so that two keys never have one name, whatever the file system.
pub(super) fn file_name(key: &str, extension: &str) -> String {
    if is_plain(key) { format!("{key}.{extension}") } else { format!("{}.{extension}", hashed(key)) }
}

/// Returns a folder name for the name of a stream. Two streams never have one name.
pub(super) fn folder_name(name: &str) -> String {
    // Windows ignores dots at the end of a name.
    if is_plain(name) && !name.ends_with('.') { name.to_owned() } else { hashed(name) }
}

/// Returns true if a key is a name on every file system, and cannot be the hashed name of another key.
fn is_plain(key: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"._-".contains(&byte);
    let device = key.split('.').next().unwrap_or_default().trim_end_matches(|c: char| c.is_ascii_digit());
    let end = key.rsplit('-').next().unwrap_or_default();
    let has_hash = end.len() == HASH_DIGITS && end.bytes().all(|byte| byte.is_ascii_hexdigit());
    !key.is_empty()
        && key.len() <= MAX_STEM
        && key.bytes().all(is_plain)
        && !key.starts_with('.')
        && !has_hash
        && !DEVICES.contains(&device)
}

/// Returns the characters of a key that every file system has, and its hash.
fn hashed(key: &str) -> String {
    let name: String = key
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || "_-".contains(c) { c.to_ascii_lowercase() } else { '-' })
        .take(MAX_STEM)
        .collect();
    let name = name.trim_matches('-');
    let digest = Sha256::digest(key);
    let hash = hexadecimal(digest.iter().take(HASH_DIGITS / 2));
    if name.is_empty() { hash } else { format!("{name}-{hash}") }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn names_never_lead_out_of_the_folder_and_are_distinct() {
        // Keys that are the names of `M1` and of the empty key.
        let (of_m1, of_empty) = (hashed("M1"), hashed(""));
        let of_hashed = hashed(&of_m1);
        let keys = [
            "m1",
            "plan",
            "plan.md",
            "plan.md.md",
            "md",
            ".md",
            &of_m1,
            &of_empty,
            &of_hashed,
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
        assert_eq!(file_name("plan", "md"), "plan.md");
        assert_eq!(file_name("plan.md", "md"), "plan.md.md");
        assert!(file_name(&"x".repeat(5_000), "csv").len() < 110);
    }

    #[test]
    fn folder_names_are_distinct() {
        let of_upper = hashed("A");
        let streams =
            ["a", "a.d", "a.d.d", "a.", "a..", "A", &of_upper, "..", ".", "", "con", "con.d", "a/b", "a-b"];
        let folded: HashSet<String> = streams.iter().map(|name| folder_name(name).to_lowercase()).collect();
        assert_eq!(folded.len(), streams.len(), "{folded:?}");
        assert!(
            folded.iter().all(|name| !name.contains('/') && !name.starts_with('.') && !name.ends_with('.'))
        );
        assert_eq!(folder_name("a.d"), "a.d");
    }
}
