//! Opening the embedding model of a configuration, for builds and for searches.

use std::path::Path;
use std::sync::{Arc, LazyLock, Weak};
use std::time::Duration;

use fetchwell_core::terminal::note;
use fetchwell_embedding::{
    EmbeddingError, EmbeddingModel, EmbeddingSettings, Persistence, QueryEmbedder, open_model,
};
use fetchwell_postgres::PostgresVectors;
use fetchwell_source::contract::{EmbeddedStreams, StoreError, VectorError};
use fetchwell_source::vectors::StoreVectors;
use fetchwell_sqlite::{SqliteVectors, check_document_dimensions};
use parking_lot::Mutex;
use secrecy::SecretString;

use super::default_store::is_store_at;
use super::failure::Failure;
use super::imports::ImportStore;
use super::secret::{postgres_pool, secret};
use crate::config::{
    ConfigError, ConfiguredEmbedding, Environment, FileSettings, SourceSettings, default_file, read_text,
    settings_of,
};

/// Models of this machine that are open, so that searches and builds share the memory of one.
static LOCAL_MODELS: LazyLock<Mutex<Vec<LocalModel>>> = LazyLock::new(Mutex::default);

/// A model that is open as long as someone uses it.
#[derive(Debug)]
struct LocalModel {
    settings: EmbeddingSettings,
    model: Weak<dyn EmbeddingModel>,
}

/// Returns the embedding settings of a configuration, or an error that says how to add them.
pub(crate) fn embedding_settings(settings: &FileSettings) -> Result<&ConfiguredEmbedding, Failure> {
    settings.embedding.as_ref().ok_or_else(|| {
        Failure::usage(
            &"no embedding model is configured; run `fetchwell embeddings install`, or add [embedding] to a configuration file and name it with --config",
        )
    })
}

/// Returns the streams of a store that a configuration embeds: those that it shows under any name of the store. Text of
/// hidden streams is sent to no model.
pub(crate) fn shown_streams(settings: &FileSettings, store: &ImportStore) -> EmbeddedStreams {
    let is_this = |source: &&SourceSettings| match store {
        ImportStore::File(path) => is_store_at(source, path),
        ImportStore::Postgres(url) => source.place.database() == Some(url),
    };
    let names = settings.sources.iter().filter(is_this);
    let shown: Option<Vec<_>> = names.map(|source| source.streams.clone()).collect();
    match shown {
        Some(lists) if !lists.is_empty() => EmbeddedStreams::only(lists.concat()),
        // The store has a name without a list, or none.
        _ => EmbeddedStreams::default(),
    }
}

/// Returns the streams of a file that a configuration embeds, as [`shown_streams`] does.
pub(crate) fn embedded_streams(settings: &FileSettings, store: &Path) -> EmbeddedStreams {
    shown_streams(settings, &ImportStore::File(store.to_owned()))
}

/// Returns the vectors of a store that a command means.
pub(crate) fn vectors_of(
    store: &ImportStore,
    settings: &FileSettings,
    environment: &Environment,
) -> Result<Box<dyn StoreVectors>, Failure> {
    Ok(open_vectors(store, shown_streams(settings, store), environment)?)
}

/// Returns the vectors of a store of which some streams are embedded. Nothing is opened.
///
/// # Errors
///
/// The password of the database cannot be read.
pub(crate) fn open_vectors(
    store: &ImportStore,
    streams: EmbeddedStreams,
    environment: &Environment,
) -> Result<Box<dyn StoreVectors>, VectorError> {
    Ok(match store {
        ImportStore::File(path) => Box::new(SqliteVectors::new(path, streams)),
        ImportStore::Postgres(url) => {
            let pool = postgres_pool(url, environment).map_err(StoreError::from)?;
            Box::new(PostgresVectors::new(pool, streams))
        }
    })
}

/// Returns a problem with its remedy for each store with projects of documents, if vectors of this many dimensions do not fit
/// the contract of document search. A store that cannot be read has an error of its own when it is opened.
pub(crate) fn dimension_problems(settings: &FileSettings, dimensions: usize) -> Vec<String> {
    let unfit = settings.sources.iter().filter_map(|source| {
        let path = source.place.file()?;
        match check_document_dimensions(path, dimensions, &embedded_streams(settings, path)) {
            Err(VectorError::DocumentDimensions(problem)) => {
                Some(format!("the documents of `{}` cannot be embedded: {problem}", source.name))
            }
            _ => None,
        }
    });
    unfit.collect()
}

/// Returns the [`dimension_problems`] as far as the configuration tells the dimensions of the model.
pub(crate) fn known_dimension_problems(settings: &FileSettings) -> Vec<String> {
    let configured = settings.embedding.as_ref();
    let dimensions = configured.and_then(|configured| configured.settings.known_dimensions());
    dimensions.map(|dimensions| dimension_problems(settings, dimensions)).unwrap_or_default()
}

/// Checks the dimensions of the model at the start of a server. A store that does not fit is an error if it is the only
/// source; otherwise a note is printed, its documents are searched by words, and the other sources are served.
///
/// # Errors
///
/// The only source does not fit.
pub(crate) fn check_dimensions_at_start(settings: &FileSettings) -> Result<(), Failure> {
    for problem in known_dimension_problems(settings) {
        if settings.sources.len() == 1 {
            return Err(Failure::usage(&problem));
        }
        note(&problem);
    }
    Ok(())
}

