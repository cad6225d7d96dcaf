//! Edits of a TOML file. Text outside of the entry stays as it is.

use toml_edit::{Array, DocumentMut, Item, Table, TableLike, Value, value};

use super::entry::{NAME, ServerEntry};
use super::error::ClientFileError;

/// Key of the table with the servers.
pub(super) const SERVERS: &str = "mcp_servers";

/// Returns the text with the table of the server. A table that is there gets the command line, and keeps its other keys. A
/// text that has the command line is returned as it is.
pub(super) fn with_toml_server(text: &str, server: &ServerEntry) -> Result<String, ClientFileError> {
    let mut document = parse(text)?;
    let before = parse(text)?;
    let servers = document.entry(SERVERS).or_insert_with(|| {
        // Only the table of the server gets a heading.
        let mut table = Table::new();
        table.set_implicit(true);
        Item::Table(table)
    });
    let servers = table(servers, SERVERS)?;
    match servers.get_mut(NAME) {
        None => {
            let mut entry = Table::new();
            set_command_line(&mut entry, server)?;
            servers.insert(NAME, Item::Table(entry));
        }
        Some(entry) => {
            let entry = table(entry, &format!("{SERVERS}.{NAME}"))?;
            if entry.contains_key("url") {
                return Err(ClientFileError::OtherServer);
            }
            set_command_line(entry, server)?;
        }
    }
    let edited = document.to_string();
    // A file with Windows line ends keeps them.
    let is_windows = text.contains("\r\n") && !text.replace("\r\n", "").contains('\n');
    let edited = if is_windows { edited.replace("\r\n", "\n").replace('\n', "\r\n") } else { edited };
    check_lossless(&before, &edited)?;
    Ok(edited)
}

/// Parses a text, with a position for what is not valid.
pub(super) fn parse(text: &str) -> Result<DocumentMut, ClientFileError> {
    text.parse().map_err(|error: toml_edit::TomlError| {
        let start = error.span().map_or(0, |span| span.start);
        let read = text.get(..start).unwrap_or_default();
        let column = read.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        let problem = error.message().lines().next().unwrap_or_default().to_owned();
        ClientFileError::InvalidSyntax {
            format: "TOML",
            problem,
            line: read.matches('\n').count() + 1,
            column,
        }
    })
}

fn table<'a>(item: &'a mut Item, place: &str) -> Result<&'a mut dyn TableLike, ClientFileError> {
    item.as_table_like_mut()
        .ok_or_else(|| ClientFileError::UnexpectedShape { place: format!("`{place}`"), expected: "a table" })
}

fn set_command_line(entry: &mut dyn TableLike, server: &ServerEntry) -> Result<(), ClientFileError> {
    if entry.get("command").and_then(Item::as_str) != Some(server.command.as_str()) {
        set(entry, "command", value(&server.command))?;
    }
    let arguments: Array = server.arguments.iter().collect();
    let is_same = |item: &Item| {
        let words = item.as_array().map(|words| words.iter().map(Value::as_str).collect::<Vec<_>>());
        words == Some(server.arguments.iter().map(|word| Some(word.as_str())).collect())
    };
    if !entry.get("args").is_some_and(is_same) {
        set(entry, "args", value(arguments))?;
    }
    Ok(())
}

/// Sets a key. The comments behind an earlier value stay; a value with comments in it is not replaced.
fn set(entry: &mut dyn TableLike, key: &str, mut new: Item) -> Result<(), ClientFileError> {
    match (entry.get_mut(key), new.as_value_mut()) {
        (Some(old), Some(fresh)) => {
            if let Some(old) = old.as_value() {
                let is_commented = old.as_array().is_some_and(|array| array.to_string().contains('#'));
                if is_commented {
                    return Err(ClientFileError::Lossy);
                }
                *fresh.decor_mut() = old.decor().clone();
            }
            *old = new;
        }
        _ => {
            entry.insert(key, new);
        }
    }
    Ok(())
}

/// Checks that an edit changed nothing but the table of the server.
fn check_lossless(before: &DocumentMut, edited: &str) -> Result<(), ClientFileError> {
    let others = |text: &str| {
        let mut document: toml::Table = toml::from_str(text).ok()?;
        let servers = document.get_mut(SERVERS).and_then(toml::Value::as_table_mut);
        let is_empty = servers.is_some_and(|servers| {
            servers.remove(NAME);
            servers.is_empty()
        });
        if is_empty {
            document.remove(SERVERS);
        }
        Some(document)
    };
    let before = others(&before.to_string());
    if before.is_some() && before == others(edited) { Ok(()) } else { Err(ClientFileError::Lossy) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn edited(text: &str) -> String {
        let after = with_toml_server(text, &ServerEntry::sample()).unwrap();
        let read: toml::Table = toml::from_str(&after).unwrap();
        let entry = &read["mcp_servers"]["fetchwell"];
        assert_eq!(entry["command"].as_str(), Some("/opt/fetchwell"), "{after}");
        assert_eq!(entry["args"][2].as_str(), Some("/h/a \"b\".db"), "{after}");
        assert_eq!(with_toml_server(&after, &ServerEntry::sample()).unwrap(), after);
        after
    }

    #[test]
    fn other_settings_and_comments_stay() {
        let text = "# mine\nmodel = \"o5\" # fast\n\n[mcp_servers.github]\ncommand = \"gh\" # work\n\n[tools]\nx = 1\n# end\n";
        let after = edited(text);
        for line in text.lines() {
            assert!(after.contains(line), "{line:?} is not in {after}");
        }
        assert!(after.contains("[mcp_servers.fetchwell]\n") && !after.contains("[mcp_servers]\n"), "{after}");
        assert_eq!(edited(""), edited(""));
        let windows = edited("a = 1\r\n");
        assert_eq!(windows.matches('\n').count(), windows.matches("\r\n").count(), "{windows:?}");
    }

    #[test]
    fn a_table_keeps_its_other_keys() {
        let text = "[mcp_servers.fetchwell]\ncommand = \"old\" # here\nargs = [\"serve\"]\nstartup_timeout_sec = 20\n\
            [mcp_servers.fetchwell.env]\nA = \"b\"\n";
        let after = edited(text);
        for kept in ["# here", "startup_timeout_sec = 20", "A = \"b\""] {
            assert!(after.contains(kept), "{after}");
        }
        edited("mcp_servers = { github = { command = \"gh\" } }\n");
        edited("[mcp_servers]\nfetchwell = { command = \"x\", args = [] }\n");
    }

    #[test]
    fn files_that_cannot_be_edited_are_refused() {
        for (text, code) in [
            ("a = \n", "invalid_syntax"),
            ("mcp_servers = 1\n", "unexpected_shape"),
            ("[mcp_servers]\nfetchwell = 1\n", "unexpected_shape"),
            ("[mcp_servers.fetchwell]\nurl = \"https://a.example\"\n", "other_server"),
            ("[mcp_servers.fetchwell]\nargs = [\n  \"serve\", # why\n]\n", "lossy"),
        ] {
            let refused = with_toml_server(text, &ServerEntry::sample()).unwrap_err();
            assert_eq!(refused.code(), code, "{text}: {refused}");
        }
        let refused =
            with_toml_server("a = 1\nb = \"s3cret\nc = 2\n", &ServerEntry::sample()).unwrap_err().to_string();
        assert!(refused.contains("in line 2") && !refused.contains("s3cret"), "{refused}");
    }
}
