//! From settings to open sources.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::runtime::{Builder, Runtime};

use super::failure::{Failure, OWNER};
use super::settings::SourceArgs;
use crate::callers::GrantToken;
use crate::config::{CredentialSettings, Environment, FileSettings, SourcePlace, SourceSettings};
use crate::fit::Protection;
use crate::handle::SourceName;
use crate::record::RecordData;
use crate::source::federation::{Federation, Member};
use crate::source::pdpp::{Connections, Credentials, Pdpp, ProviderUrl};
use crate::source::store::{Store, StoreError};
use crate::source::{AllowedStreams, LazySource, Source, SourceError, Sources};
use crate::terminal::note;
use crate::tools::{Payload, Profile, Toolbox};

/// A source, with what it was opened by.
#[derive(Debug, Clone)]
pub(crate) struct OpenedSource {
    pub(crate) source: Arc<dyn Source>,
    settings: SourceSettings,
}

impl OpenedSource {
    /// A source that is asked with a caller's token; nothing when it is not such a one.
    pub(crate) fn for_caller(
        settings: &SourceSettings,
        connections: Connections,
        token: GrantToken,
    ) -> Option<Self> {
        let SourcePlace::Provider { url, .. } = &settings.place else { return None };
        let credentials = Credentials::of_caller(url, token);
        let remote = Pdpp::new(settings.name.clone(), url.clone(), credentials, settings.deadline);
        let source = allowed(settings, Arc::new(remote.over(connections)));
        Some(Self { source, settings: settings.clone() })
    }

    /// Returns true if the source was opened with these settings.
    pub(crate) fn is_of(&self, settings: &SourceSettings) -> bool {
        self.settings == *settings
    }
}

/// Preparation of a store before its first read.
pub(crate) type Prepare = fn(&Store) -> Result<(), StoreError>;

/// Nothing: what the index lacks is added beside the searches.
pub(crate) const AS_IT_IS: Prepare = |_store| Ok(());

/// For a command that searches once and ends: a thread beside the search would end with it.
pub(crate) const WITH_WHOLE_INDEX: Prepare = |store| store.complete_index().map(|_state| ());

impl SourceArgs {
    /// All that is to be asked, as one source, checked as far as that needs no network.
    pub(crate) fn open(&self, environment: &Environment) -> Result<Sources, Failure> {
        let settings = self.settings(environment)?;
        joined(open_sources(&settings, environment, AS_IT_IS)?, settings.call_deadline)
    }
}

/// Opens sources. One alone that cannot be opened, or whose credential is missing, expired or an owner's, ends the
/// program here, with the exit code that `pdpp` tools agreed on. Among others it is noted, and the others are served.
pub(crate) fn open_sources(
    settings: &FileSettings,
    environment: &Environment,
    prepare: Prepare,
) -> Result<Vec<OpenedSource>, Failure> {
    open_all(settings, environment, prepare, &[], Opener::Command)
}

/// Opens the sources that are not open yet, for a server; others are as they were. The rules are the same, but a variable
/// that is not set does not end the program: the client that started it shows what calls say, and not why it ended.
pub(crate) fn reopen_sources(
    settings: &FileSettings,
    environment: &Environment,
    open: &[OpenedSource],
) -> Result<Vec<OpenedSource>, Failure> {
    open_all(settings, environment, AS_IT_IS, open, Opener::Server)
}

/// The kind of program that opens sources.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Opener {
    /// A command, whose user reads why it ends.
    Command,
    /// A server, whose client does not.
    Server,
}

fn open_all(
    settings: &FileSettings,
    environment: &Environment,
    prepare: Prepare,
    open: &[OpenedSource],
    opener: Opener,
) -> Result<Vec<OpenedSource>, Failure> {
    let must_open = |source: &SourceSettings| {
        settings.sources.len() == 1 && !(opener == Opener::Server && lacks_variable(source, environment))
    };
    let one = |source: &SourceSettings| {
        if let Some(known) = open.iter().find(|known| known.is_of(source)) {
            return Ok(known.clone());
        }
        let fresh = if must_open(source) {
            open_source(source, environment, prepare)?
        } else {
            open_or_note(source, environment, prepare)
        };
        Ok(OpenedSource { source: allowed(source, fresh), settings: source.clone() })
    };
    settings.sources.iter().map(one).collect()
}

/// Returns whether the credential is in an environment variable that is not set.
fn lacks_variable(source: &SourceSettings, environment: &Environment) -> bool {
    matches!(
        &source.place,
        SourcePlace::Provider { credential: CredentialSettings::Variable(name), .. }
            if environment.credential(name).is_none()
    )
}

