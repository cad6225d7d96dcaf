//! `fetchwell client-config`: the configuration to paste into a client.
//!
//! * `client`: the clients, and the files of their configuration
//! * `launch`: the command line of a server
//! * `local_client`: the configuration for a server that the client starts, `remote_client`: for one at a URL
//! * `yaml_entry`: an entry of Continue
//! * `chatgpt_recipe`: the steps for ChatGPT
//! * `bundle`: `fetchwell bundle`, a file that Claude Desktop installs

mod bundle;
mod chatgpt_recipe;
mod client;
mod launch;
mod local_client;
mod remote_client;
mod yaml_entry;

use std::path::{Path, PathBuf};

use clap::Args;
use fetchwell_core::terminal::{Line, escape_line};
use fetchwell_source::is_database;
use serde_json::json;

pub(super) use self::bundle::Bundle;
pub(super) use self::client::{Client, shell_word};
pub(super) use self::launch::Launch;
pub(super) use self::local_client::snippet;
use self::remote_client::{ServerUrl, VariableName, remote_snippet};
use crate::app::default_store::existing_default_store;
use crate::app::failure::Failure;
use crate::app::settings::{SourceArgs, remote};
use crate::cli::print::{FAINT, Printer};
use crate::config::{
    CredentialSettings, DEFAULT_CACHE_ROOT, Environment, FoundFile, SecretPlace, check_text, read_text,
};

/// Print the configuration that makes a client use fetchwell.
#[derive(Debug, Args)]
pub(super) struct ClientConfig {
    /// The client to configure.
    #[arg(value_enum)]
    client: Client,

    #[command(flatten)]
    source: SourceArgs,

    /// The URL of the server for this client, such as `https://records.example.com/mcp`.
    #[arg(long, value_name = "URL", conflicts_with_all = ["store", "provider_url", "config", "found_config"])]
    url: Option<ServerUrl>,

    /// The environment variable with the token for the server; without it the client signs in.
    #[arg(long, value_name = "NAME", requires = "url")]
    token_env: Option<VariableName>,
}

impl ClientConfig {
    pub(super) fn run(self, printer: Printer, environment: &Environment) -> Result<(), Failure> {
        let snippet = match &self.url {
            Some(url) => remote_snippet(self.client, url, self.token_env.as_ref())?,
            None => {
                let launch = self.source.launch(environment)?;
                if !printer.json {
                    launch.arguments.iter().try_for_each(|word| check_printable(word))?;
                }
                snippet(self.client, &launch)
            }
        };
        if printer.json {
            let files = self.client.file();
            printer.value(&json!({ "goes": snippet.goes, "files": files, "snippet": snippet.text }));
        } else {
            printer.styled(Line::default().styled(FAINT, snippet.goes));
            printer.lines(snippet.text);
        }
        Ok(())
    }
}

impl SourceArgs {
    /// Returns how a client starts a server of this source: with absolute paths, because clients start programs anywhere.
    fn launch(&self, environment: &Environment) -> Result<Launch, Failure> {
        let mut arguments = vec!["serve".to_owned()];
        let mut variables = Vec::new();
        let mut add = |flag: &str, value: String| arguments.extend([flag.to_owned(), value]);
        if let Some(path) = &self.place.store {
            add("--store", absolute(path)?);
        }
        if let Some(path) = &self.config {
            variables = credential_variables(path, &read_text(path)?)?;
            add("--config", absolute(path)?);
        } else if self.place.store.is_some() || self.place.provider_url.is_some() {
            // The flag names the only source.
        } else if let Some(found) = self.found_file() {
            // With its path it is the same wherever the client starts the program.
            let text = read_text(found.path())?;
            found.check_trust(&text)?;
            variables = credential_variables(found.path(), &text)?;
            let flag = match &found {
                FoundFile::OfUser(_) => "--config",
                // A named file would be trusted after every change, too.
                FoundFile::Here(_) => "--found-config",
            };
            add(flag, absolute(found.path())?);
        } else {
            // With its path, because a client starts programs without the variables of a shell.
            add("--store", absolute(&existing_default_store(environment)?)?);
        }
        if let Some(url) = &self.place.provider_url {
            add("--provider-url", remote(url)?.to_string());
            let cache_root = if self.cache_root.as_os_str().is_empty() {
                Path::new(DEFAULT_CACHE_ROOT)
            } else {
                &self.cache_root
            };
            add("--cache-root", absolute(cache_root)?);
        }
        Ok(Launch { program: program()?, arguments, variables })
    }
}

/// Returns the environment variables that a configuration takes credentials and keys of services from, each once.
fn credential_variables(path: &Path, text: &str) -> Result<Vec<String>, Failure> {
    let settings = check_text(text, path)?;
    let of_sources = settings.sources.iter().filter_map(|source| match source.place.credential() {
        Some(CredentialSettings::Variable(name)) => Some(name.clone()),
        _ => None,
    });
    let keys = [
        settings.embedding.and_then(|embedding| embedding.api_key),
        settings.rerank.and_then(|rerank| rerank.api_key),
    ];
    let of_services = keys.into_iter().flatten().filter_map(|key| match key {
        SecretPlace::Variable(name) => Some(name),
        SecretPlace::File(_) => None,
    });
    let mut variables: Vec<String> = of_sources.chain(of_services).collect();
    variables.sort();
    variables.dedup();
    Ok(variables)
}

/// Refuses a path that the terminal would show in another spelling, which is the path of no file.
fn check_printable(word: &str) -> Result<(), Failure> {
    let shown: String = escape_line(word).into();
    if shown == word {
        return Ok(());
    }
    Err(Failure::new(format!(
        "{shown} has control characters, which a snippet cannot show; rename it, or run with --json"
    )))
}

/// This program's own path.
pub(super) fn program() -> Result<String, Failure> {
    let path = std::env::current_exe()
        .map_err(|error| Failure::new(format!("the program's own path is unknown ({error})")))?;
    Ok(path.to_string_lossy().into_owned())
}

/// A path as any process would find it.
pub(super) fn absolute(path: &Path) -> Result<String, Failure> {
    if is_database(path) {
        return Err(Failure::usage(
            &"name the database in a configuration file and that file with --config, so that no password gets into the \
              configuration of the client",
        ));
    }
    let absolute: PathBuf = std::path::absolute(path)
        .map_err(|error| Failure::new(format!("{} is not a path ({error})", path.display())))?;
    absolute.into_os_string().into_string().map_err(|path| {
        Failure::new(format!("{} is not UTF-8, which a configuration has to be; rename it", path.display()))
    })
}
