//! Opening the sources of a configuration.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use fetchwell_callers::GrantToken;
use fetchwell_core::fit::Protection;
use fetchwell_core::record::RecordData;
use fetchwell_core::terminal::note;
use fetchwell_pdpp::{Connections, Credentials, Pdpp, ProviderUrl};
use fetchwell_postgres::{PostgresStore, PostgresUrl, ReadReplicas};
use fetchwell_source::contract::StoreError;
use fetchwell_source::federation::{Federation, Member};
use fetchwell_source::{AllowedStreams, LazySource, RecordStore, Source, SourceError, Sources};
use fetchwell_sqlite::{SqliteFile, SqliteStore};
use fetchwell_tools::{Payload, Profile, Toolbox};
use fetchwell_upstream::McpServer;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use tokio::runtime::{Builder, Runtime};

use super::embedding::SearchEmbedding;
use super::failure::{Failure, OWNER};
use super::mcp::mcp_server;
use super::rerank::reranking;
use super::secret::{credentials, postgres_pool};
use super::settings::SourceArgs;
use crate::config::{
    ConfiguredEmbedding, CredentialSettings, Environment, FileSettings, McpEndpoint, ReplicaSettings,
    SourcePlace, SourceSettings,
};

/// Error of a configuration without a store.
pub(crate) const NO_STORE: &str = "no store is configured, and this command needs one; name one with --store";

/// An open source with its settings.
#[derive(Debug, Clone)]
pub(crate) struct OpenedSource {
    pub(crate) source: Arc<dyn Source>,
    settings: SourceSettings,
    /// Embedding of a store.
    embedding: Option<SearchEmbedding>,
}

impl OpenedSource {
    /// Opens a source for the token of a caller. Returns `None` if the source has a credential of its own.
    pub(crate) fn for_caller(
        settings: &SourceSettings,
        connections: Connections,
        token: GrantToken,
    ) -> Option<Self> {
        let SourcePlace::Provider { url, .. } = &settings.place else { return None };
        let remote = remote(settings, url, Credentials::of_caller(url, token));
        Some(Self::new(settings, Arc::new(remote.over(connections))))
    }

    /// Creates an open source that is no store, restricted to the streams that its settings allow.
    pub(crate) fn new(settings: &SourceSettings, source: Arc<dyn Source>) -> Self {
        Self { source: allowed(settings, source), settings: settings.clone(), embedding: None }
    }

    /// Returns true if the source was opened with these settings.
    pub(crate) fn is_of(&self, settings: &SourceSettings) -> bool {
        self.settings == *settings
    }

    /// Returns true if the source searches with this embedding model, or has no use for one.
    fn has_embedding(&self, configured: Option<&ConfiguredEmbedding>) -> bool {
        match &self.embedding {
            _ if !self.settings.place.is_store() => true,
            None => configured.is_none(),
            Some(embedding) => embedding.is_of(configured),
        }
    }
}

/// Preparation of a store before its first read.
pub(crate) type Prepare = fn(&SqliteStore) -> Result<(), StoreError>;

/// Prepares nothing: records that the index lacks are added in the background.
pub(crate) const AS_IT_IS: Prepare = |_store| Ok(());

/// Completes the index, for a command that searches once: its process would end before a background thread does.
pub(crate) const WITH_WHOLE_INDEX: Prepare = |store| store.complete_index().map(|_state| ());

impl SourceArgs {
    /// Opens all configured sources, with the checks that need no network.
    pub(crate) fn open(&self, environment: &Environment) -> Result<Sources, Failure> {
        let settings = self.settings(environment)?;
        let source = joined(open_sources(&settings, environment, AS_IT_IS)?, settings.call_deadline)?;
        Ok(source.reranked_by(reranking(&settings, environment)))
    }
}

/// Opens sources. If the only source cannot be opened, or its credential is missing, expired or an owner's, that is an error
/// with the exit code of `pdpp` tools. If there are several sources, a note is printed and the others are served.
pub(crate) fn open_sources(
    settings: &FileSettings,
    environment: &Environment,
    prepare: Prepare,
) -> Result<Vec<OpenedSource>, Failure> {
    open_all(settings, environment, prepare, &[], Opener::Command)
}

