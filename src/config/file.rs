//! The configuration file, which is TOML as here, or YAML depending on the extension of its name.
//!
//! ```toml
//! listen = "127.0.0.1:7400"
//!
//! [[source]]
//! name = "notes"
//! store = "notes.db"
//!
//! [[source]]
//! name = "work"
//! url = "https://records.example.com"
//! credential = "env:WORK_TOKEN"
//! ```

use std::net::SocketAddr;
use std::path::Path;

use fetchwell_http::{CallerCheck, DEFAULT_LISTEN, ListenError, may_listen};

use super::context_protection::Refusal;
use super::error::ConfigError;
use super::imports::imports;
use super::keys::{SCHEMA, parse};
use super::settings::FileSettings;
use super::sources::{SourcePlace, sources};
use super::text::read_text;
use super::tree::{Mistake, Node};
use super::{Environment, SourceSettings};

/// Reads a configuration file that has at least one source.
///
/// # Errors
///
/// The file cannot be read, is not valid, or has no source.
pub fn read_file(path: &Path, environment: &Environment) -> Result<FileSettings, ConfigError> {
    let settings = settings_of(&read_text(path)?, path, environment)?;
    if settings.sources.is_empty() { Err(ConfigError::Empty(path.to_owned())) } else { Ok(settings) }
}

/// Parses a text as the configuration file at `path`, without the environment. It may have no source.
///
/// # Errors
///
/// The text is not valid.
pub fn check_text(text: &str, path: &Path) -> Result<FileSettings, ConfigError> {
    settings_of(text, path, &Environment::default())
}

/// Parses a text as the configuration file at `path`, with the overrides of the environment. It may have no source.
///
/// # Errors
///
/// The text is not valid, by itself or together with the environment.
pub fn settings_of(text: &str, path: &Path, environment: &Environment) -> Result<FileSettings, ConfigError> {
    let folder = path.parent().unwrap_or(Path::new(""));
    let mistaken = |mistake| ConfigError::Invalid { path: path.to_owned(), mistake };
    let (tree, warnings) = parse(text, path).map_err(mistaken)?;
    let mut settings: FileSettings = tree.read(&SCHEMA).map_err(mistaken)?;
    settings.warnings = warnings;
    settings.resolve(&tree, folder).map_err(mistaken)?;
    let protection = std::mem::take(&mut settings.context_protection);
    let protection = protection.with(environment, &SCHEMA).and_then(|effective| effective.check(&tree));
    settings.protection = protection.map_err(|refusal| match refusal {
        Refusal::Variable { name, problem } => ConfigError::Variable { name, problem },
        Refusal::File(mistake) => mistaken(mistake),
    })?;
    Ok(settings)
}

impl FileSettings {
    /// Creates the settings of one source without a file, with the overrides of the environment.
    ///
    /// # Errors
    ///
    /// A variable has an invalid value.
    pub fn new(source: SourceSettings, environment: &Environment) -> Result<Self, ConfigError> {
        Ok(Self { sources: vec![source], ..settings_of("", Path::new(""), environment)? })
    }

    /// Checks the keys against each other, and resolves the tables and paths.
    fn resolve(&mut self, tree: &Node, folder: &Path) -> Result<(), Mistake> {
        let auth = self.auth_table.take();
        let guarded = if auth.is_some() { CallerCheck::ByAuthentication } else { CallerCheck::ByNobody };
        listen(tree, self.listen, guarded)?;
        check_ops_listen(tree, self)?;
        self.http.check(tree, auth.is_some())?;
        self.sources = sources(tree, std::mem::take(&mut self.source), folder)?;
        check_sign_ins(tree, &self.sources, auth.is_some(), self.public_url.is_some())?;
        self.imports = imports(tree, std::mem::take(&mut self.import), &self.sources, folder)?;
        let auth = auth.map(|table| table.settings(tree, &self.sources, folder, self.public_url.as_ref()));
        self.auth = auth.transpose()?;
        self.telemetry.check(tree)?;
        self.embedding = self.embedding_table.take().map(|table| table.settings(tree, folder)).transpose()?;
        self.rerank = self.rerank_table.take().map(|table| table.settings(tree, folder)).transpose()?;
        self.state = self.state.take().map(|url| url.below(folder));
        let audit = self.audit.as_mut().map(|audit| &mut audit.path);
        let tls = self.tls.iter_mut().flat_map(|tls| [&mut tls.certificate, &mut tls.key]);
        for path in self.state_dir.as_mut().into_iter().chain(audit).chain(tls) {
            *path = folder.join(&*path);
        }
        for source in &mut self.sources {
            if let SourcePlace::Mcp(server) = &mut source.place {
                server.state_dir.clone_from(&self.state_dir);
            }
        }
        Ok(())
    }
}

