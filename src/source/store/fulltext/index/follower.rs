//! The index during an import.
//!
//! The index is derived from SQLite, so an import continues if the index cannot be written; the error is reported at
//! its end.

use super::document::{Entry, Fields};
use super::editor::IndexEditor;
use super::open::VerifiedFiles;
use crate::source::store::StoreError;
use crate::source::store::database::Database;

/// Index that is updated during an import until the first error.
#[derive(Debug)]
pub(in crate::source::store) struct IndexFollower {
    pub(in crate::source::store) fields: Fields,
    editor: Result<IndexEditor, StoreError>,
}

impl IndexFollower {
    /// Opens the index and adds missing changes. The caller holds the store's write lock.
    pub(in crate::source::store) fn open(database: &Database) -> Self {
        let (_, fields) = Fields::schema();
        Self { fields, editor: complete(database) }
    }

    /// Replaces the entries of some records.
    pub(in crate::source::store) fn add(&mut self, entries: Vec<Entry>) {
        self.follow(|editor| editor.add(entries));
    }

    /// Commits all added entries; the commit contains every change up to `version`.
    pub(in crate::source::store) fn commit(&mut self, version: i64) {
        self.follow(|editor| editor.commit(version));
    }

    /// Waits until segments are merged. Reopens an index that failed, which rebuilds a damaged one. Returns the error
    /// that remains.
    pub(in crate::source::store) fn finish(self, database: &Database) -> Option<StoreError> {
        match self.editor.and_then(IndexEditor::finish) {
            Ok(()) => None,
            Err(foreign @ StoreError::IndexForeign { .. }) => Some(foreign),
            Err(error) => {
                tracing::warn!(%error, "the search index did not follow the import and is opened anew");
                complete(database).and_then(IndexEditor::finish).err()
            }
        }
    }

    fn follow(&mut self, change: impl FnOnce(&mut IndexEditor) -> Result<(), StoreError>) {
        if let Ok(editor) = &mut self.editor
            && let Err(error) = change(editor)
        {
            self.editor = Err(error);
        }
    }
}

fn complete(database: &Database) -> Result<IndexEditor, StoreError> {
    let mut editor = IndexEditor::open(database, &VerifiedFiles::default(), None)?;
    if let Some(problem) = editor.damage() {
        tracing::error!(store = %database.path().display(), problem, "the search index was damaged and is rebuilt from the store");
    }
    editor.catch_up(database)?;
    Ok(editor)
}
