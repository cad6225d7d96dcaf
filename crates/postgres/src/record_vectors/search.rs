//! Searches of records by words and by meaning. Documents of projects are records, too.
//!
//! The query is embedded before the database is read, so that a slow model holds no connection. If the vectors
//! cannot be used, the search is by words, and the answer has a warning with the remedy.

use std::fmt::Display;
use std::sync::Arc;

use fetchwell_ranking::relational::interrupt::ReadBounds;
use fetchwell_source::contract::{EMBEDDING_DIMENSIONS, PostgresError, StoreError};
use fetchwell_source::{SearchMode, SearchPage, SearchQuery, SourceError, StageClock};

use super::documents::show_passages;
use super::generations::Generation;
use super::nearest::{NearestVectors, VectorReader};
use crate::search::run::{NearestReader, search};
use crate::store::PostgresStore;
use crate::tables::PostgresTables;
use crate::transaction::begin_read;
use crate::vectors::embedder::{QueryMeaning, embed_query};
use crate::vectors::models::StoredModel;

/// Warning about records that are found by words alone.
const NO_RECORD_VECTORS: &str = "documents of projects have vectors and other records do not, so records are found by words; \
     `fetchwell embeddings build` computes the vectors of records";

/// The vectors of one search, or the reason for a search by words.
#[derive(Debug, Default)]
struct SearchMeaning {
    nearest: Option<Arc<NearestVectors>>,
    /// Reason why the search is by words alone.
    problem: Option<String>,
}

/// Vectors of a database that searches use.
#[derive(Debug, Default)]
struct SearchedVectors {
    /// Vectors of records.
    generation: Option<Generation>,
    /// Models of the vectors of documents.
    documents: Vec<StoredModel>,
}

impl SearchMeaning {
    fn problem(problem: &dyn Display) -> Self {
        Self { nearest: None, problem: Some(problem.to_string()) }
    }
}

impl PostgresStore {
    /// Searches by words, and by meaning if possible. That needs the mode, a configured model and its vectors.
    pub(crate) async fn search_records(&self, query: &SearchQuery) -> Result<SearchPage, SourceError> {
        let mut clock = StageClock::start(query.explains);
        let meaning = self.meaning_of_search(query).await;
        clock.end("embedding");
        let has_vectors = meaning.nearest.is_some();
        let found = match self.search_with(query, meaning).await {
            // A build replaced the vectors since they were looked up.
            Err(error) if has_vectors && lacks_table(&error) => {
                let meaning = self.meaning_of_search(query).await;
                self.search_with(query, meaning).await
            }
            Err(error) if has_vectors && lacks_permission(&error) => {
                self.search_with(query, SearchMeaning::problem(&error)).await
            }
            found => found,
        };
        found.map(|mut page| {
            page.stages.splice(..0, clock.into_stages());
            page
        })
    }

    async fn search_with(
        &self,
        query: &SearchQuery,
        meaning: SearchMeaning,
    ) -> Result<SearchPage, SourceError> {
        let SearchMeaning { nearest, problem } = meaning;
        let query = query.clone();
        let read = move |tables: &PostgresTables<'_>, bounds: ReadBounds<'_>| {
            let Some(vectors) = nearest.as_deref() else { return search(tables, &query, None, bounds) };
            let reader = VectorReader::new(vectors);
            let mut page = search(tables, &query, Some(&reader as &dyn NearestReader), bounds)?;
            show_passages(tables, &mut page.hits, &reader.into_chunks())?;
            Ok(page)
        };
        let mut page = self.reading(read).await?.0;
        page.meaning_problems.extend(problem);
        Ok(page)
    }

    /// Embeds the query of a first page, if its mode wants that and the database has vectors.
    async fn meaning_of_search(&self, query: &SearchQuery) -> SearchMeaning {
        let Some(embedder) = &self.embedder else { return SearchMeaning::default() };
        let text = query.text.plain_words();
        // A later page continues the ranking that its position has.
        if query.mode == SearchMode::Lexical || query.position.is_some() || text.trim().is_empty() {
            return SearchMeaning::default();
        }
        let SearchedVectors { generation, documents } = match self.searched_vectors().await {
            Ok(searched) => searched,
            // Without the extension there are no vectors, and mode `auto` does not require them.
            Err(PostgresError::NoPgvector { .. }) if query.mode == SearchMode::Auto => {
                SearchedVectors::default()
            }
            Err(error) => return SearchMeaning::problem(&error),
        };
        let of_records = generation.iter().map(|generation| &generation.model);
        let stored: Vec<StoredModel> = documents.iter().chain(of_records).cloned().collect();
        let QueryMeaning { vector, mut problem, .. } =
            embed_query(embedder, &text, query.mode, &stored).await;
        let nearest = vector.map(|(vector, _labels)| {
            let other = generation.as_ref().and_then(|found| found.model.check(&vector.model).err());
            if let Some(error) = &other {
                // Documents already have vectors of the query's model, but records have those of another one.
                problem = Some(error.to_string());
                embedder.forget_changed(error);
            }
            let same = documents.iter().filter(|model| model.check(&vector.model).is_ok());
            let labels: Vec<String> = same.map(StoredModel::label).collect();
            if let (None, true, Some(model)) = (&problem, labels.is_empty(), documents.first()) {
                problem = model.check(&vector.model).err().map(|error| error.to_string());
            }
            let has_record_vectors = generation.is_some() && other.is_none();
            if !has_record_vectors && query.mode != SearchMode::Auto {
                problem.get_or_insert_with(|| NO_RECORD_VECTORS.to_owned());
            }
            NearestVectors {
                generation: generation.filter(|_| other.is_none()),
                labels,
                vector,
                // Records without vectors are found by words beside the documents.
                is_alone: query.mode == SearchMode::Semantic && has_record_vectors,
                is_deep: !query.filter.0.is_empty(),
            }
        });
        SearchMeaning { nearest: nearest.map(Arc::new), problem }
    }

    /// Returns the vectors that searches use.
    async fn searched_vectors(&self) -> Result<SearchedVectors, PostgresError> {
        self.check_documents().await?;
        let mut database = self.pool.connection().await?;
        let read = async {
            let transaction = begin_read(&mut database, self.pool.url()).await?;
            let client = transaction.client();
            let mut documents = StoredModel::searched(client).await?;
            documents.retain(|model| model.dimensions == EMBEDDING_DIMENSIONS);
            Ok(SearchedVectors { generation: Generation::current(client).await?, documents })
        };
        read.await.map_err(|error| self.pool.failure(&error))
    }
}

/// Returns true if a read failed because a table was dropped.
fn lacks_table(error: &SourceError) -> bool {
    matches!(error, SourceError::Store(StoreError::Postgres(error)) if error.is_missing_table())
}

/// Returns true if the role may not read a table.
fn lacks_permission(error: &SourceError) -> bool {
    matches!(error, SourceError::Store(StoreError::Postgres(PostgresError::NoPermission { .. })))
}
