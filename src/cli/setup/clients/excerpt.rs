//! The changes of a text as lines with `-` and `+`.
//!
//! Only the changed part is shown. A line diff would show whole lines beside it, and files of clients have tokens of other
//! servers in them. What the two texts have in common is left out, with `…` for the rest of a line.

/// Returns the changed lines. Both texts are the same except for one part, because an edit changes one entry.
pub(super) fn changed_lines(before: &str, after: &str) -> Vec<String> {
    if before == after {
        return Vec::new();
    }
    let common_start = common_prefix(before.chars().zip(after.chars()));
    let rest_before = before.get(common_start..).unwrap_or_default();
    let rest_after = after.get(common_start..).unwrap_or_default();
    let common_end = common_prefix(rest_before.chars().rev().zip(rest_after.chars().rev()));
    let start = before.get(..common_start).unwrap_or_default();
    let end = rest_before.get(rest_before.len() - common_end..).unwrap_or_default();
    let line = start.matches('\n').count() + 1;
    let mut lines = vec![format!("@@ line {line} @@")];
    for (sign, rest) in [('-', rest_before), ('+', rest_after)] {
        let changed = rest.get(..rest.len() - common_end).unwrap_or_default();
        if changed.trim().is_empty() {
            continue;
        }
        let text = format!("{}{changed}{}", visible_start(start), visible_end(end));
        lines.extend(text.lines().map(|line| format!("{sign} {line}")));
    }
    lines
}

/// Returns the number of bytes in which pairs of characters are equal.
fn common_prefix(pairs: impl Iterator<Item = (char, char)>) -> usize {
    pairs.take_while(|(one, other)| one == other).map(|(one, _)| one.len_utf8()).sum()
}

/// Returns the indentation of the line that a text ends in, with `…` for what follows it.
fn visible_start(text: &str) -> String {
    let line = text.rsplit('\n').next().unwrap_or_default();
    let rest = line.trim_start();
    let indentation = line.strip_suffix(rest).unwrap_or_default();
    format!("{indentation}{}", if rest.is_empty() { "" } else { "…" })
}

/// Returns `…` if a text begins with the rest of a line.
fn visible_end(text: &str) -> &'static str {
    let line = text.split('\n').next().unwrap_or_default();
    if line.trim().is_empty() { "" } else { "…" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_changed_part_is_shown() {
        let before = "{\n  \"a\": {\n    \"token\": \"s3cret\" }\n}\n";
        let after = "{\n  \"a\": {\n    \"token\": \"s3cret\" },\n  \"b\": 1\n}\n";
        assert_eq!(changed_lines(before, after), ["@@ line 3 @@", "+     …,", "+   \"b\": 1"]);
        assert_eq!(
            changed_lines("{\"t\":\"s3cret\"}", "{\"t\":\"s3cret\",\"b\":1}"),
            ["@@ line 1 @@", "+ …,\"b\":1…"]
        );
        assert_eq!(changed_lines("", "a = 1\n"), ["@@ line 1 @@", "+ a = 1"]);
        let replaced = changed_lines("a = \"old\"\nb = 2\n", "a = \"new\"\nb = 2\n");
        assert_eq!(replaced, ["@@ line 1 @@", "- …old…", "+ …new…"]);
        assert!(changed_lines("same", "same").is_empty());
        // Characters of several bytes with equal first or last bytes.
        assert_eq!(changed_lines("ä", "ö"), ["@@ line 1 @@", "- ä", "+ ö"]);
    }
}