/// Rejects a source that each caller signs in to, on a server that knows no callers or has no page.
fn check_sign_ins(
    tree: &Node,
    sources: &[SourceSettings],
    has_auth: bool,
    has_public_url: bool,
) -> Result<(), Mistake> {
    let Some(number) = sources.iter().position(SourceSettings::signs_callers_in) else { return Ok(()) };
    let problem = match (has_auth, has_public_url) {
        (true, true) => return Ok(()),
        (false, _) => {
            "the credential \"caller\" needs callers: set public_url, and [auth] with a token, issuer or introspection; or remove it and run `fetchwell source login`"
        }
        (true, false) => {
            "callers sign in on the page /sources of this server; set public_url, the URL at which they reach it"
        }
    };
    Err(tree.mistake(&["source", &number.to_string(), "credential"], problem.to_owned()))
}

/// Rejects an empty text, which a failed save leaves on a full disk: used as settings, it would remove every limit. A
/// text of comments is accepted, because it was written on purpose.
///
/// # Errors
///
/// The text is empty or white space.
pub fn refuse_blank(text: &str, path: &Path) -> Result<(), ConfigError> {
    if is_blank(text) {
        return Err(ConfigError::Invalid { path: path.to_owned(), mistake: Mistake::empty_file() });
    }
    Ok(())
}

/// Returns true if a text is empty or white space.
#[must_use]
pub fn is_blank(text: &str) -> bool {
    text.trim_start_matches('\u{feff}').trim().is_empty()
}

/// Rejects an address that `serve` would not listen at.
fn listen(tree: &Node, address: Option<SocketAddr>, guarded: CallerCheck) -> Result<(), Mistake> {
    let refused = |problem: ListenError| tree.mistake(&["listen"], problem.to_string());
    address.map_or(Ok(()), |address| may_listen(address, guarded).map(drop).map_err(refused))
}

