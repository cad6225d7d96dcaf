//! Settings of an embedding model, as a configuration names it.

use std::path::PathBuf;
use std::sync::Arc;

use secrecy::SecretString;

use super::error::EmbeddingError;
use super::http::{Endpoint, HttpModel};
use super::model::{EmbeddingModel, Persistence};

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
    /// Returns true if no text leaves this machine.
    #[must_use]
    pub fn is_on_this_machine(&self) -> bool {
        match &self.place {
            ModelPlace::Http { endpoint, .. } => endpoint.url().is_this_machine(),
            ModelPlace::Local { .. } => true,
        }
    }

    /// Returns true if the model is a folder with an ONNX file, which takes much memory when it is open.
    #[must_use]
    pub fn is_folder(&self) -> bool {
        matches!(self.place, ModelPlace::Local { .. })
    }

    /// Returns the dimensions of stored vectors, or `None` for a model that has to be opened to know them.
    #[must_use]
    pub fn known_dimensions(&self) -> Option<usize> {
        match &self.place {
            ModelPlace::Http { dimensions, .. } => Some(self.pad_to.unwrap_or(*dimensions)),
            ModelPlace::Local { .. } => self.pad_to,
        }
    }

    /// Returns true if the model of these settings has an identity, without opening the model: by its files, or by its name.
    ///
    /// # Errors
    ///
    /// The files of a local model cannot be read.
    pub fn is_identity(&self, id: &str) -> Result<bool, EmbeddingError> {
        match &self.place {
            ModelPlace::Http { endpoint, model, dimensions } => {
                Ok(HttpModel::identity(endpoint, model, *dimensions, self.pad_to) == id)
            }
            #[cfg(feature = "local-embeddings")]
            ModelPlace::Local { folder } => super::LocalModel::is_identity(folder, self.pad_to, id),
            #[cfg(not(feature = "local-embeddings"))]
            ModelPlace::Local { .. } => Err(EmbeddingError::LocalNotSupported),
        }
    }

    /// Describes the data that leaves this machine, and the place it goes to.
    #[must_use]
    pub fn disclosure(&self) -> String {
        match &self.place {
            ModelPlace::Http { endpoint, model, .. } if endpoint.url().is_this_machine() => {
                format!(
                    "the text of records and queries goes to {model} at {}, on this machine",
                    endpoint.url()
                )
            }
            ModelPlace::Http { endpoint, model, .. } => {
                format!(
                    "the text of records and queries leaves this machine: it goes to {model} at {}",
                    endpoint.url()
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
    persistence: Persistence,
) -> Result<Arc<dyn EmbeddingModel>, EmbeddingError> {
    match &settings.place {
        ModelPlace::Http { endpoint, model, dimensions } => {
            let model = HttpModel::new(endpoint.clone(), model.clone(), *dimensions, settings.pad_to, key)?;
            Ok(Arc::new(model.with_persistence(persistence)))
        }
        #[cfg(feature = "local-embeddings")]
        ModelPlace::Local { folder } => Ok(Arc::new(super::LocalModel::open(folder, settings.pad_to)?)),
        #[cfg(not(feature = "local-embeddings"))]
        ModelPlace::Local { .. } => Err(EmbeddingError::LocalNotSupported),
    }
}
