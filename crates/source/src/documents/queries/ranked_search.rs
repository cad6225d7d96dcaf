//! The search of a project, for every store: its query is embedded, its documents are ranked as records, and their chunks are
//! compared.

use std::sync::Arc;
use std::time::Instant;

use fetchwell_core::record::Scalar;
use fetchwell_embedding::QueryVector;

use crate::documents::{
    Candidates, CategoryCount, DOCUMENTS_STREAM, DocumentSearch, EmbeddingStage, Project, SearchStage,
    StageSender, whole_millis,
};
use crate::vectors::EmbeddedQuery;
use crate::{Condition, Filter, SearchQuery, SearchText, SourceError, Test};

impl DocumentSearch {
    /// Returns the query by which the records of a project are ranked.
    pub fn ranking_query(&self, project: &Project) -> SearchQuery {
        let category = self.category.as_ref().map(|category| Condition {
            field: "category".to_owned(),
            test: Test::Equal(Scalar::Text(category.to_string())),
        });
        SearchQuery {
            text: SearchText::plain(&self.topic),
            connection: Some(project.slug.connection().clone()),
            streams: DOCUMENTS_STREAM.parse().into_iter().collect(),
            filter: Filter(category.into_iter().collect()),
            mode: self.mode,
            ..SearchQuery::new("", self.depth)
        }
    }

    /// Returns true if one of the documents with these categories is searched. A stream without records has no field to
    /// filter by.
    pub fn has_documents(&self, categories: &[CategoryCount]) -> bool {
        let is_searched =
            |known: &CategoryCount| self.category.as_ref().is_none_or(|only| known.category == *only);
        categories.iter().any(is_searched)
    }
}

/// Returns the warning of a search that is not by meaning.
pub fn by_words_only(problem: &str) -> String {
    format!("searched by words only: {problem}")
}

/// Searches with an embedded query. Sends the stage of the embedding, then `search` compares chunks with the vector.
///
/// # Errors
///
/// The errors of `embedded` and of `search`.
pub async fn search_embedded<Vectors, Found>(
    embedded: impl Future<Output = Result<EmbeddedQuery<Vectors>, SourceError>>,
    stages: &StageSender,
    search: impl FnOnce(Option<(QueryVector, Vectors)>) -> Found,
) -> Result<Candidates, SourceError>
where
    Found: Future<Output = Result<Candidates, SourceError>>,
{
    let started = Instant::now();
    let EmbeddedQuery { vector, unmatched, problem, is_invalid_vector } = embedded.await?.for_documents();
    let embedding = vector.as_ref().map(|(vector, _)| EmbeddingStage {
        model: vector.name.to_string(),
        latency_ms: whole_millis(started.elapsed()),
    });
    if let Some(embedding) = &embedding {
        stages.send(SearchStage::Embedding(embedding.clone()));
    }
    let made = vector.as_ref().map(|(vector, _)| vector).or(unmatched.as_ref());
    let query_vector = made.map(|vector| Arc::clone(&vector.numbers));
    let embedding_error = problem.clone().filter(|_| is_invalid_vector);
    let mut candidates = search(vector).await?;
    candidates.problems.extend(problem.map(|problem| by_words_only(&problem)));
    Ok(Candidates { embedding, query_vector, embedding_error, ..candidates })
}
