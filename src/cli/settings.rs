//! From flags, files and the environment to settings, once at the start and again whenever the file changes.

use std::path::{Path, PathBuf};

use clap::Args;

use super::failure::Failure;
use crate::config::{
    ConfigError, CredentialSettings, DEFAULT_CACHE_ROOT, Environment, FileSettings, FoundFile, SourcePlace,
    SourceSettings, default_file, read_text, refuse_blank, settings_of, without_user_info,
};
use crate::handle::SourceName;
use crate::source::pdpp::ProviderUrl;

/// Which source to use.
#[derive(Debug, Clone, Args)]
pub(super) struct SourceArgs {
    #[command(flatten)]
    pub(super) place: PlaceArgs,

    /// A configuration file [default: fetchwell.toml of this folder, else the user's own]
    #[arg(long, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,

    /// A configuration file that is trusted no more than one that was only found: see `fetchwell config trust`
    #[arg(long, value_name = "FILE", conflicts_with_all = ["config", "store", "provider_url"])]
    pub(super) found_config: Option<PathBuf>,

    /// Where `pdpp connect` keeps credentials.
    #[arg(long, value_name = "DIR", requires = "provider_url", default_value = DEFAULT_CACHE_ROOT)]
    pub(super) cache_root: PathBuf,
}

/// One source. A file that is named beside it says the rest, and has none of its own.
#[derive(Debug, Clone, Args)]
#[group(multiple = false)]
pub(super) struct PlaceArgs {
    /// An embedded store, made by `fetchwell import`.
    #[arg(long, value_name = "DB")]
    pub(super) store: Option<PathBuf>,

    /// A record server that `pdpp connect` was run for.
    #[arg(long, value_name = "URL")]
    pub(super) provider_url: Option<String>,
}

/// What is configured, and how to find out what a later text of the file means.
#[derive(Debug, Clone)]
pub(super) struct Configured {
    pub(super) settings: FileSettings,
    pub(super) file: Option<ReadFile>,
    /// The source that a flag names.
    flagged: Option<Flagged>,
}

/// A file as it was read.
#[derive(Debug, Clone)]
pub(super) struct ReadFile {
    named: Named,
    pub(super) text: String,
}

#[derive(Debug, Clone)]
enum Named {
    ByUser(PathBuf),
    Found(FoundFile),
}

#[derive(Debug, Clone)]
struct Flagged {
    flag: &'static str,
    source: SourceSettings,
}

impl SourceArgs {
    /// What the flags, or the file they name, say; without any, what the file says that is found.
    pub(super) fn settings(&self, environment: &Environment) -> Result<FileSettings, Failure> {
        self.configured(environment).map(|configured| configured.settings)
    }

    /// The same, with where it comes from.
    pub(super) fn configured(&self, environment: &Environment) -> Result<Configured, Failure> {
        let flagged = self.flagged()?;
        let named = match (&self.config, &flagged) {
            (Some(path), _) => Named::ByUser(path.clone()),
            (None, None) => Named::Found(self.found_file()?),
            (None, Some(Flagged { source, .. })) => {
                let settings = FileSettings::of(source.clone(), environment)?;
                return Ok(Configured { settings, file: None, flagged });
            }
        };
        let file = ReadFile { text: read_text(named.path())?, named };
        let settings = file.meaning(&file.text, flagged.as_ref(), environment)?;
        Ok(Configured { settings, file: Some(file), flagged })
    }

    /// Returns the file that is used without `--config`.
    pub(super) fn found_file(&self) -> Result<FoundFile, Failure> {
        self.found_config.clone().map_or_else(found_file, |path| Ok(FoundFile::Here(path)))
    }

    fn flagged(&self) -> Result<Option<Flagged>, Failure> {
        let (flag, name, place) = match &self.place {
            PlaceArgs { provider_url: Some(url), .. } => {
                let credential = CredentialSettings::PdppCache(self.cache_root.clone());
                let place = SourcePlace::Provider { url: remote(url)?, credential };
                ("--provider-url", "provider", place)
            }
            PlaceArgs { store: Some(path), .. } => {
                ("--store", "store", SourcePlace::Store { path: path.clone() })
            }
            PlaceArgs { .. } => return Ok(None),
        };
        let name: SourceName = name.parse().map_err(|error| Failure::usage(&error))?;
        Ok(Some(Flagged { flag, source: SourceSettings::new(name, place) }))
    }
}

impl Configured {
    /// What another text of the file means. Without a file there is none.
    pub(super) fn again(&self, text: &str, environment: &Environment) -> Result<FileSettings, Failure> {
        match &self.file {
            None => Ok(self.settings.clone()),
            Some(file) => {
                refuse_blank(text, file.path())?;
                file.meaning(text, self.flagged.as_ref(), environment)
            }
        }
    }
}

impl ReadFile {
    pub(super) fn path(&self) -> &Path {
        self.named.path()
    }

    fn meaning(
        &self,
        text: &str,
        flagged: Option<&Flagged>,
        environment: &Environment,
    ) -> Result<FileSettings, Failure> {
        let path = self.path();
        let settings = settings_of(text, path, environment)?;
        if let Named::Found(found) = &self.named {
            found.check_trust(text)?;
        }
        match flagged {
            None if settings.sources.is_empty() => Err(ConfigError::Empty(path.to_owned()).into()),
            None => Ok(settings),
            Some(Flagged { source, .. }) if settings.sources.is_empty() => {
                Ok(FileSettings { sources: vec![source.clone()], ..settings })
            }
            Some(Flagged { flag, .. }) => Err(Failure::usage(&format_args!(
                "{} has sources of its own, and {flag} names another; leave {flag} out, or take the sources out of the file",
                path.display()
            ))),
        }
    }
}

impl Named {
    fn path(&self) -> &Path {
        match self {
            Self::ByUser(path) => path,
            Self::Found(found) => found.path(),
        }
    }
}

/// The URL of a record server as it stands on the command line.
pub(super) fn remote(text: &str) -> Result<ProviderUrl, Failure> {
    let text = without_user_info(text).map_err(|problem| Failure::usage(&problem))?;
    Ok(text.parse::<ProviderUrl>()?)
}

/// The configuration file that is there although none was named.
pub(super) fn found_file() -> Result<FoundFile, Failure> {
    default_file().ok_or_else(|| {
        Failure::usage(
            &"name a source: --store, --provider-url or --config, or add one with `fetchwell source add`",
        )
    })
}
