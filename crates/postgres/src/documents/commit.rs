//! Writes changes of documents in one transaction.

use std::collections::HashMap;

use deadpool_postgres::Transaction;
use fetchwell_source::contract::{IncomingRecord, Tally};
use fetchwell_source::documents::{CommitSummary, DocumentChange, ProjectRef, Uuid, incoming_documents};
use tokio_postgres::Error;

use super::read::find;
use crate::document_rows::DocumentRows;
use crate::transaction::lock_version;
use crate::writer::OpenBatch;

/// Writes changes of documents. Returns `None` if there is no such project.
pub(super) async fn commit(
    transaction: &Transaction<'_>,
    id: Uuid,
    changes: Vec<DocumentChange>,
) -> Result<Option<CommitSummary>, Error> {
    // The lock of all writers first, so that two of them cannot wait for each other.
    let version = lock_version(transaction).await?;
    let Some(project) = find(transaction, &ProjectRef::Id(id)).await? else { return Ok(None) };
    let sql = "SELECT id FROM fetchwell.connections WHERE connection_id = $1";
    let Some(connection) = transaction.query_opt(sql, &[&project.slug.as_str()]).await? else {
        return Ok(None);
    };
    let incoming = incoming(transaction, id, changes).await?;
    let mut streams = HashMap::new();
    let connection: i64 = connection.get(0);
    let mut documents = DocumentRows::find(transaction, connection).await?;
    let documents = documents.as_mut();
    let mut batch = OpenBatch { connection, manifest: None, streams: &mut streams, documents };
    let Tally { added, changed, deleted, .. } =
        Box::pin(batch.apply(transaction, version, &incoming, Vec::new(), Tally::default())).await?;
    let after = find(transaction, &ProjectRef::Id(id)).await?;
    Ok(after.map(|after| CommitSummary { added, changed, deleted, corpus_version: after.corpus_version }))
}

/// Returns the records of changes. A document keeps the id that the project has at its path.
async fn incoming(
    transaction: &Transaction<'_>,
    project: Uuid,
    changes: Vec<DocumentChange>,
) -> Result<Vec<IncomingRecord>, Error> {
    let paths: Vec<&str> = changes.iter().map(|change| change.path().as_str()).collect();
    let sql = "SELECT path, id::text FROM fetchwell.documents WHERE project_id = $1::text::uuid AND path = ANY ($2)";
    let known = transaction.query(sql, &[&project.to_string(), &paths]).await?;
    let ids = known.iter().map(|row| (row.get(0), row.get(1))).collect();
    // Without random bytes there is no id, and the document is not written.
    incoming_documents(changes, ids, || Ok(Uuid::random().ok()))
}
