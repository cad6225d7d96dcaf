//! Settings of an embedding model, as a configuration names it.

use std::path::PathBuf;
use std::sync::Arc;

use secrecy::SecretString;

use super::error::EmbeddingError;
use super::http::{Endpoint, HttpModel};
use super::model::EmbeddingModel;

/// Settings of an embedding model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmbeddingSettings {
    /// Location of the model.
    pub place: ModelPlace,
    /// Dimensions to which vectors are padded with zeros; `None` to keep those of the model.
    pub pad_to: Option<usize>,
}

/// The location of a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModelPlace {
    /// An HTTP service.
    Http {
        /// Its URL, with the shape of its requests.
        endpoint: Endpoint,
        /// Name of the model, as the service knows it.
        model: String,
        /// Dimensions of its vectors.
        dimensions: usize,
    },
    /// A folder with an ONNX file.
    Local {
        /// Path of the folder.
        folder: PathBuf,
    },
}

impl EmbeddingSettings {
    /// Describes the data that leaves this machine, and the place it goes to.
    #[must_use]
    pub fn disclosure(&self) -> String {
        match &self.place {
            ModelPlace::Http { endpoint, model, .. } if endpoint.is_this_machine() => {
                format!("the text of records and queries goes to {model} at {endpoint}, on this machine")
            }
            ModelPlace::Http { endpoint, model, .. } => {
                format!(
                    "the text of records and queries leaves this machine: it goes to {model} at {endpoint}"
                )
            }
            ModelPlace::Local { folder } => {
                format!("nothing leaves this machine: the model is in {}", folder.display())
            }
        }
    }
}

/// Opens a model. A local model is read from its files; a service is not called.
///
/// # Errors
///
/// The files of a local model are missing or cannot be used, or no client can be created.
pub fn open_model(
    settings: &EmbeddingSettings,
    key: Option<SecretString>,
) -> Result<Arc<dyn EmbeddingModel>, EmbeddingError> {
    match &settings.place {
        ModelPlace::Http { endpoint, model, dimensions } => {
            let model = HttpModel::new(endpoint.clone(), model.clone(), *dimensions, settings.pad_to, key)?;
            Ok(Arc::new(model))
        }
        #[cfg(feature = "local-embeddings")]
        ModelPlace::Local { folder } => Ok(Arc::new(super::LocalModel::open(folder, settings.pad_to)?)),
        #[cfg(not(feature = "local-embeddings"))]
        ModelPlace::Local { .. } => Err(EmbeddingError::LocalNotSupported),
    }
}
