//! Settings from flags, configuration files and the environment, at startup and after each change of the file.

use std::path::{Path, PathBuf};

use clap::Args;
use fetchwell_core::handle::SourceName;
use fetchwell_http::ConfigurationView;
use fetchwell_pdpp::ProviderUrl;

use super::default_store::{default_store_to_fill, existing_default_store};
use super::failure::Failure;
use crate::config::{
    ConfigError, CredentialSettings, DEFAULT_CACHE_ROOT, Environment, FileSettings, FoundFile, SourcePlace,
    SourceSettings, configuration_view, default_file, read_text, refuse_blank, settings_of,
    without_user_info,
};

/// The source to use.
#[derive(Debug, Clone, Args)]
pub(crate) struct SourceArgs {
    #[command(flatten)]
    pub(crate) place: PlaceArgs,

    /// A configuration file [default: fetchwell.toml in this folder, or else the one in your configuration folder]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// A configuration file, read with the trust of a file that was only found: see `fetchwell config trust`
    #[arg(long, value_name = "FILE", conflicts_with_all = ["config", "store", "provider_url"])]
    pub(crate) found_config: Option<PathBuf>,

    /// The folder in which `pdpp connect` keeps credentials.
    #[arg(long, value_name = "DIR", requires = "provider_url", default_value = DEFAULT_CACHE_ROOT)]
    pub(crate) cache_root: PathBuf,
}

/// One source. A file that is named beside it says the rest, and has none of its own.
#[derive(Debug, Clone, Args)]
#[group(multiple = false)]
pub(crate) struct PlaceArgs {
    /// A store, created by `fetchwell import`: a file, or the URL of a PostgreSQL database [default: `FETCHWELL_STORE`,
    /// or else the default store, if no configuration names sources]
    #[arg(long, value_name = "DB")]
    pub(crate) store: Option<PathBuf>,

    /// A record server, connected with `pdpp connect`.
    #[arg(long, value_name = "URL")]
    pub(crate) provider_url: Option<String>,
}

/// Settings, with the data to parse a later text of the file.
#[derive(Debug, Clone)]
pub(crate) struct ConfiguredSettings {
    pub(crate) settings: FileSettings,
    pub(crate) file: Option<ReadFile>,
    /// Source that a flag names.
    flag_source: Option<FlagSource>,
}

/// Configuration file as it was read.
#[derive(Debug, Clone)]
pub(crate) struct ReadFile {
    named: FileOrigin,
    pub(crate) text: String,
}

#[derive(Debug, Clone)]
enum FileOrigin {
    ByUser(PathBuf),
    Found(FoundFile),
}

#[derive(Debug, Clone)]
struct FlagSource {
    flag: &'static str,
    source: SourceSettings,
}

impl SourceArgs {
    /// Returns the settings from the flags or the named file, otherwise from the file that is found.
    pub(crate) fn settings(&self, environment: &Environment) -> Result<FileSettings, Failure> {
        self.configured(environment).map(|configured| configured.settings)
    }

    /// Returns the settings with their origin.
    pub(crate) fn configured(&self, environment: &Environment) -> Result<ConfiguredSettings, Failure> {
        let flag_source = self.flag_source()?;
        let named = match (&self.config, &flag_source) {
            (Some(path), _) => Some(FileOrigin::ByUser(path.clone())),
            (None, None) => self.found_file().map(FileOrigin::Found),
            (None, Some(_)) => None,
        };
        let Some(named) = named else {
            let source = match &flag_source {
                Some(flag) => flag.source.clone(),
                None => embedded_store(&existing_default_store(environment)?)?,
            };
            let settings = FileSettings::new(source, environment)?;
            return Ok(ConfiguredSettings { settings, file: None, flag_source });
        };
        let file = ReadFile { text: read_text(named.path())?, named };
        let settings = file.parse(&file.text, flag_source.as_ref(), environment)?;
        Ok(ConfiguredSettings { settings, file: Some(file), flag_source })
    }

    /// Returns the file that is used without `--config`, if there is one.
    pub(crate) fn found_file(&self) -> Option<FoundFile> {
        self.found_config.clone().map(FoundFile::Here).or_else(default_file)
    }