/// Opens the sources that are not open yet, for a server. The rules are those of [`open_sources`], but an unset variable is not
/// an error: the client that started the server shows errors of calls, and not the reason why a server ended.
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
    /// A command. Its user reads the error with which it ends.
    Command,
    /// A server. Its client shows only errors of calls.
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
    let configured = settings.embedding.as_ref();
    let embedding = configured.and_then(|configured| search_embedding(configured, environment, open));
    let one = |source: &SourceSettings| {
        let is_same = |known: &&OpenedSource| known.is_of(source) && known.has_embedding(configured);
        if let Some(known) = open.iter().find(is_same) {
            return Ok(known.clone());
        }
        let fresh = if must_open(source) {
            open_source(source, environment, prepare, embedding.as_ref())?
        } else {
            open_or_note(source, environment, prepare, embedding.as_ref(), opener)
        };
        let embedding = embedding.clone().filter(|_| source.place.is_store());
        Ok(OpenedSource { source: allowed(source, fresh), settings: source.clone(), embedding })
    };
    settings.sources.iter().map(one).collect()
}

/// Returns the embedding of a configuration, shared by all stores and with those that are open. If its key cannot be read, a
/// note is printed and searches are by words.
fn search_embedding(
    configured: &ConfiguredEmbedding,
    environment: &Environment,
    open: &[OpenedSource],
) -> Option<SearchEmbedding> {
    let known = open.iter().filter_map(|source| source.embedding.as_ref());
    if let Some(known) = known.into_iter().find(|known| known.is_of(Some(configured))) {
        return Some(known.clone());
    }
    match SearchEmbedding::new(configured, environment) {
        Ok(embedding) => Some(embedding),
        Err(failure) => {
            note(&format_args!("{failure}; searches are by words"));
            None
        }
    }
}

/// Returns true if the credential is in an environment variable that is not set.
fn lacks_variable(source: &SourceSettings, environment: &Environment) -> bool {
    matches!(
        source.place.credential(),
        Some(CredentialSettings::Variable(name)) if environment.credential(name).is_none()
    )
}

/// Combines open sources. A single source is read directly, several as a federation.
pub(crate) fn joined(mut opened: Vec<OpenedSource>, call_deadline: Duration) -> Result<Sources, Failure> {
    if opened.len() == 1
        && let Some(only) = opened.pop()
    {
        let OpenedSource { source, settings, .. } = only;
        return Ok(Sources::single(source, settings.deadline.min(call_deadline)));
    }
    let name = "sources".parse().map_err(|error| Failure::usage(&error))?;
    // Combining and sending the answers takes time within the deadline of the call.
    let page_timeout = call_deadline * 3 / 4;
    let member = |OpenedSource { source, settings, .. }| Member {
        source,
        deadline: settings.deadline.min(page_timeout),
    };
    let members = opened.into_iter().map(member).collect();
    Ok(Federation::with_page_timeout(name, members, page_timeout).into())
}

/// Restricts a source to the streams that its settings allow.
pub(crate) fn allowed(settings: &SourceSettings, source: Arc<dyn Source>) -> Arc<dyn Source> {
    match &settings.streams {
        None => source,
        Some(streams) => Arc::new(AllowedStreams::new(source, streams.clone())),
    }
}

/// Opens one source, without restricting its streams.
pub(crate) fn open_source(
    settings: &SourceSettings,
    environment: &Environment,
    prepare: Prepare,
    embedding: Option<&SearchEmbedding>,
) -> Result<Arc<dyn Source>, Failure> {
    let Opening { source, problem, warning } = open(settings, environment, prepare, embedding)?;
    problem.map_or(Ok(()), Err)?;
    warning.iter().for_each(note);
    Ok(source)
}

