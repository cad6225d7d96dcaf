//! The chunks of the documents that a search ranked.
//!
//! Documents are ranked as records, by their words and their vectors, as in a file. Their chunks are read for the comparison
//! one document after another.

use std::cell::RefCell;
use std::collections::HashSet;

use fetchwell_core::saturate::saturated;
use fetchwell_embedding::QueryVector;
use fetchwell_ranking::chunk_ranking::{ChunkRanking, ChunkShares, ComparedChunk, MAX_SCANNED_BYTES};
use fetchwell_ranking::lexical::matching::ExcerptTerms;
use fetchwell_ranking::lexical::ranking::WEIGHTS;
use fetchwell_ranking::lexical::selection::Match;
use fetchwell_ranking::relational::interrupt::ReadBounds;
use fetchwell_source::documents::{Candidates, DocumentSearch, Project, ProjectRef, Uuid};
use fetchwell_source::{SearchMode, SourceError};

use super::read::{DIALECT, project, rows};
use crate::search::run::{NearestReader, RankedPage, rank};
use crate::tables::{PostgresTables, length, optional_text, text};
use crate::vectors::nearest::NearestDocuments;

/// Chunks of ranked documents, in the order of the documents and of their text.
const CHUNKS: &str = "SELECT r.place, c.id::text, octet_length(c.content),
         CASE WHEN (c.metadata ->> 'start')::integer < $3 THEN c.content END, c.metadata ->> 'heading_path'
     FROM unnest($1::bigint[]) WITH ORDINALITY AS r (id, place)
     CROSS JOIN LATERAL (SELECT key FROM fetchwell.texts WHERE id = r.id LIMIT 1) t
     JOIN fetchwell.chunks c ON c.document_id = t.key::uuid
     WHERE c.project_id = $2::text::uuid ORDER BY r.place, c.chunk_index";

/// Searches for the chunks of a project. `vector` is that of the query, with the labels of
/// the vectors to compare with.
pub(super) fn search(
    tables: &PostgresTables<'_>,
    searched: &Project,
    search: &DocumentSearch,
    vector: Option<&(QueryVector, Vec<String>)>,
    bounds: ReadBounds<'_>,
) -> Result<Candidates, SourceError> {
    let known = project(tables, &ProjectRef::Id(searched.id))?;
    let corpus_version = known.map_or(0, |project| project.corpus_version);
    let nothing = Candidates { corpus_version, ..Candidates::default() };
    if !search.has_documents(&rows(tables, &DIALECT.categories(searched.id))?) {
        return Ok(nothing);
    }
    let nearest = vector.map(|(vector, labels)| NearestDocuments {
        category: search.category.as_ref(),
        vector: &vector.numbers,
        labels,
        is_alone: search.mode == SearchMode::Semantic,
        chunks: RefCell::default(),
    });
    let query = search.ranking_query(searched);
    let reader = nearest.as_ref().map(|nearest| nearest as &dyn NearestReader);
    let RankedPage { rows: ranked_rows, words, page, .. } = rank(tables, &query, reader, bounds)?;
    let near = nearest.map(|nearest| nearest.chunks.into_inner()).unwrap_or_default().into_values().collect();
    let ranked = RankedDocuments { project: searched.id, rows: &ranked_rows, words: &words, near: &near };
    let chunks = ranked.ranking(tables, bounds)?.best(search.depth);
    Ok(Candidates { chunks, problems: page.notes.into_iter().collect(), ..nothing })
}

/// Documents that a search ranked.
struct RankedDocuments<'a> {
    project: Uuid,
    rows: &'a [Match],
    words: &'a ExcerptTerms,
    /// Chunks of the nearest documents that are nearest to the query.
    near: &'a HashSet<Uuid>,
}

impl RankedDocuments<'_> {
    /// Compares the chunks of the documents. One that was deleted or changed meanwhile has none.
    fn ranking(
        &self,
        tables: &PostgresTables<'_>,
        bounds: ReadBounds<'_>,
    ) -> Result<ChunkRanking, SourceError> {
        let ids: Vec<i64> = self.rows.iter().map(|found| found.row).collect();
        let last = saturated::<i32>(MAX_SCANNED_BYTES);
        let (mut ranking, mut at, mut shares) = (ChunkRanking::default(), 0, ChunkShares::new());
        tables.queries.batches(CHUNKS, &[&ids, &self.project.to_string(), &last], &mut |row| {
            bounds.interrupt.check()?;
            // A chunk is dropped before the next one is compared.
            bounds.allowance.clear();
            if !bounds.allowance.take(usize::try_from(length(row, 2)).unwrap_or_default()) {
                return Ok(false);
            }
            let place = usize::try_from(row.try_get::<_, i64>(0).unwrap_or_default()).unwrap_or_default();
            let place = place.saturating_sub(1);
            if place != at {
                self.add(&mut ranking, at, std::mem::take(&mut shares));
                at = place;
            }
            let Ok(id) = text(row, 1).parse() else { return Ok(true) };
            let chunk = ComparedChunk {
                text: optional_text(row, 3),
                headings: optional_text(row, 4).unwrap_or_default(),
                is_nearest: self.near.contains(&id),
            };
            shares.push((id, chunk.share(self.words)));
            Ok(true)
        })?;
        self.add(&mut ranking, at, shares);
        Ok(ranking)
    }

    fn add(&self, ranking: &mut ChunkRanking, at: usize, shares: ChunkShares) {
        let score = self.rows.get(at).map_or(f32::NAN, |found| found.score);
        let score = score.is_finite().then(|| (score / WEIGHTS.max_score()).clamp(0.0, 1.0));
        ranking.add(score, shares);
    }
}
