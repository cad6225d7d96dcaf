//! The `[[import]]` tables: files and folders that a server keeps current in its stores.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fetchwell_connectors::{CategoryFrom, ImportKind, ImportOptions, OcrLanguages, connection_name};
use fetchwell_core::handle::{ConnectionId, SourceName};
use serde::Deserialize;

use super::tree::{Mistake, Node};
use super::values::{DurationText, Label, parsed, shown};
use super::{SourcePlace, SourceSettings};

/// Interval of synchronizations if none is set.
const DEFAULT_EVERY: Duration = Duration::from_secs(15 * 60);

/// Minimum interval of synchronizations. Shorter ones only repeat what `watch` does.
const MIN_EVERY: Duration = Duration::from_secs(1);

/// An import of a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportSettings {
    /// File or folder to read.
    pub origin: PathBuf,
    /// Kind of the import, or `None` to guess it.
    pub kind: Option<ImportKind>,
    /// Options of the kind.
    pub options: ImportOptions,
    /// Connection of the records.
    pub connection: ConnectionId,
    /// True if the connection was made from the path, which depends on it being a file or a folder. The store may know the
    /// import under another one.
    pub has_guessed_connection: bool,
    /// Label of a new connection.
    pub name: Option<String>,
    /// Source with the store that gets the records. `None` is the only store.
    pub source: Option<SourceName>,
    /// Interval of synchronizations.
    pub every: Duration,
    /// True to follow changes at once.
    pub watch: bool,
}

/// The table as deserialized.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ImportTable {
    path: PathBuf,
    #[serde(default, deserialize_with = "parsed")]
    kind: Option<ImportKind>,
    #[serde(default, deserialize_with = "parsed")]
    connection: Option<ConnectionId>,
    name: Option<Label>,
    #[serde(default, deserialize_with = "parsed")]
    source: Option<SourceName>,
    every: Option<String>,
    watch: bool,
    stream: Option<String>,
    #[serde(default)]
    key: Vec<String>,
    title: Option<String>,
    time: Option<String>,
    url: Option<String>,
    ocr: bool,
    #[serde(default)]
    ocr_languages: Vec<String>,
}

impl ImportSettings {
    /// Returns the store that gets the records, with the name of its source. Returns `None` if it is ambiguous.
    #[must_use]
    pub fn store<'s>(&self, sources: &'s [SourceSettings]) -> Option<(&'s SourceName, &'s SourcePlace)> {
        let is_chosen =
            |source: &&SourceSettings| self.source.as_ref().is_none_or(|name| *name == source.name);
        let mut stores = sources.iter().filter(is_chosen).filter(|source| source.place.is_store());
        let store = stores.next()?;
        stores.next().is_none().then_some((&store.name, &store.place))
    }
}

/// Checks the tables. A configuration without sources uses the default store.
pub(super) fn imports(
    tree: &Node,
    tables: Vec<ImportTable>,
    sources: &[SourceSettings],
    folder: &Path,
) -> Result<Vec<ImportSettings>, Mistake> {
    let mut connections: HashMap<ConnectionId, usize> = HashMap::new();
    let mut imports = Vec::with_capacity(tables.len());
    for (number, table) in tables.into_iter().enumerate() {
        let number = number.to_string();
        let mistake = |key: &str, problem: String| tree.mistake(&["import", &number, key], problem);
        let import = table.settings(folder).map_err(|(key, problem)| mistake(key, problem))?;
        let line = tree.line_of(&["import", &number]).unwrap_or_default();
        if let Some(earlier) = connections.insert(import.connection.clone(), line) {
            let connection = &import.connection;
            let problem = format!(
                "the connection `{connection}` is also that of the import on line {earlier}; set another connection"
            );
            return Err(mistake("connection", problem));
        }
        if !sources.is_empty() && import.store(sources).is_none() {
            let problem = match &import.source {
                Some(name) => format!("`{name}` is no source with a store"),
                None => {
                    "set source to the name of the source with the store that gets the records".to_owned()
                }
            };
            return Err(mistake("source", problem));
        }
        imports.push(import);
    }
    Ok(imports)
}

