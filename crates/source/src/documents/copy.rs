//! A project to be copied into another store, with the ids of its documents and chunks. Texts are copied as records.

use std::collections::HashMap;

use sha2::{Digest, Sha256};

use super::project::Project;
use super::uuid::Uuid;

/// Rows of a project.
#[derive(Debug, Clone)]
pub struct ProjectCopy {
    /// Row of the project.
    pub project: Project,
    /// Documents in the order of their ids.
    pub documents: Vec<CopiedDocument>,
    /// Ids of the chunks of these documents.
    pub chunks: ChunkIds,
}

/// Fields of a document that are equal in both stores.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopiedDocument {
    /// Id of the document, which is the key of its record.
    pub id: Uuid,
    /// Path in the project.
    pub path: String,
    /// Category of the document.
    pub category: String,
    /// Hash of the text.
    pub content_hash: String,
}

/// Ids of chunks by their documents, in the order of the chunks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChunkIds(HashMap<Uuid, Vec<Uuid>>);

impl ChunkIds {
    /// Returns the id of a chunk by its number in a document.
    #[must_use]
    pub fn get(&self, document: Uuid, number: usize) -> Option<Uuid> {
        self.0.get(&document)?.get(number).copied()
    }

    /// Returns the number of chunks.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.values().map(Vec::len).sum()
    }
}

impl FromIterator<(Uuid, Uuid)> for ChunkIds {
    /// Collects pairs of a document and its next chunk.
    fn from_iter<Pairs: IntoIterator<Item = (Uuid, Uuid)>>(pairs: Pairs) -> Self {
        let mut chunks = Self::default();
        pairs.into_iter().for_each(|(document, chunk)| chunks.0.entry(document).or_default().push(chunk));
        chunks
    }
}

impl ProjectCopy {
    /// Returns true if another store has the same project, documents and chunks. Versions and times may differ.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        let of_project = |project: &Project| (project.id, project.slug.clone(), project.name.clone());
        of_project(&self.project) == of_project(&other.project)
            && self.project.settings == other.project.settings
            && self.documents.len() == other.documents.len()
            && self.chunks.count() == other.chunks.count()
            && self.digest() == other.digest()
    }

    /// Returns a hash of the documents and of the ids of their chunks.
    fn digest(&self) -> [u8; 32] {
        let mut hash = Sha256::new();
        for CopiedDocument { id, path, category, content_hash } in &self.documents {
            for text in [&id.to_string(), path, category, content_hash] {
                hash.update(u64::try_from(text.len()).unwrap_or_default().to_le_bytes());
                hash.update(text);
            }
            for chunk in self.chunks.0.get(id).into_iter().flatten() {
                hash.update(chunk.to_string());
            }
        }
        hash.finalize().into()
    }
}
