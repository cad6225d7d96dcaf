//! Compares the table of keys with the documentation, and with reading and reloading.

use std::collections::BTreeSet;
use std::path::Path;

use super::found_file_keys::{Decision, KEYS as ROWS, with_key};
use crate::config::keys::{KEYS, keys_that_need_a_restart, reopens_sources};
use crate::config::tree::{Kind, Node};
use crate::config::{FileSettings, check_text};

const CONFIGURATION: &str = include_str!("../../../docs/configuration.md");
const SYNC: &str = include_str!("../../../docs/sync.md");

/// Names between back quotes.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// Returns the entry of a key, which may be a list.
fn entry(name: &str) -> Option<&'static str> {
    KEYS.iter().map(|key| key.name).find(|key| key.strip_suffix("[]").unwrap_or(key) == name)
}

/// Returns the table whose keys a table of Markdown describes, by the head of its first column.
fn described_table(head: &str, is_about_imports: bool) -> Option<String> {
    let cells: Vec<&str> = head.split('|').map(str::trim).collect();
    let first = cells.get(1).filter(|first| first.starts_with("key"))?;
    let is_overridden = cells.iter().any(|cell| cell.starts_with("variable"));
    Some(match quoted(first).next() {
        Some(table) if table.starts_with("[[") => format!("{}[].", table.trim_matches(['[', ']'])),
        Some(table) => format!("{}.", table.trim_matches(['[', ']'])),
        None if first.ends_with("endpoint") => "context_protection.endpoints.*.".to_owned(),
        None if is_overridden => "context_protection.".to_owned(),
        None if is_about_imports => "import[].".to_owned(),
        None => String::new(),
    })
}

/// Returns the keys in the tables and examples of a page. An unknown one fails.
fn documented(page: &str, is_about_imports: bool) -> BTreeSet<&'static str> {
    let mut found = BTreeSet::new();
    let mut table = None;
    for (line, next) in page.lines().zip(page.lines().skip(1)) {
        if next.starts_with("|---") {
            table = described_table(line, is_about_imports);
        } else if !line.starts_with('|') {
            table = None;
        } else if let Some(table) = table.as_ref().filter(|_| !line.starts_with("|---")) {
            for name in line.split('|').nth(1).into_iter().flat_map(quoted) {
                let name = format!("{table}{name}");
                found.insert(entry(&name).unwrap_or_else(|| panic!("{name} is no key: {line}")));
                // A table without a section of its own has its keys in its row.
                found.extend(quoted(line).filter_map(|key| entry(&format!("{name}.{key}"))));
            }
        }
    }
    for (language, file) in [("toml", "f.toml"), ("yaml", "f.yaml")] {
        for example in page.split(&format!("```{language}\n")).skip(1) {
            let example = example.split("```").next().unwrap();
            for leaf in Node::parse(example, Path::new(file)).unwrap().leaves() {
                let mut entries = KEYS.iter().filter(|key| leaf.fits(key.name)).peekable();
                assert!(entries.peek().is_some(), "{} is no key: {example}", leaf.key());
                found.extend(entries.map(|key| key.name));
            }
        }
    }
    found
}

#[test]
fn all_keys_are_documented_and_no_others() {
    let mut documented = documented(CONFIGURATION, false);
    documented.extend(self::documented(SYNC, true));
    let is_table = |name: &str| KEYS.iter().any(|key| key.name.starts_with(&format!("{name}.")));
    let is_list_of_tables = |name: &str| KEYS.iter().any(|key| key.name.starts_with(&format!("{name}[].")));
    let undocumented = KEYS.iter().map(|key| key.name).filter(|name| !documented.contains(name));
    let undocumented: Vec<&str> =
        undocumented.filter(|name| !is_table(name) && !is_list_of_tables(name)).collect();
    assert_eq!(undocumented, [""; 0], "keys without a row in docs/configuration.md or docs/sync.md");
}