/// The sources as the one that is asked. A federation of one would add nothing.
pub(crate) fn joined(mut opened: Vec<OpenedSource>, call_deadline: Duration) -> Result<Sources, Failure> {
    if opened.len() == 1
        && let Some(only) = opened.pop()
    {
        return Ok(only.source.into());
    }
    let name = "sources".parse().map_err(|error| Failure::usage(&error))?;
    // What answered has to be put together and sent before the call itself is over.
    let most = call_deadline * 3 / 4;
    let member = |OpenedSource { source, settings }| Member { source, deadline: settings.deadline.min(most) };
    let members = opened.into_iter().map(member).collect();
    Ok(Federation::with_page_timeout(name, members, most).into())
}

/// Restricts a source to the streams that its settings allow.
pub(crate) fn allowed(settings: &SourceSettings, source: Arc<dyn Source>) -> Arc<dyn Source> {
    match &settings.streams {
        None => source,
        Some(streams) => Arc::new(AllowedStreams::new(source, streams.clone())),
    }
}

/// Opens one source, of which all streams are shown.
pub(crate) fn open_source(
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
            note_exposed_file(&settings.name, &credentials);
            Ok(remote(settings, url, credentials))
        }
    }
}

/// Warns of a credential that other users of the machine can read.
fn note_exposed_file(source: &SourceName, credentials: &Credentials) {
    if let Some(file) = credentials.exposed_file() {
        let file = file.display();
        note(&format_args!("source `{source}`: other users can read {file}: run `chmod 600 {file}`"));
    }
}

fn open_or_note(settings: &SourceSettings, environment: &Environment, prepare: Prepare) -> Arc<dyn Source> {
    let name = &settings.name;
    let wrong = |failure: &Failure| {
        note(&format_args!("source `{name}`: {failure}; calls report it, and the other sources are used"));
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
                Arc::new(LazySource::new(settings.name.clone(), identity, open))
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
                return Arc::new(LazySource::new(name.clone(), identity, open));
            }
            let credentials = credentials(url, credential, environment);
            if let Err(error) = credentials.check_kept(Timestamp::now()) {
                wrong(&error.into());
            }
            note_exposed_file(name, &credentials);
            // It looks at its credential at every question, and takes up one that comes later.
            remote(settings, url, credentials)
        }
    }
}

fn remote(settings: &SourceSettings, url: &ProviderUrl, credentials: Credentials) -> Arc<dyn Source> {
    Arc::new(Pdpp::new(settings.name.clone(), url.clone(), credentials, settings.deadline))
}

/// With an owner credential in reach nothing remote is served.
pub(crate) fn refuse_owner(url: &ProviderUrl, environment: &Environment) -> Result<(), Failure> {
    let Some(variable) = environment.owner_credential else { return Ok(()) };
    let message = format!(
        "{variable} is set, and fetchwell accepts only client credentials; unset it and run `pdpp connect {url}`"
    );
    Err(Failure::with_code(&message, OWNER))
}

/// The credentials that a source's settings speak of.
pub(crate) fn credentials(
    url: &ProviderUrl,
    settings: &CredentialSettings,
    environment: &Environment,
) -> Credentials {
    match settings {
        CredentialSettings::PdppCache(root) => Credentials::new(url, root),
        CredentialSettings::Variable(name) => {
            Credentials::in_variable(url, name.clone(), environment.credential(name))
        }
        CredentialSettings::File(path) => Credentials::in_file(url, path.clone()),
        CredentialSettings::Command(line) => Credentials::printed_by(url, line.clone()),
        CredentialSettings::Caller => Credentials::of_caller(url, GrantToken::default()),
    }
}

/// The tools over a source, for a command that ends.
pub(crate) fn toolbox(
    sources: impl Into<Sources>,
    call_deadline: Duration,
    protection: &Protection,
) -> Result<Arc<Toolbox>, Failure> {
    let toolbox = Toolbox::new(sources, call_deadline)
        .map_err(|error| Failure::new(format!("no random bytes are available ({error})")))?;
    Ok(Arc::new(toolbox.protected_by(Arc::new(protection.clone()))))
}

/// Calls a tool as a client would.
pub(crate) async fn call(toolbox: &Toolbox, tool: &str, arguments: RecordData) -> Result<Payload, Failure> {
    match toolbox.call(Profile::Standard, tool, arguments).await {
        Some(answer) => answer.map_err(|error| Failure::from_tool(&error)),
        None => Err(Failure::new(format!("there is no tool `{tool}`"))),
    }
}

/// Creates the runtime for the calls of a command.
pub(crate) fn runtime() -> Result<Runtime, Failure> {
    let runtime = Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| Failure::new(format!("the event queue cannot be created ({error})")))
}
