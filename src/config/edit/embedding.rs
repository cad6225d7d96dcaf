//! Editing the table `[embedding]` of a configuration file.

use toml_edit::{DocumentMut, Item, Table, value};

/// Keys that a model behind a URL has and a folder has not.
const KEYS_OF_SERVICES: [&str; 5] = ["url", "model", "api_key", "dimensions", "allow_insecure"];

/// Returns the text with the model in this folder, in place of an earlier one. Keys for both kinds of models, comments and
/// all other tables stay.
///
/// # Errors
///
/// The text is not valid TOML, or has `embedding` inline.
pub fn with_local_model(text: &str, folder: &str) -> Result<String, String> {
    let mut document: DocumentMut =
        text.parse().map_err(|error: toml_edit::TomlError| error.message().to_owned())?;
    let Some(known) = document.get_mut("embedding") else { return Ok(appended(text, folder)) };
    let Some(table) = known.as_table_mut() else {
        return Err(
            "its embedding model is written inline; write it as an [embedding] table, or edit it by hand"
                .to_owned(),
        );
    };
    let text_of = |key| table.get(key).and_then(Item::as_str);
    if text_of("provider") == Some("local") && text_of("path") == Some(folder) {
        return Ok(text.to_owned());
    }
    for key in KEYS_OF_SERVICES {
        table.remove(key);
    }
    for (key, text) in [("provider", "local"), ("path", folder)] {
        // A comment behind the value stays.
        match table.get_mut(key).and_then(Item::as_value_mut) {
            Some(old) => {
                let decor = old.decor().clone();
                *old = text.into();
                *old.decor_mut() = decor;
            }
            None => {
                table.insert(key, value(text));
            }
        }
    }
    let edited = document.to_string();
    // A file with Windows line ends keeps them.
    Ok(if text.contains("\r\n") { edited.replace("\r\n", "\n").replace('\n', "\r\n") } else { edited })
}

/// Returns the text with a new table at its end.
fn appended(text: &str, folder: &str) -> String {
    let mut table = Table::new();
    table.insert("provider", value("local"));
    table.insert("path", value(folder));
    let mut block = DocumentMut::new();
    block.insert("embedding", Item::Table(table));
    let between = match text {
        "" => "",
        text if text.ends_with('\n') => "\n",
        _ => "\n\n",
    };
    let added = format!("{between}{block}");
    let added = if text.contains("\r\n") { added.replace('\n', "\r\n") } else { added };
    format!("{text}{added}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_is_added_or_replaced_and_all_else_stays() {
        let sources = "# mine\n[[source]]\nname = \"a\" # first\nstore = \"a.db\"\n";
        let table = "[embedding]\nprovider = \"local\"\npath = \"/m/new\"\n";
        for (text, expect) in [
            (String::new(), table.to_owned()),
            (sources.to_owned(), format!("{sources}\n{table}")),
            (sources.trim_end().to_owned(), format!("{}\n\n{table}", sources.trim_end())),
            (sources.replace('\n', "\r\n"), format!("{sources}\n{table}").replace('\n', "\r\n")),
            (format!("{sources}\n{table}"), format!("{sources}\n{table}")),
            (
                "[embedding] # on\nprovider = \"local\" # here\npath = '/m/old' # small\nquery_timeout = \"1s\"\n\n[http]\n".to_owned(),
                "[embedding] # on\nprovider = \"local\" # here\npath = \"/m/new\" # small\nquery_timeout = \"1s\"\n\n[http]\n".to_owned(),
            ),
            (
                "[embedding]\nprovider = \"http\"\nurl = \"https://x\"\nmodel = \"m\"\ndimensions = 8\nbackground = false\n".to_owned(),
                "[embedding]\nprovider = \"local\"\nbackground = false\npath = \"/m/new\"\n".to_owned(),
            ),
        ] {
            assert_eq!(with_local_model(&text, "/m/new"), Ok(expect), "{text}");
        }
        let windows = "[embedding]\r\nprovider = \"local\"\r\npath = \"/m/old\"\r\n";
        assert_eq!(with_local_model(windows, "/m/new").unwrap(), table.replace('\n', "\r\n"));
        assert!(
            with_local_model("embedding = {provider = \"local\", path = \"x\"}\n", "y")
                .unwrap_err()
                .contains("inline")
        );
        assert!(with_local_model("a = \n", "y").is_err());
    }
}