#[test]
fn every_key_has_one_entry_and_every_entry_is_a_key() {
    let mut entries: Vec<&str> = KEYS.iter().map(|key| key.name).collect();
    entries.sort_unstable();
    assert!(entries.windows(2).all(|pair| pair[0] != pair[1]), "{entries:?}");
    // `every_key_has_a_decision` compares the rows with what is read.
    for (name, _) in ROWS {
        assert!(entry(name).is_some(), "{name} has no entry");
    }
    let is_row = |name: &str| ROWS.iter().any(|(row, _)| *row == name);
    for name in entries {
        let listed = name.strip_suffix("[]").unwrap_or(name);
        // These tables have no key that a found file may have, and one row each.
        let in_table =
            ["auth.introspection.", "auth.pages.", "auth.token[].", "auth.subject[]."].into_iter().chain([
                "source[].env.",
                "source[].headers.",
                "source[].search.arguments.",
                "source[].fetch.arguments.",
            ]);
        assert!(
            is_row(listed) || in_table.clone().any(|table| name.starts_with(table)),
            "{name} is not read"
        );
    }
}

#[test]
fn types_are_those_of_the_fields() {
    // A key of any name has a value of any type, or one that is checked with its table.
    for key in KEYS.iter().filter(|key| !key.name.ends_with(".*")) {
        let (wrong, expect) = match key.kind {
            Kind::Table | Kind::DefaultTable => continue,
            Kind::Flag(_) => ("\"x\"", "expected a boolean, found a string".to_owned()),
            Kind::Integer { max, .. } => {
                ("\"x\"", format!("expected an integer between 1 and {max}, found a string"))
            }
            Kind::Duration(_) => ("true", "expected a duration with its unit, such as".to_owned()),
            Kind::Text => ("true", "expected".to_owned()),
        };
        let text = match key.name.strip_suffix("[]") {
            Some(list) => with_key(list, &format!("[{wrong}]")),
            None => with_key(key.name, wrong),
        };
        let refused = check_text(&text, Path::new("f.toml")).unwrap_err().to_string();
        let (_, own) = key.name.rsplit_once('.').unwrap_or(("", key.name));
        let at = format!("{}: {expect}", own.replace("[]", "[0]"));
        assert!(refused.contains(&at), "{text}{refused}");
        let is_text =
            ["boolean, found", "integer", "duration", "u32", "usize"].iter().all(|of| !refused.contains(of));
        assert_eq!(is_text, key.kind == Kind::Text, "{refused}");
    }
}

/// Returns the settings of a file with one key, if that is enough for a valid file.
fn settings_with(name: &str, value: &str) -> Option<FileSettings> {
    let needed = match name.split_once('.') {
        Some(("tls", "key")) => "certificate = \"c.pem\"\n",
        Some(("tls", _)) => "key = \"k.pem\"\n",
        Some(("rate_limit", "per")) => "requests = 1\n",
        Some(("rate_limit", _)) => "per = \"1s\"\n",
        Some(("embedding" | "rerank", "path")) => "provider = \"local\"\n",
        Some(("embedding" | "rerank", key)) if key != "provider" => "provider = \"local\"\npath = \"m\"\n",
        _ => "",
    };
    check_text(&format!("{}{needed}", with_key(name, value)), Path::new("/c/f.toml")).ok()
}

#[test]
fn reloads_do_what_the_table_says() {
    let before = check_text("", Path::new("/c/f.toml")).unwrap();
    let restart = |name: &str| {
        ["listen", "ops_listen", "state_dir", "state", "cursor_ttl", "public_url"].contains(&name)
    };
    let mut compared = 0;
    for &(name, decision) in ROWS {
        let (Decision::Allowed(value) | Decision::NeedsTrust(value)) = decision else { continue };
        let Some(after) = settings_with(name, value) else { continue };
        let expect = match name.split_once('.') {
            None if restart(name) => vec![name],
            // Here they are added.
            Some((table @ ("audit" | "tls" | "auth"), _)) => vec![table],
            Some(("telemetry", "ring" | "otlp_endpoint")) => vec![name],
            Some(("http", key)) if key != "calls_per_caller" && value != "[]" => vec!["http"],
            _ => Vec::new(),
        };
        assert_eq!(keys_that_need_a_restart(&before, &after), expect, "{name}");
        let reopens = ["auth.", "embedding.", "rerank."].iter().any(|table| name.starts_with(table))
            || matches!(name, "call_deadline" | "search_history");
        assert_eq!(reopens_sources(&before, &after), reopens, "{name}");
        assert_eq!(keys_that_need_a_restart(&after, &after), [""; 0]);
        compared += 1;
    }
    assert!(compared > 30, "{compared}");
}
