//! The texts by which the chunks of a document are embedded, for every store, so that equal documents have equal vectors.
//!
//! A chunk is embedded below the title of its document and the headings above it. A chunk that exceeds the limit of the model
//! is split, and its vector is the mean of those of its parts.

use fetchwell_core::record::{RecordData, document_text};
use fetchwell_embedding::{PieceCount, chunks};
use fetchwell_source::documents::document::NewDocument;
use fetchwell_source::documents::tiles::tiles;

use crate::meaning::ChunkText;

/// The embedded texts of one chunk.
#[derive(Debug)]
pub struct EmbeddedTexts {
    /// Texts within the limit of the model; at least one.
    pub texts: Vec<String>,
    /// Number of pieces of the texts.
    pub pieces: usize,
}

impl EmbeddedTexts {
    /// Splits a chunk into texts within the limit of a model. Title and headings are in each of them.
    pub fn new(
        title: Option<&str>,
        heading_path: Option<&str>,
        content: &str,
        counter: &dyn PieceCount,
    ) -> Self {
        let above: Vec<&str> =
            [title, heading_path].into_iter().flatten().filter(|text| !text.is_empty()).collect();
        let above = above.join(" > ");
        let found = chunks(Some(above.as_str()).filter(|above| !above.is_empty()), content, counter);
        let pieces = found.chunks.iter().map(|chunk| chunk.pieces).sum();
        let mut texts: Vec<String> = found.chunks.into_iter().map(|chunk| chunk.embedded).collect();
        if texts.is_empty() {
            texts.push(content.to_owned());
        }
        Self { texts, pieces }
    }
}

/// Returns the chunks of the record of a document, with ranges in the whole text of the record. `None` if it is no document.
pub fn plan_document(data: &RecordData, counter: &dyn PieceCount) -> Option<Vec<ChunkText>> {
    let document = NewDocument::from_record(data)?;
    // The field `text` is the last one in the text of the record.
    let before = document_text(data).len().saturating_sub(document.text.len());
    let planned = tiles(&document.text).into_iter().map(|tile| {
        let content = document.text.get(tile.range.clone()).unwrap_or_default();
        let headings = Some(tile.metadata.heading_path.as_str());
        let EmbeddedTexts { texts, pieces } =
            EmbeddedTexts::new(document.title.as_deref(), headings, content, counter);
        ChunkText::new(before + tile.range.start..before + tile.range.end, texts, pieces)
    });
    Some(planned.collect())
}
