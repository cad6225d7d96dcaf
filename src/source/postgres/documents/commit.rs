//! Writes changes of documents in one transaction.

use std::collections::HashMap;

use deadpool_postgres::Transaction;
use jiff::Timestamp;
use tokio_postgres::Error;

use super::read::find;
use crate::source::contract::{Change, IncomingRecord, Tally};
use crate::source::documents::{CommitSummary, DOCUMENTS_STREAM, DocumentChange, ProjectRef, Uuid};
use crate::source::postgres::document_rows::DocumentRows;
use crate::source::postgres::transaction::lock_version;
use crate::source::postgres::writer::OpenBatch;

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
        Box::pin(batch.apply(transaction, version, &incoming, Tally::default())).await?;
    let after = find(transaction, &ProjectRef::Id(id)).await?;
    Ok(after.map(|after| CommitSummary { added, changed, deleted, corpus_version: after.corpus_version }))
}

/// Returns the records of changes. A document keeps the id that the project has at its path.
async fn incoming(
    transaction: &Transaction<'_>,
    project: Uuid,
    changes: Vec<DocumentChange>,
) -> Result<Vec<IncomingRecord>, Error> {
    let paths = changes.iter().map(|change| match change {
        DocumentChange::Put(new) => new.path.to_string(),
        DocumentChange::Delete(path) => path.to_string(),
    });
    let paths: Vec<String> = paths.collect();
    let sql = "SELECT path, id::text FROM fetchwell.documents WHERE project_id = $1::text::uuid AND path = ANY ($2)";
    let known = transaction.query(sql, &[&project.to_string(), &paths]).await?;
    let mut ids: HashMap<String, String> = known.iter().map(|row| (row.get(0), row.get(1))).collect();
    let now = Some(format!("{:.3}", Timestamp::now()));
    let mut incoming = Vec::new();
    for (change, path) in changes.into_iter().zip(paths) {
        let (id, change) = match change {
            DocumentChange::Put(new) => {
                // Without random bytes there is no id, and the document is not written.
                let id = ids.get(&path).cloned().or_else(|| Some(Uuid::random().ok()?.to_string()));
                let Some(id) = id else { continue };
                ids.insert(path, id.clone());
                (id, Change::Put { data: new.into_record(), emitted_at: now.clone() })
            }
            DocumentChange::Delete(_) => match ids.remove(&path) {
                Some(id) => (id, Change::Delete { deleted_at: now.clone() }),
                None => continue,
            },
        };
        if let (Ok(stream), Ok(key)) = (DOCUMENTS_STREAM.parse(), id.parse()) {
            incoming.push(IncomingRecord { stream, key, change });
        }
    }
    Ok(incoming)
}