impl ImportTable {
    /// Returns the settings, or the key that is wrong and the problem.
    fn settings(self, folder: &Path) -> Result<ImportSettings, (&'static str, String)> {
        let Self { path, kind, connection, name, source, every, watch, .. } = self;
        let Self { stream, key, title, time, url, ocr, ocr_languages, .. } = self;
        let origin = folder.join(path);
        let ocr_languages =
            OcrLanguages::try_from(ocr_languages).map_err(|error| ("ocr_languages", error.to_string()))?;
        if !ocr && !ocr_languages.is_empty() {
            return Err(("ocr_languages", "it needs ocr = true".to_owned()));
        }
        let category_from = CategoryFrom::default();
        let options = ImportOptions { stream, key, title, time, url, category_from, ocr, ocr_languages };
        if let Some((kind, option)) = kind.and_then(|kind| Some((kind, kind.unused_option(&options)?))) {
            return Err((option, format!("{option} does not apply to imports of kind {kind}")));
        }
        let has_guessed_connection = connection.is_none();
        let connection = match connection {
            Some(connection) => connection,
            None => connection_name(&origin).ok_or_else(|| {
                ("connection", "no connection id can be made from the path; set a connection".to_owned())
            })?,
        };
        let every = every.as_deref().map_or(Ok(DEFAULT_EVERY), interval)?;
        let name = name.map(|label| label.0);
        Ok(ImportSettings {
            origin,
            kind,
            options,
            connection,
            has_guessed_connection,
            name,
            source,
            every,
            watch,
        })
    }
}

/// Parses the interval of synchronizations.
fn interval(text: &str) -> Result<Duration, (&'static str, String)> {
    let every = text.parse::<DurationText>().ok().filter(|every| every.0 >= MIN_EVERY);
    every.map(|every| every.0).ok_or_else(|| {
        let shown = shown(text);
        ("every", format!("`{shown}` is not an interval from \"1s\" to \"1h\"; write one, such as \"5m\""))
    })
}

#[cfg(test)]
mod tests {
    use super::super::check_text;
    use super::*;

    const SOURCE: &str = "[[source]]\nname = \"a\"\nstore = \"a.db\"\n";

    fn read(text: &str) -> Result<Vec<ImportSettings>, String> {
        let settings = check_text(text, Path::new("/etc/fetchwell.toml"));
        settings.map(|settings| settings.imports).map_err(|error| error.to_string())
    }

    #[test]
    fn imports_have_defaults() {
        let text = format!(
            "{SOURCE}[[import]]\npath = \"My Notes\"\n[[import]]\npath = \"/x/t.csv\"\nkind = \"csv\"\nkey = [\"no\"]\nevery = \"30s\"\nwatch = true\n"
        );
        let imports = read(&text).unwrap();
        assert_eq!(imports[0].origin, Path::new("/etc/My Notes"));
        assert_eq!((imports[0].connection.as_str(), imports[0].every), ("my-notes", DEFAULT_EVERY));
        assert_eq!((imports[1].kind, imports[1].watch), (Some(ImportKind::Csv), true));
        assert_eq!((imports[1].every, imports[1].options.key.len()), (Duration::from_secs(30), 1));
        let sources = check_text(SOURCE, Path::new("/etc/c.toml")).unwrap().sources;
        assert_eq!(imports[0].store(&sources).unwrap().1, &SourcePlace::Store { path: "/etc/a.db".into() });
        let database = SOURCE.replace("a.db", "postgres://ann@db.example.com/records");
        assert_eq!(read(&format!("{database}[[import]]\npath = \"a\"\n")).unwrap().len(), 1);
        assert_eq!(read("[[import]]\npath = \"a\"\n").unwrap().len(), 1);
    }

    #[test]
    fn mistakes_have_their_lines() {
        let import = format!("{SOURCE}[[import]]\npath = \"n\"\n");
        let second = SOURCE.replace('a', "b").replace("nbme", "name").replace("\"b.db\"", "\"c.db\"");
        for (text, expect) in [
            (format!("{import}kind = \"word\"\n"), "6: import[0].kind: `word` is no kind of import"),
            (
                format!("{import}[[import]]\npath = \"/y/n\"\n"),
                "import[1].connection: the connection `n` is also",
            ),
            (format!("{import}source = \"x\"\n"), "6: import[0].source: `x` is no source with a store"),
            (
                format!("{import}kind = \"git\"\nstream = \"s\"\n"),
                "7: import[0].stream: stream does not apply",
            ),
            (format!("{import}every = \"999ms\"\n"), "import[0].every: `999ms` is not an interval from"),
            (format!("{import}every = \"61m\"\n"), "import[0].every: `61m` is not an interval from"),
            (format!("{import}pth = \"x\"\n"), "6: import[0].pth: unknown key `pth`"),
            (format!("{import}ocr = true\nkind = \"csv\"\n"), "6: import[0].ocr: ocr does not apply"),
            (format!("{import}ocr_languages = [\"eng\"]\n"), "import[0].ocr_languages: it needs ocr = true"),
            (
                format!("{import}ocr = true\nocr_languages = [\"eng+../x\"]\n"),
                "7: import[0].ocr_languages: `../x` is no name of a language",
            ),
            (format!("{second}{import}"), "import[0].source: set source to the name"),
        ] {
            let problem = read(&text).unwrap_err();
            assert!(problem.contains(expect), "{text}\n{problem}");
        }
    }
}
