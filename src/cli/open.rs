//! From flags to an open source.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use jiff::Timestamp;
use tokio::runtime::{Builder, Runtime};

use super::failure::{Failure, OWNER};
use crate::config::{DEFAULT_CACHE_ROOT, Environment, FileSettings, SourcePlace, SourceSettings, read_file};
use crate::handle::SourceName;
use crate::record::RecordData;
use crate::source::Source;
use crate::source::pdpp::{Credentials, DEFAULT_DEADLINE, Pdpp, ProviderUrl};
use crate::source::store::Store;
use crate::tools::{DEFAULT_CALL_DEADLINE, Payload, Profile, Toolbox};

/// Which source to use.
#[derive(Debug, Clone, Args)]
pub(super) struct SourceArgs {
    #[command(flatten)]
    pub(super) place: PlaceArgs,

    /// Where `pdpp connect` keeps credentials.
    #[arg(long, value_name = "DIR", requires = "provider_url", default_value = DEFAULT_CACHE_ROOT)]
    pub(super) cache_root: PathBuf,
}

#[derive(Debug, Clone, Args)]
#[group(required = true, multiple = false)]
pub(super) struct PlaceArgs {
    /// An embedded store, made by `fetchwell import`.
    #[arg(long, value_name = "DB")]
    pub(super) store: Option<PathBuf>,

    /// A record server that `pdpp connect` was run for.
    #[arg(long, value_name = "URL")]
    pub(super) provider_url: Option<String>,

    /// A configuration file.
    #[arg(long, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,
}

impl SourceArgs {
    /// What the flags, or the file they name, say.
    pub(super) fn settings(&self) -> Result<FileSettings, Failure> {
        let place = match &self.place {
            PlaceArgs { config: Some(path), .. } => return Ok(read_file(path)?),
            PlaceArgs { provider_url: Some(url), .. } => SourcePlace::Provider {
                url: url.parse::<ProviderUrl>()?,
                cache_root: self.cache_root.clone(),
                deadline: DEFAULT_DEADLINE,
            },
            PlaceArgs { store: Some(path), .. } => SourcePlace::Store { path: path.clone() },
            PlaceArgs { .. } => {
                return Err(Failure::new("name a source: --store, --provider-url or --config"));
            }
        };
        let name = match &place {
            SourcePlace::Store { .. } => "store",
            SourcePlace::Provider { .. } => "provider",
        };
        let name: SourceName = name.parse().map_err(|error| Failure::usage(&error))?;
        Ok(FileSettings { listen: None, source: SourceSettings { name, place } })
    }

    /// The source, checked as far as that needs no network.
    pub(super) fn open(&self, environment: &Environment) -> Result<Arc<dyn Source>, Failure> {
        open_source(&self.settings()?.source, environment)
    }
}

/// Opens a source. A credential that is missing, expired or an owner's ends the program here, with the
/// exit code that `pdpp` tools agreed on.
pub(super) fn open_source(
    settings: &SourceSettings,
    environment: &Environment,
) -> Result<Arc<dyn Source>, Failure> {
    let name = settings.name.clone();
    match &settings.place {
        SourcePlace::Store { path } => Ok(Arc::new(Store::open(name, path)?)),
        SourcePlace::Provider { url, cache_root, deadline } => {
            if let Some(variable) = environment.owner_credential {
                let message = format!(
                    "{variable} is set, and fetchwell takes client credentials only; unset it and run `pdpp connect {url}`"
                );
                return Err(Failure { message, exit_code: OWNER });
            }
            let credentials = Credentials::of(url, cache_root);
            credentials.check(Timestamp::now())?;
            Ok(Arc::new(Pdpp::new(name, url.clone(), credentials, *deadline)))
        }
    }
}

/// The source of a command that searches once and ends. The index of a store is completed first: a thread
/// beside the search, as `serve` has it, would end with the command.
pub(super) fn open_to_search(
    settings: &SourceSettings,
    environment: &Environment,
) -> Result<Arc<dyn Source>, Failure> {
    let SourcePlace::Store { path } = &settings.place else { return open_source(settings, environment) };
    let store = Store::open(settings.name.clone(), path)?;
    store.complete_index()?;
    Ok(Arc::new(store))
}

pub(super) fn toolbox(source: Arc<dyn Source>) -> Result<Arc<Toolbox>, Failure> {
    let toolbox = Toolbox::new(source, DEFAULT_CALL_DEADLINE);
    toolbox.map(Arc::new).map_err(|error| Failure::new(format!("the system gives no random bytes ({error})")))
}

/// Calls a tool as a client would.
pub(super) async fn call(toolbox: &Toolbox, tool: &str, arguments: RecordData) -> Result<Payload, Failure> {
    match toolbox.call(Profile::Standard, tool, arguments).await {
        Some(answer) => answer.map_err(|error| Failure::from_tool(&error)),
        None => Err(Failure::new(format!("there is no tool `{tool}`"))),
    }
}

/// Where the calls of a command run.
pub(super) fn runtime() -> Result<Runtime, Failure> {
    let runtime = Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| Failure::new(format!("the system gives no event queue ({error})")))
}
