//! Settings of a reranker, as a configuration names it.

use std::path::PathBuf;
use std::sync::Arc;

use secrecy::SecretString;

use super::rerank::{HttpReranker, RerankEndpoint, RerankError, Reranker};

/// The location of a reranker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RerankerPlace {
    /// An HTTP service.
    Http {
        /// Its URL, with the shape of its requests.
        endpoint: RerankEndpoint,
        /// Name of the model, unless the service has only one.
        model: Option<String>,
    },
    /// A folder with the ONNX file of a cross-encoder.
    Local {
        /// Path of the folder.
        folder: PathBuf,
    },
}

/// Settings of a reranker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RerankSettings {
    /// Location of the model.
    pub place: RerankerPlace,
}

impl RerankSettings {
    /// Returns the name of the model, or of the provider if the model has none.
    #[must_use]
    pub fn name(&self) -> &str {
        match &self.place {
            RerankerPlace::Http { model, .. } => model.as_deref().unwrap_or("http"),
            RerankerPlace::Local { .. } => "local",
        }
    }

    /// Describes the data that leaves this machine, and the place it goes to.
    #[must_use]
    pub fn disclosure(&self) -> String {
        match &self.place {
            RerankerPlace::Http { endpoint, .. } if endpoint.url().is_this_machine() => {
                format!("queries and passages of the records found go to {}, on this machine", endpoint.url())
            }
            RerankerPlace::Http { endpoint, .. } => {
                format!(
                    "queries and passages of the records found leave this machine: they go to {}",
                    endpoint.url()
                )
            }
            RerankerPlace::Local { folder } => {
                format!("nothing leaves this machine: the rerank model is in {}", folder.display())
            }
        }
    }
}

/// Opens a reranker. A service is not called, and a local model is read at its first use.
///
/// # Errors
///
/// No client can be created, or the binary was built without local models.
pub fn open_reranker(
    settings: &RerankSettings,
    key: Option<SecretString>,
) -> Result<Arc<dyn Reranker>, RerankError> {
    match &settings.place {
        RerankerPlace::Http { endpoint, model } => {
            Ok(Arc::new(HttpReranker::new(endpoint.clone(), model.clone(), key)?))
        }
        #[cfg(feature = "local-embeddings")]
        RerankerPlace::Local { folder } => Ok(Arc::new(lazy::LazyReranker::new(folder.clone()))),
        #[cfg(not(feature = "local-embeddings"))]
        RerankerPlace::Local { .. } => Err(super::EmbeddingError::LocalNotSupported.into()),
    }
}

/// A local model that is read at its first use.
#[cfg(feature = "local-embeddings")]
mod lazy {
    use std::path::PathBuf;
    use std::sync::Arc;

    use async_trait::async_trait;
    use parking_lot::Mutex;
    use tokio::task::spawn_blocking;

    use crate::{LocalReranker, RerankError, Reranker};

    /// A model in a folder, with the model when it was read.
    #[derive(Debug)]
    pub(crate) struct LazyReranker {
        folder: PathBuf,
        opened: Arc<Mutex<Option<Arc<LocalReranker>>>>,
    }

    impl LazyReranker {
        pub(crate) fn new(folder: PathBuf) -> Self {
            Self { folder, opened: Arc::default() }
        }
    }

    #[async_trait]
    impl Reranker for LazyReranker {
        async fn scores(&self, query: &str, passages: &[String]) -> Result<Vec<f32>, RerankError> {
            let (folder, opened) = (self.folder.clone(), Arc::clone(&self.opened));
            // A search that does not wait for the model leaves it to the next one.
            let open = spawn_blocking(move || {
                let mut opened = opened.lock();
                if let Some(known) = opened.as_ref() {
                    return Ok(Arc::clone(known));
                }
                let fresh = Arc::new(LocalReranker::open(&folder)?);
                *opened = Some(Arc::clone(&fresh));
                Ok::<_, RerankError>(fresh)
            });
            let place = || self.folder.display().to_string();
            let ended = |_ended| RerankError::InvalidResponse {
                place: place(),
                problem: "it was stopped".to_owned(),
            };
            open.await.map_err(ended)??.scores(query, passages).await
        }
    }
}