    fn flag_source(&self) -> Result<Option<FlagSource>, Failure> {
        let (flag, source) = match &self.place {
            PlaceArgs { provider_url: Some(url), .. } => {
                let credential = CredentialSettings::PdppCache(self.cache_root.clone());
                let place = SourcePlace::Provider { url: remote(url)?, credential };
                let name = "provider".parse().map_err(|error| Failure::usage(&error))?;
                ("--provider-url", SourceSettings::new(name, place))
            }
            PlaceArgs { store: Some(path), .. } => ("--store", embedded_store(path)?),
            PlaceArgs { .. } => return Ok(None),
        };
        Ok(Some(FlagSource { flag, source }))
    }
}

impl ConfiguredSettings {
    /// Parses another text of the file. Without a file the settings stay the same.
    pub(crate) fn reparse(&self, text: &str, environment: &Environment) -> Result<FileSettings, Failure> {
        match &self.file {
            None => Ok(self.settings.clone()),
            Some(file) => {
                refuse_blank(text, file.path())?;
                file.parse(text, self.flag_source.as_ref(), environment)
            }
        }
    }
}

impl ConfiguredSettings {
    /// Returns the keys of a text of the file without secrets, for operators.
    pub(crate) fn view(&self, text: &str) -> ConfigurationView {
        let view = self.file.as_ref().map(|file| configuration_view(text, file.path()));
        view.and_then(Result::ok).unwrap_or_default()
    }
}

impl ReadFile {
    pub(crate) fn path(&self) -> &Path {
        self.named.path()
    }

    fn parse(
        &self,
        text: &str,
        flag_source: Option<&FlagSource>,
        environment: &Environment,
    ) -> Result<FileSettings, Failure> {
        let path = self.path();
        let mut settings = settings_of(text, path, environment)?;
        if let FileOrigin::Found(found) = &self.named {
            found.check_trust(text)?;
        }
        for warning in &settings.warnings {
            tracing::warn!("{}: {warning}", path.display());
        }
        match flag_source {
            // Callers are granted sources by name, so a server for callers names its sources.
            None if settings.sources.is_empty() && settings.auth.is_some() => {
                return Err(ConfigError::Empty(path.to_owned()).into());
            }
            None if settings.sources.is_empty() => {
                let store = if settings.imports.is_empty() {
                    existing_default_store(environment)
                        .map_err(|_missing| ConfigError::Empty(path.to_owned()))?
                } else {
                    default_store_to_fill(environment)?
                };
                settings.sources = vec![embedded_store(&store)?];
            }
            None => {}
            Some(FlagSource { source, .. }) if settings.sources.is_empty() => {
                settings.sources = vec![source.clone()];
            }
            Some(FlagSource { flag, .. }) => {
                return Err(Failure::usage(&format_args!(
                    "{} has sources of its own, and {flag} names another; remove {flag}, or remove the sources from the file",
                    path.display()
                )));
            }
        }
        Ok(settings)
    }
}

impl FileOrigin {
    fn path(&self) -> &Path {
        match self {
            Self::ByUser(path) => path,
            Self::Found(found) => found.path(),
        }
    }
}

/// Parses the URL of a record server from the command line.
pub(crate) fn remote(text: &str) -> Result<ProviderUrl, Failure> {
    let text = without_user_info(text).map_err(|problem| Failure::usage(&problem))?;
    Ok(text.parse::<ProviderUrl>()?)
}

/// Returns the settings of a store that no configuration names: a file, or the URL of a database.
fn embedded_store(path: &Path) -> Result<SourceSettings, Failure> {
    let name: SourceName = "store".parse().map_err(|error| Failure::usage(&error))?;
    let place = SourcePlace::from_store(path, Path::new("")).map_err(|error| Failure::usage(&error))?;
    Ok(SourceSettings::new(name, place))
}

/// Returns the configuration file that is found if none was named.
pub(crate) fn found_file() -> Result<FoundFile, Failure> {
    default_file().ok_or_else(|| {
        Failure::usage(&"there is no configuration; name one, or make one with `fetchwell source add`")
    })
}
