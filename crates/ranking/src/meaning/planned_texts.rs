//! Texts of records to be embedded. Equal texts are embedded once.

use std::collections::{HashMap, HashSet};
use std::mem::take;
use std::ops::Range;

use fetchwell_core::record::{RecordData, document_text, own_title};
use fetchwell_embedding::{EmbeddingError, EmbeddingModel, Purpose, chunks};
use sha2::{Digest, Sha256};

/// First bytes of the SHA-256 of an embedded text.
pub type TextDigest = [u8; 16];

/// The texts of a chunk to be embedded, with their digest.
pub(crate) type NewTexts = (TextDigest, Vec<String>);

/// A chunk to be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedChunk {
    /// First byte of the chunk in the text.
    pub first_byte: usize,
    /// Byte after the last one of the chunk.
    pub end_byte: usize,
    /// Digest of the text that is embedded.
    pub digest: TextDigest,
}

/// A chunk with the texts that are sent to the model.
#[derive(Debug)]
pub struct ChunkText {
    /// Chunk to be embedded.
    pub chunk: PlannedChunk,
    /// Texts of the chunk. More than one if the chunk exceeds the limit of the model.
    pub(crate) texts: Vec<String>,
    /// Number of pieces of the texts.
    pub(crate) pieces: usize,
}

impl ChunkText {
    /// Creates a chunk of a range of bytes.
    pub(crate) fn new(range: Range<usize>, texts: Vec<String>, pieces: usize) -> Self {
        let digest = digest_of(&texts);
        Self { chunk: PlannedChunk { first_byte: range.start, end_byte: range.end, digest }, texts, pieces }
    }
}

/// Texts of a batch of records, with the vectors that exist already.
#[derive(Debug)]
pub struct PlannedTexts<Vector> {
    /// Texts that have no vector yet.
    pub new: Vec<NewTexts>,
    /// Vectors of texts that were embedded.
    pub known: HashMap<TextDigest, Vector>,
    /// Number of pieces of the new texts.
    pub pieces: usize,
    /// Bytes of texts beyond the limit of chunks.
    pub omitted: usize,
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
    pub fn add(
        &mut self,
        chunks: Vec<ChunkText>,
        known: impl Fn(&TextDigest) -> Option<Vector>,
    ) -> Vec<PlannedChunk> {
        let planned = chunks.into_iter().map(|ChunkText { chunk, texts, pieces }| {
            if self.seen.insert(chunk.digest) {
                match known(&chunk.digest) {
                    Some(vector) => drop(self.known.insert(chunk.digest, vector)),
                    None => {
                        self.pieces += pieces;
                        self.new.push((chunk.digest, texts));
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
    pub async fn embed(
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
        texts: &[NewTexts],
    ) -> Result<bool, EmbeddingError> {
        if texts.is_empty() {
            return Ok(true);
        }
        let sent: Vec<String> = texts.iter().flat_map(|(_, texts)| texts.iter().cloned()).collect();
        match model.embed(&sent, Purpose::Document).await {
            Ok(vectors) => {
                let mut vectors = vectors.into_iter();
                self.known.extend(texts.iter().map(|(digest, texts)| {
                    let vector = mean_vector(vectors.by_ref().take(texts.len()));
                    (*digest, Vector::from(vector.as_slice()))
                }));
                Ok(true)
            }
            Err(error) if error.concerns_texts() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Returns true if each chunk of a record has a vector.
    pub fn has_vectors(&self, chunks: &[PlannedChunk]) -> bool {
        chunks.iter().all(|chunk| self.known.contains_key(&chunk.digest))
    }
}

/// Groups texts by their records. Leaves out records without any of them.
fn by_record(texts: &[NewTexts], records: &[&[PlannedChunk]]) -> Vec<Vec<NewTexts>> {
    let texts: HashMap<&TextDigest, &Vec<String>> =
        texts.iter().map(|(digest, text)| (digest, text)).collect();
    let text_of = |chunk: &PlannedChunk| Some((chunk.digest, (*texts.get(&chunk.digest)?).clone()));
    let all = records.iter().map(|chunks| chunks.iter().filter_map(text_of).collect());
    all.filter(|texts: &Vec<NewTexts>| !texts.is_empty()).collect()
}

/// Splits a record into chunks. Also returns the number of bytes beyond the limit of chunks.
pub fn plan_chunks(data: &RecordData, model: &dyn EmbeddingModel) -> (Vec<ChunkText>, usize) {
    let found = chunks(own_title(data), &document_text(data), model.pieces());
    let planned =
        found.chunks.into_iter().map(|chunk| ChunkText::new(chunk.range, vec![chunk.embedded], chunk.pieces));
    (planned.collect(), found.omitted_bytes)
}

/// Returns the vector of a chunk: that of its text, or the mean of those of several, scaled to length 1.
pub fn mean_vector(mut vectors: impl Iterator<Item = Vec<f32>>) -> Vec<f32> {
    let Some(mut sum) = vectors.next() else { return Vec::new() };
    let Some(second) = vectors.next() else { return sum };
    for vector in std::iter::once(second).chain(vectors) {
        sum.iter_mut().zip(&vector).for_each(|(sum, number)| *sum += number);
    }
    let length = sum.iter().map(|number| number * number).sum::<f32>().sqrt();
    if length > 0.0 {
        sum.iter_mut().for_each(|number| *number /= length);
    }
    sum
}

fn digest_of(texts: &[String]) -> TextDigest {
    let mut sha = Sha256::new();
    for (number, text) in texts.iter().enumerate() {
        if number > 0 {
            sha.update([0]);
        }
        sha.update(text);
    }
    let digest: [u8; 32] = sha.finalize().into();
    digest.first_chunk().copied().unwrap_or_default()
}
