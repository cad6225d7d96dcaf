//! Texts of records to be embedded. Equal texts are embedded once.

use std::collections::{HashMap, HashSet};
use std::mem::take;

use sha2::{Digest, Sha256};

use crate::embedding::{EmbeddingError, EmbeddingModel, Purpose, chunks};
use crate::record::{RecordData, document_text, own_title};

/// First bytes of the SHA-256 of an embedded text.
pub(in crate::source) type TextDigest = [u8; 16];

/// A text to be embedded, with its digest.
pub(in crate::source) type NewText = (TextDigest, String);

/// A chunk to be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::source) struct PlannedChunk {
    pub(in crate::source) first_byte: usize,
    pub(in crate::source) end_byte: usize,
    pub(in crate::source) digest: TextDigest,
}

/// A chunk with the text that is sent to the model.
#[derive(Debug)]
pub(in crate::source) struct ChunkText {
    pub(in crate::source) chunk: PlannedChunk,
    pub(in crate::source) text: String,
    /// Number of pieces of the text.
    pub(in crate::source) pieces: usize,
}

/// Texts of a batch of records, with the vectors that exist already.
#[derive(Debug)]
pub(in crate::source) struct PlannedTexts<Vector> {
    /// Texts that have no vector yet.
    pub(in crate::source) new: Vec<NewText>,
    /// Vectors of texts that were embedded.
    pub(in crate::source) known: HashMap<TextDigest, Vector>,
    /// Number of pieces of the new texts.
    pub(in crate::source) pieces: usize,
    /// Bytes of texts beyond the limit of chunks.
    pub(in crate::source) omitted: usize,
    /// Texts of all chunks so far.
    seen: HashSet<TextDigest>,
}

impl<Vector> Default for PlannedTexts<Vector> {
    fn default() -> Self {
        Self { new: Vec::new(), known: HashMap::new(), pieces: 0, omitted: 0, seen: HashSet::new() }
    }
}

impl<Vector> PlannedTexts<Vector> {
    /// Adds the texts of a record, and returns its chunks. `known` returns the vector of a text that was embedded before; each
    /// text is looked up once.
    pub(in crate::source) fn add(
        &mut self,
        chunks: Vec<ChunkText>,
        known: impl Fn(&TextDigest) -> Option<Vector>,
    ) -> Vec<PlannedChunk> {
        let planned = chunks.into_iter().map(|ChunkText { chunk, text, pieces }| {
            if self.seen.insert(chunk.digest) {
                match known(&chunk.digest) {
                    Some(vector) => drop(self.known.insert(chunk.digest, vector)),
                    None => {
                        self.pieces += pieces;
                        self.new.push((chunk.digest, text));
                    }
                }
            }
            chunk
        });
        planned.collect()
    }
}

impl<Vector: for<'n> From<&'n [f32]>> PlannedTexts<Vector> {
    /// Embeds the new texts. If the model refuses one, those of each record are embedded alone, and a record with a refused
    /// text stays without vectors, because a record has all of its vectors or none.
    ///
    /// # Errors
    ///
    /// The model cannot be used.
    pub(in crate::source) async fn embed(
        &mut self,
        model: &dyn EmbeddingModel,
        records: &[&[PlannedChunk]],
    ) -> Result<(), EmbeddingError> {
        let texts = take(&mut self.new);
        if self.embed_texts(model, &texts).await? {
            return Ok(());
        }
        let by_record = by_record(&texts, records);
        if by_record.len() > 1 {
            for texts in &by_record {
                self.embed_texts(model, texts).await?;
            }
        }
        Ok(())
    }

    /// Embeds texts. Returns false if the model refuses one of them.
    async fn embed_texts(
        &mut self,
        model: &dyn EmbeddingModel,
        texts: &[NewText],
    ) -> Result<bool, EmbeddingError> {
        if texts.is_empty() {
            return Ok(true);
        }
        let sent: Vec<String> = texts.iter().map(|(_, text)| text.clone()).collect();
        match model.embed(&sent, Purpose::Document).await {
            Ok(vectors) => {
                let stored = vectors.iter().map(|vector| Vector::from(vector.as_slice()));
                self.known.extend(texts.iter().map(|(digest, _)| *digest).zip(stored));
                Ok(true)
            }
            Err(error) if error.concerns_texts() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Returns true if each chunk of a record has a vector.
    pub(in crate::source) fn has_vectors(&self, chunks: &[PlannedChunk]) -> bool {
        chunks.iter().all(|chunk| self.known.contains_key(&chunk.digest))
    }
}

/// Groups texts by their records. Leaves out records without any of them.
fn by_record(texts: &[NewText], records: &[&[PlannedChunk]]) -> Vec<Vec<NewText>> {
    let texts: HashMap<&TextDigest, &String> = texts.iter().map(|(digest, text)| (digest, text)).collect();
    let text_of = |chunk: &PlannedChunk| Some((chunk.digest, (*texts.get(&chunk.digest)?).clone()));
    let all = records.iter().map(|chunks| chunks.iter().filter_map(text_of).collect());
    all.filter(|texts: &Vec<NewText>| !texts.is_empty()).collect()
}

/// Splits a record into chunks. Also returns the number of bytes beyond the limit of chunks.
pub(in crate::source) fn plan_chunks(
    data: &RecordData,
    model: &dyn EmbeddingModel,
) -> (Vec<ChunkText>, usize) {
    let found = chunks(own_title(data), &document_text(data), model.pieces());
    let planned = found.chunks.into_iter().map(|chunk| {
        let digest = digest_of(&chunk.embedded);
        let planned = PlannedChunk { first_byte: chunk.range.start, end_byte: chunk.range.end, digest };
        ChunkText { chunk: planned, text: chunk.embedded, pieces: chunk.pieces }
    });
    (planned.collect(), found.omitted_bytes)
}

fn digest_of(text: &str) -> TextDigest {
    let digest: [u8; 32] = Sha256::digest(text).into();
    digest.first_chunk().copied().unwrap_or_default()
}
