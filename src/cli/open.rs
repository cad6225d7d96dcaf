//! From flags to an open source.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use jiff::Timestamp;
use tokio::runtime::{Builder, Runtime};

use super::failure::{Failure, OWNER};
use super::print::note;
use crate::config::{
    CredentialSettings, DEFAULT_CACHE_ROOT, Environment, FileSettings, FoundFile, SourcePlace,
    SourceSettings, default_file, read_file,
};
use crate::handle::SourceName;
use crate::record::RecordData;
use crate::source::federation::{Federation, Member};
use crate::source::pdpp::{Credentials, Pdpp, ProviderUrl};
use crate::source::store::{Store, StoreError};
use crate::source::{AllowedStreams, Source, SourceError, Unopened};
use crate::tools::{Payload, Profile, Toolbox};

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
#[group(multiple = false)]
pub(super) struct PlaceArgs {
    /// An embedded store, made by `fetchwell import`.
    #[arg(long, value_name = "DB")]
    pub(super) store: Option<PathBuf>,

    /// A record server that `pdpp connect` was run for.
    #[arg(long, value_name = "URL")]
    pub(super) provider_url: Option<String>,

    /// A configuration file [default: fetchwell.toml of this folder, else the user's own]
    #[arg(long, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,
}

/// A source, with what goes for it among others.
pub(super) struct OpenedSource {
    pub(super) source: Arc<dyn Source>,
    /// How long a question to it may take.
    pub(super) deadline: Duration,
}

/// What is done with a store before it is asked.
pub(super) type Prepare = fn(&Store) -> Result<(), StoreError>;

/// Nothing: what the index lacks is added beside the searches.
pub(super) const AS_IT_IS: Prepare = |_store| Ok(());

/// For a command that searches once and ends: a thread beside the search would end with it.
pub(super) const WITH_WHOLE_INDEX: Prepare = |store| store.complete_index().map(|_state| ());

impl SourceArgs {
    /// What the flags, or the file they name, say; without any, what the file says that is found.
    pub(super) fn settings(&self) -> Result<FileSettings, Failure> {
        let (name, place) = match &self.place {
            PlaceArgs { config: Some(path), .. } => return Ok(read_file(path)?),
            PlaceArgs { provider_url: Some(url), .. } => {
                let credential = CredentialSettings::PdppCache(self.cache_root.clone());
                ("provider", SourcePlace::Provider { url: url.parse::<ProviderUrl>()?, credential })
            }
            PlaceArgs { store: Some(path), .. } => ("store", SourcePlace::Store { path: path.clone() }),
            PlaceArgs { .. } => return found_settings(),
        };
        let name: SourceName = name.parse().map_err(|error| Failure::usage(&error))?;
        Ok(FileSettings::of(SourceSettings::new(name, place)))
    }

    /// All that is to be asked, as one source, checked as far as that needs no network.
    pub(super) fn open(&self, environment: &Environment) -> Result<Arc<dyn Source>, Failure> {
        let settings = self.settings()?;
        joined(open_sources(&settings, environment, AS_IT_IS)?, settings.call_deadline)
    }
}

/// The configuration file that is there although none was named.
pub(super) fn found_file() -> Result<FoundFile, Failure> {
    default_file().ok_or_else(|| {
        Failure::usage(
            &"name a source: --store, --provider-url or --config, or add one with `fetchwell source add`",
        )
    })
}

fn found_settings() -> Result<FileSettings, Failure> {
    let found = found_file()?;
    let settings = read_file(found.path())?;
    match found.overreaching(&settings) {
        None => Ok(settings),
        Some(source) => Err(Failure::new(untrusted(found.path(), &source.name))),
    }
}

/// Why a file that was found is not used as it is.
pub(super) fn untrusted(path: &Path, source: &SourceName) -> String {
    format!(
        "source `{source}` of {path} gets its credential from a variable, a file or a command, which a file that was only \
         found may not ask for; if you trust it, name it: --config {path}",
        path = path.display()
    )
}

/// Opens sources. One alone that cannot be opened, or whose credential is missing, expired or an owner's, ends the
/// program here, with the exit code that `pdpp` tools agreed on. Among others it is noted, and the others are served.
pub(super) fn open_sources(
    settings: &FileSettings,
    environment: &Environment,
    prepare: Prepare,
) -> Result<Vec<OpenedSource>, Failure> {
    if let [only] = settings.sources.as_slice() {
        return Ok(vec![opened(only, open_source(only, environment, prepare)?)]);
    }
    let open = |source| opened(source, open_among_others(source, environment, prepare));
    Ok(settings.sources.iter().map(open).collect())
}