/// Returns the settings for a command that names its store: those of a named file, or of the file that is found. Returns
/// `None` without a file that has an embedding model. A found file that cannot be used is noted and ignored, because the
/// command does not need it.
pub(crate) fn settings_beside_store(
    config: Option<&Path>,
    environment: &Environment,
) -> Result<Option<FileSettings>, Failure> {
    if let Some(path) = config {
        return Ok(Some(settings_of(&read_text(path)?, path, environment)?));
    }
    let Some(found) = default_file() else { return Ok(None) };
    let read = || -> Result<Option<FileSettings>, ConfigError> {
        let text = read_text(found.path())?;
        if !text.contains("embedding") {
            return Ok(None);
        }
        let settings = settings_of(&text, found.path(), environment)?;
        found.check_trust(&text)?;
        Ok(Some(settings))
    };
    Ok(read().unwrap_or_else(|error| {
        note(&format_args!("nothing is embedded: {error}"));
        None
    }))
}

/// Opens a model with its key, for a command or a search.
pub(crate) fn open_embedding_model(
    configured: &ConfiguredEmbedding,
    environment: &Environment,
) -> Result<Arc<dyn EmbeddingModel>, Failure> {
    open(configured, environment, Persistence::Minutes)
}

/// Opens a model with its key, for builds that are repeated after an error.
pub(crate) fn open_background_model(
    configured: &ConfiguredEmbedding,
    environment: &Environment,
) -> Result<Arc<dyn EmbeddingModel>, Failure> {
    open(configured, environment, Persistence::OneMinute)
}

fn open(
    configured: &ConfiguredEmbedding,
    environment: &Environment,
    persistence: Persistence,
) -> Result<Arc<dyn EmbeddingModel>, Failure> {
    let key = api_key(configured, environment)?;
    Ok(shared_model(&configured.settings, key, persistence)?)
}

/// Reads the key of a service.
fn api_key(
    configured: &ConfiguredEmbedding,
    environment: &Environment,
) -> Result<Option<SecretString>, Failure> {
    configured.api_key.as_ref().map(|place| secret(place, environment, "[embedding]")).transpose()
}

/// Opens a model. A model of this machine is opened once for all of its users.
fn shared_model(
    settings: &EmbeddingSettings,
    key: Option<SecretString>,
    persistence: Persistence,
) -> Result<Arc<dyn EmbeddingModel>, EmbeddingError> {
    if !settings.is_folder() {
        return open_model(settings, key, persistence);
    }
    // The lock is held while a model is read, so that two users at a time read one.
    let mut models = LOCAL_MODELS.lock();
    models.retain(|known| known.model.strong_count() > 0);
    let known = models.iter().find(|known| known.settings == *settings);
    if let Some(model) = known.and_then(|known| known.model.upgrade()) {
        return Ok(model);
    }
    let model = open_model(settings, key, persistence)?;
    models.push(LocalModel { settings: settings.clone(), model: Arc::downgrade(&model) });
    Ok(model)
}

/// Embedder of queries for searches by meaning, with the configuration that it was made for.
#[derive(Debug, Clone)]
pub(crate) struct SearchEmbedding {
    configured: ConfiguredEmbedding,
    pub(crate) embedder: Arc<QueryEmbedder>,
}

impl SearchEmbedding {
    /// Creates the embedder of a configuration. The model is opened by the first query.
    pub(crate) fn new(configured: &ConfiguredEmbedding, environment: &Environment) -> Result<Self, Failure> {
        let key = api_key(configured, environment)?;
        let settings = configured.settings.clone();
        let embedder =
            QueryEmbedder::new(move || shared_model(&settings, key.clone(), Persistence::OneMinute));
        Ok(Self { configured: configured.clone(), embedder: Arc::new(embedder) })
    }

    /// Returns true if the embedder was made for a configuration.
    pub(crate) fn is_of(&self, configured: Option<&ConfiguredEmbedding>) -> bool {
        configured == Some(&self.configured)
    }

    /// Returns the maximum time in which a search waits for the vector of its query.
    pub(crate) fn query_timeout(&self) -> Duration {
        self.configured.query_timeout
    }

    /// Returns the maximum number of bytes of the vectors of a store in memory.
    pub(crate) fn vector_memory(&self) -> usize {
        self.configured.vector_memory
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fetchwell_embedding::ModelPlace;

    #[test]
    fn one_local_model_is_open_at_a_time() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/embedding/tiny");
        let configured = |pad_to| ConfiguredEmbedding {
            settings: EmbeddingSettings { place: ModelPlace::Local { folder: folder.clone() }, pad_to },
            api_key: None,
            vector_memory: 0,
            background: true,
            query_timeout: Duration::ZERO,
        };
        let open = |pad_to| open_embedding_model(&configured(pad_to), &Environment::default()).unwrap();
        let one = open(Some(32));
        assert!(Arc::ptr_eq(&one, &open(Some(32))));
        assert!(!Arc::ptr_eq(&one, &open(Some(64))));
        let before = Arc::downgrade(&one);
        drop(one);
        assert!(before.upgrade().is_none(), "nothing keeps a model open that is not used");
    }
}
