//! Recognition of a model by the vector of a fixed text. Services can change the model behind a name.

use fetchwell_embedding::{EmbeddingError, EmbeddingModel, MIN_PROBE_COSINE, ModelIdentity, probe_vector};
use fetchwell_source::contract::VectorError;
use rusqlite::Connection;

use super::codes::{StoredVector, exact_score};
use super::file::Generation;

/// A model's vector of the fixed text.
#[derive(Debug, Clone)]
pub(super) struct ModelProbe(Vec<f32>);

impl ModelProbe {
    /// Embeds the fixed text.
    pub(super) async fn new(model: &dyn EmbeddingModel) -> Result<Self, EmbeddingError> {
        Ok(Self(probe_vector(model).await?))
    }

    /// Returns the form in which a generation has its probe: the scale, then the codes.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let StoredVector { scale, codes } = StoredVector::new(&self.0);
        scale.to_le_bytes().into_iter().chain(codes).collect()
    }

    /// Returns true if the model is the one that made a generation.
    fn is_of(&self, generation: &Generation) -> bool {
        is_near(&self.0, &generation.probe)
    }
}

/// Returns true if a vector of the fixed text and a stored one are of the same model.
fn is_near(probe: &[f32], stored: &[u8]) -> bool {
    let scale = stored.first_chunk().map_or(0.0, |bytes| f32::from_le_bytes(*bytes));
    let codes = stored.get(4..).unwrap_or_default();
    codes.len() == probe.len() * 2 && exact_score(probe, scale, codes) >= MIN_PROBE_COSINE
}

/// The model that made the searched vectors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredModel {
    /// Name of the model, with its place and dimensions.
    pub id: String,
    probe: Vec<u8>,
}

impl StoredModel {
    pub(super) fn new(generation: &Generation) -> Self {
        Self { id: generation.model.clone(), probe: generation.probe.clone() }
    }

    /// Compares the model with the one that embeds queries.
    ///
    /// # Errors
    ///
    /// It has another name, or returns other vectors than before.
    pub fn check(&self, model: &ModelIdentity) -> Result<(), VectorError> {
        if self.id != *model.id {
            return Err(VectorError::OtherModel(self.id.clone()));
        }
        if !is_near(&model.probe, &self.probe) {
            return Err(VectorError::ModelChanged(self.id.clone()));
        }
        Ok(())
    }
}

/// The generations of a file that have the name of a model.
#[derive(Debug, Default)]
pub(super) struct ComparableGenerations {
    /// Generations of this very model: the one that is being built before the current one.
    same: Vec<Generation>,
    /// True if a generation has the model's name, and is of another one.
    has_other: bool,
}

impl ComparableGenerations {
    /// Returns the generations with a model's name, without a call of the model.
    pub(super) fn named(sqlite: &Connection, model: &dyn EmbeddingModel) -> Result<Self, rusqlite::Error> {
        let known = [Generation::building(sqlite)?, Generation::current(sqlite)?];
        let is_named =
            |known: &Generation| known.model == model.id() && known.dimensions == model.dimensions();
        Ok(Self { same: known.into_iter().flatten().filter(is_named).collect(), has_other: false })
    }

    /// Returns the generations that a model has made, by their probes.
    pub(super) fn checked(
        sqlite: &Connection,
        model: &dyn EmbeddingModel,
        probe: &ModelProbe,
    ) -> Result<Self, rusqlite::Error> {
        let named = Self::named(sqlite, model)?.same;
        let (same, other): (Vec<_>, Vec<_>) = named.into_iter().partition(|known| probe.is_of(known));
        Ok(Self { same, has_other: !other.is_empty() })
    }

    /// Returns true if another model has the name now, and no build with it was begun.
    pub(super) fn is_changed(&self) -> bool {
        self.has_other && self.same.is_empty()
    }

    /// Returns the generation that a build of a store continues.
    pub(super) fn resumable(&self, store: &str) -> Option<&Generation> {
        self.same.iter().find(|known| known.store == store)
    }

    /// Returns the ids of the generations with vectors that can be copied, with that of the generation being built.
    pub(super) fn ids(&self, building: i64) -> Vec<i64> {
        self.same.iter().map(|known| known.id).chain([building]).collect()
    }
}