/// Opens one source of several. Its problem is noted; if it cannot be opened, each call tries again.
fn open_or_note(
    settings: &SourceSettings,
    environment: &Environment,
    prepare: Prepare,
    embedding: Option<&SearchEmbedding>,
    opener: Opener,
) -> Arc<dyn Source> {
    let name = &settings.name;
    let print_note = |failure: Failure| {
        // No command has the credential of a caller. Calls that would read the source report it.
        if opener == Opener::Command && settings.has_caller_credential() {
            return;
        }
        note(&format_args!("source `{name}`: {failure}; calls report it, and the other sources are used"));
    };
    match open(settings, environment, prepare, embedding) {
        Ok(Opening { source, problem, warning }) => {
            problem.into_iter().for_each(print_note);
            warning.iter().for_each(note);
            source
        }
        Err(error) => {
            print_note(error.into());
            let identity = identity(settings);
            let (settings, environment) = (settings.clone(), environment.clone());
            let embedding = embedding.cloned();
            Arc::new(LazySource::new(name.clone(), identity, move || {
                Ok(open(&settings, &environment, AS_IT_IS, embedding.as_ref())?.source)
            }))
        }
    }
}

/// Source that could be opened.
struct Opening {
    source: Arc<dyn Source>,
    /// Failure of a check. A command ends with it. Among several sources it is noted, and calls check again.
    problem: Option<Failure>,
    warning: Option<String>,
}

/// Opens a source of any kind.
fn open(
    settings: &SourceSettings,
    environment: &Environment,
    prepare: Prepare,
    embedding: Option<&SearchEmbedding>,
) -> Result<Opening, StoreError> {
    let name = &settings.name;
    let query_timeout =
        |embedding: &SearchEmbedding| settings.max_query_timeout().min(embedding.query_timeout());
    Ok(match &settings.place {
        SourcePlace::Store { path } => {
            let mut store = SqliteStore::open(name.clone(), path)?;
            if let Some(embedding) = embedding {
                let embedder = Arc::clone(&embedding.embedder);
                store = store.with_embedder(embedder, embedding.vector_memory(), query_timeout(embedding));
            }
            let problem = prepare(&store).err().map(Failure::from);
            Opening { source: Arc::new(store), problem, warning: None }
        }
        SourcePlace::Postgres { url, replicas } => {
            let mut store = open_postgres(settings, url, replicas, environment)?;
            if let Some(embedding) = embedding {
                store = store.with_embedder(Arc::clone(&embedding.embedder), query_timeout(embedding));
            }
            Opening { source: Arc::new(store), problem: None, warning: None }
        }
        SourcePlace::Provider { url, credential } => {
            if let Err(failure) = refuse_owner(url, environment) {
                let source = Arc::new(refused(settings, failure.message.clone(), CORRECT_SECRET));
                return Ok(Opening { source, problem: Some(failure), warning: None });
            }
            let credentials = credentials(url, credential, environment);
            // The client reads its credential for each request, so a credential that is created later is used.
            let problem = credentials.check_kept(Timestamp::now()).err().map(Failure::from);
            let warning = credentials.exposed_file().map(|file| {
                let file = file.display();
                format!("source `{name}`: other users can read {file}: run `chmod 600 {file}`")
            });
            Opening { source: Arc::new(remote(settings, url, credentials)), problem, warning }
        }
        SourcePlace::Mcp(server) => match mcp_server(settings, server, environment) {
            Ok(server) => Opening { source: Arc::new(server), problem: None, warning: None },
            Err(failure) => {
                let remedy = if settings.signs_callers_in() { USE_SERVER } else { CORRECT_SECRET };
                let source = Arc::new(refused(settings, failure.message.clone(), remedy));
                Opening { source, problem: Some(failure), warning: None }
            }
        },
    })
}

/// Returns the identity that a source has when it is open.
fn identity(settings: &SourceSettings) -> String {
    let name = &settings.name;
    match &settings.place {
        SourcePlace::Store { path } => SqliteStore::identity_at(name, path),
        SourcePlace::Postgres { url, .. } => PostgresStore::identity_at(name, url),
        SourcePlace::Provider { url, .. } => Pdpp::identity_at(name, url),
        SourcePlace::Mcp(server) => match &server.endpoint {
            McpEndpoint::Http { url, .. } => McpServer::identity_at(name, url),
            McpEndpoint::Command { line, .. } => McpServer::identity_of_command(name, line),
        },
    }
}

