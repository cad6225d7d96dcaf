//! The models that made vectors of a database.

use fetchwell_core::saturate::saturated;
use fetchwell_embedding::{MIN_PROBE_COSINE, ModelIdentity};
use fetchwell_source::SourceError;
use fetchwell_source::contract::VectorError;
use tokio_postgres::{Client, Error, Row};

use crate::tables::{PostgresTables, text};

/// A model that made vectors.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct StoredModel {
    /// Row id, which is also the label of the model's vectors.
    pub(crate) id: i64,
    /// Name of the model, with its place and dimensions.
    pub(crate) name: String,
    pub(crate) dimensions: usize,
    probe: Vec<f32>,
}

/// Query for all models.
const SELECT: &str = "SELECT id, model, dimensions, probe FROM fetchwell.embedding_models ORDER BY id";

/// Query for the models with searched vectors.
const SELECT_SEARCHED: &str =
    "SELECT id, model, dimensions, probe FROM fetchwell.embedding_models WHERE is_searched ORDER BY id";

impl StoredModel {
    /// Returns all models of a database.
    pub(crate) async fn all(client: &Client) -> Result<Vec<Self>, Error> {
        Ok(client.query(SELECT, &[]).await?.iter().map(Self::from_row).collect())
    }

    /// Returns the models with searched vectors.
    pub(crate) async fn searched(client: &Client) -> Result<Vec<Self>, Error> {
        Ok(client.query(SELECT_SEARCHED, &[]).await?.iter().map(Self::from_row).collect())
    }

    /// Returns the models with searched vectors, within the transaction of a read.
    pub(crate) fn read_searched(tables: &PostgresTables<'_>) -> Result<Vec<Self>, SourceError> {
        Ok(tables.queries.query(SELECT_SEARCHED, &[])?.iter().map(Self::from_row).collect())
    }

    /// Returns the model of a name with an unfinished build that is to replace other vectors.
    pub(crate) async fn replacing(client: &Client, name: &str) -> Result<Option<Self>, Error> {
        let sql = "SELECT id, model, dimensions, probe FROM fetchwell.embedding_models
             WHERE NOT is_searched AND model = $1 ORDER BY id DESC LIMIT 1";
        Ok(client.query_opt(sql, &[&name]).await?.as_ref().map(Self::from_row))
    }

    /// Reads a model from the first columns of a row: its id, name, dimensions and probe.
    pub(crate) fn from_row(row: &Row) -> Self {
        Self {
            id: row.try_get(0).unwrap_or_default(),
            name: text(row, 1).to_owned(),
            dimensions: usize::try_from(row.try_get::<_, i32>(2).unwrap_or_default()).unwrap_or_default(),
            probe: row.try_get(3).unwrap_or_default(),
        }
    }

    /// Inserts a model and returns it. Only the first model is searched before its build is complete.
    pub(crate) async fn insert(client: &Client, name: &str, probe: &[f32]) -> Result<Self, Error> {
        let sql = "INSERT INTO fetchwell.embedding_models (model, dimensions, probe, is_searched)
             SELECT $1, $2, $3, NOT EXISTS (SELECT 1 FROM fetchwell.embedding_models)
             RETURNING id, model, dimensions, probe";
        let dimensions = saturated::<i32>(probe.len());
        Ok(Self::from_row(&client.query_one(sql, &[&name, &dimensions, &probe]).await?))
    }

    /// Returns the label of the model's vectors in the metadata of chunks.
    pub(crate) fn label(&self) -> String {
        self.id.to_string()
    }

    /// Returns true if a vector of the fixed text is of this model.
    pub(crate) fn made(&self, name: &str, probe: &[f32]) -> bool {
        self.name == name && self.is_near(probe)
    }

    fn is_near(&self, probe: &[f32]) -> bool {
        let cosine: f32 = self.probe.iter().zip(probe).map(|(one, other)| one * other).sum();
        self.probe.len() == probe.len() && cosine >= MIN_PROBE_COSINE
    }

    /// Compares the model with the one that embeds queries.
    ///
    /// # Errors
    ///
    /// It has another name, or returns other vectors than before.
    pub(crate) fn check(&self, model: &ModelIdentity) -> Result<(), VectorError> {
        if self.name != *model.id {
            return Err(VectorError::OtherModel(self.name.clone()));
        }
        if !self.is_near(&model.probe) {
            return Err(VectorError::ModelChanged(self.name.clone()));
        }
        Ok(())
    }
}