/// The sources as the one that is asked. A federation of one would add nothing.
pub(super) fn joined(
    mut opened: Vec<OpenedSource>,
    call_deadline: Duration,
) -> Result<Arc<dyn Source>, Failure> {
    if opened.len() == 1
        && let Some(only) = opened.pop()
    {
        return Ok(only.source);
    }
    let name = "sources".parse().map_err(|error| Failure::usage(&error))?;
    // What answered has to be put together and sent before the call itself is over.
    let most = call_deadline * 3 / 4;
    let member = |OpenedSource { source, deadline }| Member { source, deadline: deadline.min(most) };
    let federation = Federation::new(name, opened.into_iter().map(member).collect());
    Ok(Arc::new(federation.with_patience(most)))
}

fn opened(settings: &SourceSettings, source: Arc<dyn Source>) -> OpenedSource {
    let source = allowed(settings, source);
    OpenedSource { source, deadline: settings.deadline }
}

/// What may be seen of a source.
pub(super) fn allowed(settings: &SourceSettings, source: Arc<dyn Source>) -> Arc<dyn Source> {
    match &settings.streams {
        None => source,
        Some(streams) => Arc::new(AllowedStreams::new(source, streams.clone())),
    }
}

/// Opens one source, of which all streams are shown.
pub(super) fn open_source(
    settings: &SourceSettings,
    environment: &Environment,
    prepare: Prepare,
) -> Result<Arc<dyn Source>, Failure> {
    match &settings.place {
        SourcePlace::Store { path } => {
            let store = Store::open(settings.name.clone(), path)?;
            prepare(&store)?;
            Ok(Arc::new(store))
        }
        SourcePlace::Provider { url, credential } => {
            refuse_owner(url, environment)?;
            let credentials = credentials(url, credential, environment);
            credentials.check_kept(Timestamp::now())?;
            Ok(remote(settings, url, credentials))
        }
    }
}

fn open_among_others(
    settings: &SourceSettings,
    environment: &Environment,
    prepare: Prepare,
) -> Arc<dyn Source> {
    let name = &settings.name;
    let wrong = |failure: &Failure| {
        note(&format_args!("source `{name}`: {failure}; the other sources are used meanwhile"));
    };
    match &settings.place {
        SourcePlace::Store { path } => match Store::open(name.clone(), path) {
            Ok(store) => {
                if let Err(error) = prepare(&store) {
                    wrong(&error.into());
                }
                Arc::new(store)
            }
            Err(error) => {
                wrong(&error.into());
                let (name, path) = (name.clone(), path.clone());
                let identity = Store::identity_at(&name, &path);
                let open = move || -> Result<Arc<dyn Source>, SourceError> {
                    Ok(Arc::new(Store::open(name.clone(), &path)?))
                };
                Arc::new(Unopened::new(settings.name.clone(), identity, open))
            }
        },
        SourcePlace::Provider { url, credential } => {
            if let Err(failure) = refuse_owner(url, environment) {
                wrong(&failure);
                let identity = Pdpp::identity_at(name, url);
                let problem = failure.message;
                let open = move || -> Result<Arc<dyn Source>, SourceError> {
                    let remedy = "unset the variable and start fetchwell again".to_owned();
                    Err(SourceError::Reauthorize { problem: problem.clone(), remedy })
                };
                return Arc::new(Unopened::new(name.clone(), identity, open));
            }
            let credentials = credentials(url, credential, environment);
            if let Err(error) = credentials.check_kept(Timestamp::now()) {
                wrong(&error.into());
            }
            // It looks at its credential at every question, and takes up one that comes later.
            remote(settings, url, credentials)
        }
    }
}

fn remote(settings: &SourceSettings, url: &ProviderUrl, credentials: Credentials) -> Arc<dyn Source> {
    Arc::new(Pdpp::new(settings.name.clone(), url.clone(), credentials, settings.deadline))
}

/// With an owner credential in reach nothing remote is served.
pub(super) fn refuse_owner(url: &ProviderUrl, environment: &Environment) -> Result<(), Failure> {
    let Some(variable) = environment.owner_credential else { return Ok(()) };
    let message = format!(
        "{variable} is set, and fetchwell takes client credentials only; unset it and run `pdpp connect {url}`"
    );
    Err(Failure { message, exit_code: OWNER })
}

/// The credentials that a source's settings speak of.
pub(super) fn credentials(
    url: &ProviderUrl,
    settings: &CredentialSettings,
    environment: &Environment,
) -> Credentials {
    match settings {
        CredentialSettings::PdppCache(root) => Credentials::of(url, root),
        CredentialSettings::Variable(name) => {
            Credentials::in_variable(url, name.clone(), environment.credential(name))
        }
        CredentialSettings::File(path) => Credentials::in_file(url, path.clone()),
        CredentialSettings::Command(line) => Credentials::printed_by(url, line.clone()),
    }
}

pub(super) fn toolbox(source: Arc<dyn Source>, call_deadline: Duration) -> Result<Arc<Toolbox>, Failure> {
    let toolbox = Toolbox::new(source, call_deadline);
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