/// Opens a store as commands see it.
///
/// # Errors
///
/// The place is a record server, or the password of a database cannot be read.
pub(crate) fn open_store(
    place: &SourcePlace,
    environment: &Environment,
) -> Result<Box<dyn RecordStore>, Failure> {
    match place {
        SourcePlace::Store { path } => Ok(Box::new(SqliteFile::new(path.clone()))),
        SourcePlace::Postgres { url, .. } => {
            Ok(Box::new(postgres_pool(url, environment).map_err(StoreError::from)?))
        }
        SourcePlace::Provider { .. } | SourcePlace::Mcp(_) => Err(Failure::usage(&NO_STORE)),
    }
}

/// Opens the store at the path of a file or the URL of a database, as commands see it.
pub(crate) fn open_store_at(path: &Path, environment: &Environment) -> Result<Box<dyn RecordStore>, Failure> {
    let place = SourcePlace::from_store(path, Path::new("")).map_err(|error| Failure::usage(&error))?;
    open_store(&place, environment)
}

/// Prepares a store in PostgreSQL. The first call connects.
pub(crate) fn open_postgres(
    settings: &SourceSettings,
    url: &PostgresUrl,
    replicas: &ReplicaSettings,
    environment: &Environment,
) -> Result<PostgresStore, StoreError> {
    let pool = postgres_pool(url, environment)?;
    let store = PostgresStore::new(settings.name.clone(), pool, settings.deadline);
    let ReplicaSettings { urls, max_lag } = replicas;
    if urls.is_empty() {
        return Ok(store);
    }
    let replicas = urls.iter().map(|url| postgres_pool(url, environment)).collect::<Result<_, _>>()?;
    Ok(store.with_replicas(ReadReplicas::new(replicas, *max_lag)))
}

fn remote(settings: &SourceSettings, url: &ProviderUrl, credentials: Credentials) -> Pdpp {
    Pdpp::new(settings.name.clone(), url.clone(), credentials, settings.deadline)
}

/// Remedy of a source whose secret is missing, or that an owner credential excludes.
const CORRECT_SECRET: &str =
    "correct the variable or the file, and run the command again or restart the server";

/// Remedy of a source that each caller signs in to.
const USE_SERVER: &str = "use it through `fetchwell serve`, where each caller signs in on the page /sources";

/// Returns a source that is not called, because the environment has an owner credential, or lacks a secret.
fn refused(settings: &SourceSettings, problem: String, remedy: &'static str) -> LazySource {
    LazySource::new(settings.name.clone(), identity(settings), move || {
        Err(SourceError::Reauthorize { problem: problem.clone(), remedy: remedy.to_owned() })
    })
}

/// Returns an error if the environment has an owner credential, since remote sources are then refused.
pub(crate) fn refuse_owner(url: &ProviderUrl, environment: &Environment) -> Result<(), Failure> {
    let Some(variable) = environment.owner_credential else { return Ok(()) };
    let message = format!(
        "{variable} is set, and fetchwell accepts only client credentials; unset it and run `pdpp connect {url}`"
    );
    Err(Failure::with_code(&message, OWNER))
}

/// Creates a toolbox for a command.
pub(crate) fn toolbox(
    sources: impl Into<Sources>,
    call_deadline: Duration,
    protection: &Protection,
) -> Result<Arc<Toolbox>, Failure> {
    let toolbox = Toolbox::new(sources, call_deadline)
        .map_err(|error| Failure::new(format!("no random bytes are available ({error})")))?;
    // The user of a command is on this machine.
    let toolbox = toolbox.in_time_zone(TimeZone::system());
    Ok(Arc::new(toolbox.protected_by(Arc::new(protection.clone()))))
}

/// Calls a tool of the standard profile.
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