/// Rejects an operations listener at the address of the main one.
fn check_ops_listen(tree: &Node, settings: &FileSettings) -> Result<(), Mistake> {
    match (settings.ops_listen, settings.listen.unwrap_or(DEFAULT_LISTEN)) {
        (Some(address), main) if address == main && address.port() != 0 => {
            let problem = format!("{address} is also the address of listen; choose another port");
            Err(tree.mistake(&["ops_listen"], problem))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::config::CredentialSettings;
    use fetchwell_pdpp::{CommandLine, DEFAULT_DEADLINE};

    fn read(text: &str) -> FileSettings {
        check_text(text, Path::new("/etc/fetchwell/fetchwell.toml")).unwrap()
    }

    /// Returns the credential of a source with this line.
    fn credential(line: &str) -> CredentialSettings {
        let text = format!("[[source]]\nname = \"work\"\nurl = \"records.example.com\"\n{line}\n");
        read(&text).sources[0].place.credential().cloned().unwrap()
    }

    #[test]
    fn paths_are_relative_to_the_file() {
        let settings = read("state_dir = \"state\"\n[[source]]\nname = \"notes\"\nstore = \"notes.db\"\n");
        assert_eq!(settings.state_dir, Some("/etc/fetchwell/state".into()));
        assert_eq!(
            settings.sources,
            [SourceSettings::new(
                "notes".parse().unwrap(),
                SourcePlace::Store { path: "/etc/fetchwell/notes.db".into() }
            )]
        );
        for (line, expect) in [
            ("", CredentialSettings::PdppCache("/etc/fetchwell/.pdpp".into())),
            ("cache_root = \"c\"", CredentialSettings::PdppCache("/etc/fetchwell/c".into())),
            ("credential = \"file:token\"", CredentialSettings::File("/etc/fetchwell/token".into())),
            ("credential = \"env:T\"", CredentialSettings::Variable("T".to_owned())),
            (
                "credential = \"command:pass work\"",
                CredentialSettings::Command(CommandLine::new(
                    "pass work".to_owned(),
                    "/etc/fetchwell".into(),
                )),
            ),
        ] {
            assert_eq!(credential(line), expect, "{line}");
        }
    }

    #[test]
    fn many_sources_each_have_their_own() {
        let settings = read(
            "listen = \"127.0.0.1:7401\"\ncall_deadline = \"8s\"\n\
             [[source]]\nname = \"work\"\nlabel = \"Work\"\nurl = \"records.example.com\"\ndeadline = \"500ms\"\n\
             streams = [\"messages\", \"files\"]\n\
             [[source]]\nname = \"notes\"\nstore = \"notes.db\"\n",
        );
        assert_eq!(settings.listen, Some("127.0.0.1:7401".parse().unwrap()));
        assert_eq!(settings.call_deadline, Duration::from_secs(8));
        let [work, notes] = settings.sources.as_slice() else { panic!("{settings:?}") };
        assert_eq!((work.name.as_str(), work.label.as_deref()), ("work", Some("Work")));
        assert_eq!(work.deadline, Duration::from_millis(500));
        assert_eq!(work.streams, Some(vec!["messages".parse().unwrap(), "files".parse().unwrap()]));
        assert_eq!((notes.name.as_str(), notes.deadline, &notes.streams), ("notes", DEFAULT_DEADLINE, &None));
        assert!(read("").sources.is_empty());
    }

    #[test]
    fn mistakes_have_their_lines() {
        let url = "[[source]]\nname = \"a\"\nurl = \"x.example\"\n";
        let store = "[[source]]\nname = \"a\"\nstore = \"x\"\n";
        for (text, expect) in [
            (
                "[[source]]\nname = \"a\"\n".to_owned(),
                "2: source[0].name: source `a` needs either store, url, mcp or command",
            ),
            (
                format!("{store}url = \"y\"\n"),
                "2: source[0].name: source `a` needs either store, url, mcp or command",
            ),
            (format!("{store}credential = \"env:T\"\n"), "2: source[0].name: source `a` is a store"),
            (format!("{store}cache_root = \"c\"\n"), "2: source[0].name: source `a` is a store"),
            ("[[source]]\nname = \"a\"\nstor = \"x\"\n".to_owned(), "3: source[0].stor: unknown key `stor`"),
            ("lisen = 1\n".to_owned(), "1: lisen: unknown key `lisen`"),
            (
                "[[source]]\nname = \"..\"\nstore = \"x\"\n".to_owned(),
                "2: source[0].name: `..` cannot be the name",
            ),
            ("[[source]]\nstore = \"x\"\n".to_owned(), "1: source[0]: the key `name` is missing"),
            (
                "[[source]]\nname = \"a\"\nurl = \"ftp://x\"\n".to_owned(),
                "3: source[0].url: `ftp://x` is not a provider URL",
            ),
            (
                format!("{store}\n[[source]]\nname = \"a\"\nstore = \"y\"\n"),
                "6: source[1].name: duplicate source name `a`, first on line 2",
            ),
            (format!("{url}deadline = \"0s\"\n"), "4: source[0].deadline: `0s` is not between"),
            (
                format!("{url}deadline = 2\n"),
                "4: source[0].deadline: expected a duration with its unit, such as \"2s\" or \"500ms\", found the number `2`",
            ),
            (
                format!("{url}deadline_seconds = 2\n"),
                "4: source[0].deadline_seconds: unknown key `deadline_seconds`",
            ),
            (format!("{url}credential = \"sekret\"\n"), "4: source[0].credential: the credential must be"),
            (
                format!("{url}credential = \"env:PDPP_OWNER_TOKEN\"\n"),
                "4: source[0].credential: `PDPP_OWNER_TOKEN` is an owner",
            ),
            (
                format!("{url}credential = \"env:T\"\ncache_root = \"c\"\n"),
                "2: source[0].name: source `a` has a cache_root",
            ),
            (format!("{url}streams = []\n"), "4: source[0].streams: streams is empty"),
            (
                format!("{url}streams = [\"a\", \"..\"]\n"),
                "4: source[0].streams[1]: it holds the path segment",
            ),
            (format!("{url}label = \"\"\n"), "4: source[0].label: the label is empty"),
            (format!("{url}credential = \"command:sekret\n"), "4: "),
            ("call_deadline = \"2 hours\"\n".to_owned(), "1: call_deadline: `2 hours` is not between"),
            ("listen = \"7400\"\n".to_owned(), "1: listen: "),
            ("ops_listen = \"7401\"\n".to_owned(), "1: ops_listen: "),
            (
                "ops_listen = \"127.0.0.1:7400\"\n".to_owned(),
                "1: ops_listen: 127.0.0.1:7400 is also the address of listen",
            ),
        ] {
            let problem = check_text(&text, Path::new("c.toml")).unwrap_err().to_string();
            assert!(problem.starts_with(&format!("c.toml:{expect}")), "{text}{problem}");
            assert!(!problem.contains("sekret"), "{problem}");
        }
    }
}
