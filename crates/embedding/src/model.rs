//! The trait of embedding models, and the validation of the vectors that they return.

use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;

use super::error::EmbeddingError;
use super::pieces::PieceCount;

/// Text that is embedded to recognize a model. It is no text of a record.
pub const PROBE_TEXT: &str = "fetchwell checks that this model is the one that it knows";

/// Use of a text. Some models embed queries and documents differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// The text is a query.
    Query,
    /// The text is part of a record.
    Document,
}

/// Persistence with a service that does not answer or limits requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Persistence {
    /// Repeat a request of documents for minutes, as the user waits for the command.
    Minutes,
    /// Give up after a minute, as the caller tries again later.
    OneMinute,
}

/// A model that makes vectors from texts.
#[async_trait]
pub trait EmbeddingModel: Debug + Send + Sync {
    /// Returns the identity of the model. Vectors of models with different identities are not comparable.
    fn id(&self) -> &str;

    /// Returns the name of the model, without the place of its service: it is shown to callers.
    fn name(&self) -> &str {
        self.id()
    }

    /// Returns the number of dimensions of every vector.
    fn dimensions(&self) -> usize;

    /// Returns the counter of pieces, by which texts are split into chunks.
    fn pieces(&self) -> &dyn PieceCount;

    /// Returns the maximum number of texts for which one call is efficient.
    fn batch(&self) -> usize;

    /// Returns true if the texts leave this machine or are paid for.
    fn is_remote(&self) -> bool;

    /// Returns true if the model is a service, on this machine or another one, which may not answer.
    fn is_service(&self) -> bool {
        false
    }

    /// Returns true if the model embeds queries and documents differently.
    fn has_purposes(&self) -> bool {
        false
    }

    /// Embeds texts: one vector of length 1 for each, in their order.
    ///
    /// # Errors
    ///
    /// The model cannot be used, or returned vectors that are not valid.
    async fn embed(&self, texts: &[String], purpose: Purpose) -> Result<Vec<Vec<f32>>, EmbeddingError>;
}

/// Identity of a model that embeds queries, by which its vectors are compared with those of a store.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelIdentity {
    /// Name of the model, with its place and dimensions.
    pub id: Arc<str>,
    /// Vector of [`PROBE_TEXT`]. A service can put another model behind the same name.
    pub probe: Arc<[f32]>,
}

/// Embeds the fixed text by which a model is recognized.
///
/// # Errors
///
/// The model cannot be used, or returned a vector that is not valid.
pub async fn probe_vector(model: &dyn EmbeddingModel) -> Result<Vec<f32>, EmbeddingError> {
    let vectors = model.embed(&[PROBE_TEXT.to_owned()], Purpose::Document).await?;
    Ok(vectors.into_iter().next().unwrap_or_default())
}

/// Minimum cosine of two vectors of one text by the same model. Services round in different ways.
pub const MIN_PROBE_COSINE: f32 = 0.995;

/// Returns true if two vectors of the fixed text are of the same model.
pub(crate) fn is_same_model(one: &[f32], other: &[f32]) -> bool {
    let cosine: f32 = one.iter().zip(other).map(|(one, other)| one * other).sum();
    one.len() == other.len() && cosine >= MIN_PROBE_COSINE
}

/// The expected form of a model's vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct VectorForm {
    /// Dimensions that the model returns.
    pub(crate) returned: usize,
    /// Dimensions after zeros are appended. Zeros change neither lengths nor inner products.
    pub(crate) padded: usize,
}

impl VectorForm {
    /// Validates the vectors for `expected` texts, scales them to length 1 and pads them.
    pub(crate) fn normalize(
        self,
        place: &str,
        expected: usize,
        mut vectors: Vec<Vec<f32>>,
    ) -> Result<Vec<Vec<f32>>, EmbeddingError> {
        let place = || place.to_owned();
        if vectors.len() != expected {
            return Err(EmbeddingError::WrongCount { place: place(), expected, found: vectors.len() });
        }
        for vector in &mut vectors {
            if vector.len() != self.returned {
                let (expected, found) = (self.returned, vector.len());
                return Err(EmbeddingError::WrongDimensions { place: place(), expected, found });
            }
            normalize(vector).map_err(|problem| EmbeddingError::InvalidVector { place: place(), problem })?;
            vector.resize(self.padded, 0.0);
        }
        Ok(vectors)
    }
}

/// Scales a vector to length 1.
fn normalize(vector: &mut [f32]) -> Result<(), &'static str> {
    let square: f64 = vector.iter().map(|number| f64::from(*number) * f64::from(*number)).sum();
    if !square.is_finite() {
        return Err("not finite");
    }
    let length = square.sqrt();
    // Below this length, rounding errors decide about the direction.
    if length < 1e-12 {
        return Err("zero");
    }
    for number in vector {
        #[expect(clippy::cast_possible_truncation, reason = "the quotient is at most 1")]
        let scaled = (f64::from(*number) / length) as f32;
        *number = scaled;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORM: VectorForm = VectorForm { returned: 2, padded: 3 };

    #[track_caller]
    fn check(vectors: Vec<Vec<f32>>, expect: Result<Vec<Vec<f32>>, &str>) {
        let found = FORM.normalize("models.example.com", 1, vectors).map_err(|error| error.to_string());
        match (found, expect) {
            (Ok(found), Ok(expect)) => assert_eq!(found, expect),
            (Err(found), Err(expect)) => assert!(found.contains(expect), "{found}"),
            (found, expect) => panic!("{found:?} {expect:?}"),
        }
    }

    #[test]
    fn vectors_are_validated_scaled_and_padded() {
        check(vec![vec![3.0, 4.0]], Ok(vec![vec![0.6, 0.8, 0.0]]));
        check(vec![vec![1e-9, 0.0]], Ok(vec![vec![1.0, 0.0, 0.0]]));
        check(vec![vec![f32::MAX, 0.0]], Ok(vec![vec![1.0, 0.0, 0.0]]));
        check(vec![], Err("0 vectors for 1 texts"));
        check(vec![vec![1.0, 0.0]; 2], Err("2 vectors for 1 texts"));
        check(vec![vec![1.0]], Err("Expected 2 dimensions, got 1 from "));
        check(vec![vec![1.0, 0.0, 0.0]], Err("Expected 2 dimensions, got 3 from "));
        check(vec![vec![0.0, 0.0]], Err("that is zero"));
        check(vec![vec![f32::NAN, 1.0]], Err("that is not finite"));
        check(vec![vec![f32::INFINITY, 1.0]], Err("that is not finite"));
    }
}
