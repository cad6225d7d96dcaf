//! `fetchwell source add`: adds a source to the configuration file.

use std::path::{Path, PathBuf};

use clap::Args;
use fetchwell_core::handle::StreamName;
use fetchwell_core::terminal::output::note;
use fetchwell_postgres::{PasswordPlace, PostgresUrl};
use fetchwell_source::is_database;
use serde_json::json;

use super::file_args::FileArgs;
use crate::app::default_store::{default_store, existing_store, unread_store_note};
use crate::app::failure::Failure;
use crate::app::settings::remote;
use crate::cli::print::Printer;
use crate::config::{
    CredentialSettings, DEFAULT_CACHE_ROOT, DurationText, EditedFile, Environment, Label, NewSource,
    SourceTitle,
};

/// Add a source to the configuration file, which is created if it does not exist
#[derive(Debug, Args)]
pub(super) struct Add {
    /// The name of the source in answers and errors.
    #[arg(value_parser = |text: &str| text.parse::<SourceTitle>())]
    name: SourceTitle,

    #[command(flatten)]
    place: Place,

    /// The preset of an MCP server, with the mapping of its tools.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["store", "url"])]
    preset: Option<String>,

    /// The location of the credential: `pdpp-cache`, `env:NAME`, `file:PATH` or `command:LINE`
    #[arg(long, value_name = "PLACE", conflicts_with = "store")]
    credential: Option<String>,

    /// The folder in which `pdpp connect` keeps credentials.
    #[arg(long, value_name = "DIR", conflicts_with = "store", default_value = DEFAULT_CACHE_ROOT)]
    cache_root: PathBuf,

    /// The deadline of a request to the source, such as 2s or 500ms [default: 5s]
    #[arg(long, value_name = "DURATION", value_parser = |text: &str| text.parse::<DurationText>().map(|_| text.to_owned()))]
    deadline: Option<String>,

    /// Allow only this stream; may be repeated.
    #[arg(long = "stream", value_name = "NAME", value_parser = |text: &str| text.parse::<StreamName>())]
    streams: Vec<StreamName>,

    /// A label for people.
    #[arg(long, value_name = "TEXT", value_parser = |text: &str| text.parse::<Label>())]
    label: Option<Label>,

    #[command(flatten)]
    file: FileArgs,
}

#[derive(Debug, Args)]
#[group(multiple = false)]
struct Place {
    /// A store, created by `fetchwell import` [default: `FETCHWELL_STORE`, or else the default store]
    #[arg(long, value_name = "DB")]
    store: Option<PathBuf>,

    /// A record server.
    #[arg(long, value_name = "URL")]
    url: Option<String>,

    /// An MCP server behind a URL, such as `https://mcp.example.com/mcp`.
    #[arg(long, value_name = "URL")]
    mcp: Option<String>,

    /// An MCP server that is started with this command, such as `-- npx -y example-mcp`.
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// Remedy if no place is named and there is no default store.
const NO_PLACE: &str = "name the place of the source with --store DB, --url URL or --mcp URL, or fill the default store with \
                        `fetchwell add PATH`";

impl Add {
    pub(super) fn run(mut self, printer: Printer, environment: &Environment) -> Result<(), Failure> {
        let current = EditedFile::read(self.file.path_to_edit()?)?;
        let path = current.path();
        let name = self.name.0.to_string();
        if current.settings().sources.iter().any(|source| source.name == self.name.0) {
            return Err(Failure::new(format!(
                "{} has a source `{name}` already; choose another name, or run `fetchwell source remove {name}` first",
                path.display()
            )));
        }
        let Place { store, url, mcp, command } = &self.place;
        if store.is_none() && url.is_none() && mcp.is_none() && command.is_empty() {
            self.place.store = Some(existing_store(environment, NO_PLACE)?);
        }
        let file = self.file.clone();
        let is_mcp = self.place.mcp.is_some() || !self.place.command.is_empty();
        let source = self.written(&absolute(path.parent().unwrap_or(Path::new("")))?)?;
        let edited = current.with_source(&source)?;
        file.save(path, current.text(), edited.text())?;
        if printer.json {
            printer.value(&json!({ "added": name, "config": path }));
        } else {
            let next = if is_mcp { "inspect" } else { "test" };
            printer.line(format_args!(
                "Added `{name}` to {}. Run `fetchwell source {next} {name}` to test it.",
                path.display()
            ));
        }
        let store = default_store(environment).filter(|store| store.is_file());
        if let Some(unread) = store.and_then(|store| unread_store_note(edited.settings(), &store)) {
            note(&unread);
        }
        Ok(())
    }

    /// Returns the source as written in a file of `folder`: relative paths on the command line are relative to the
    /// working directory, those in the file to the file.
    fn written(self, folder: &Path) -> Result<NewSource, Failure> {
        let from_file = |path: &Path| -> Result<String, Failure> {
            let path = absolute(path)?;
            let path = path.strip_prefix(folder).unwrap_or(&path);
            path.to_str().map(str::to_owned).ok_or_else(|| {
                Failure::new(format!("{} is not UTF-8, and a configuration file is", path.display()))
            })
        };
        let url = self.place.url.as_deref().map(remote).transpose()?;
        let store = match self.place.store.as_deref() {
            Some(place) if is_database(place) => Some(database_url(place)?),
            store => store.map(from_file).transpose()?,
        };
        // A server of a vendor takes seconds, and a program starts first.
        let slow = match (&self.place.mcp, self.place.command.is_empty()) {
            (Some(_), _) => Some("10s"),
            (None, false) => Some("15s"),
            (None, true) => None,
        };
        let credential = match self.credential {
            None => None,
            Some(text) => {
                let parsed = CredentialSettings::parse(&text, Path::new(""), Path::new(""));
                match parsed.map_err(|problem| Failure::usage(&problem))? {
                    CredentialSettings::PdppCache(_) => None,
                    CredentialSettings::File(path) => Some(format!("file:{}", from_file(&path)?)),
                    CredentialSettings::Variable(_)
                    | CredentialSettings::Command(_)
                    | CredentialSettings::Caller => Some(text),
                }
            }
        };
        let cache_root = match (&url, &credential) {
            // Only a record server has one.
            (Some(_), None) => Some(from_file(&self.cache_root)?).filter(|root| root != DEFAULT_CACHE_ROOT),
            _ => None,
        };
        Ok(NewSource {
            name: self.name.0.to_string(),
            label: self.label.map(|label| label.0),
            store,
            url: url.map(|url| url.to_string()),
            mcp: self.place.mcp,
            command: self.place.command,
            preset: self.preset,
            credential,
            cache_root,
            deadline: self.deadline.or(slow.map(str::to_owned)),
            streams: self.streams.iter().map(ToString::to_string).collect(),
            ..NewSource::default()
        })
    }
}

/// Returns the URL of a database as it was given, unless it has a password.
fn database_url(place: &Path) -> Result<String, Failure> {
    if let Some(url) = PostgresUrl::in_place_of(place)
        && let PasswordPlace::Url(_) = url.map_err(|error| Failure::usage(&error))?.password()
    {
        return Err(Failure::usage(
            &"the password would be readable in the file; write password=env:NAME or password=file:PATH into the URL",
        ));
    }
    Ok(place.display().to_string())
}

fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    std::path::absolute(path)
        .map_err(|error| Failure::new(format!("{} is not a path ({error})", path.display())))
}
