//! Writes the rows of documents and chunks beside the records of a project.

use std::collections::HashMap;
use std::mem::take;
use std::sync::Arc;

use deadpool_postgres::Transaction;
use fetchwell_core::handle::ConnectionId;
use fetchwell_core::record::RecordData;
use fetchwell_source::documents::{ChunkIds, NewDocument, Uuid, content_hash};
use serde_json::Value;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Error};

use super::chunks::{ChunkedDocument, write_chunks};
use super::storable::{storable, without_nul};

/// Writer of the documents of one project. All of its calls of one transaction are one commit of the corpus.
#[derive(Debug)]
pub(crate) struct DocumentRows {
    project: String,
    has_changes: bool,
    /// Ids of chunks that are copied. Others are random.
    chunks: Arc<ChunkIds>,
}

/// A document to be written, with its id.
struct PutDocument {
    uuid: Uuid,
    id: String,
    hash: String,
    document: NewDocument,
}

/// Returns true if a connection is a project.
pub(crate) async fn is_project(client: &Client, connection: &ConnectionId) -> Result<bool, Error> {
    let exists = "SELECT to_regclass('fetchwell.projects') IS NOT NULL";
    if !client.query_one(exists, &[]).await?.get::<_, bool>(0) {
        return Ok(false);
    }
    let sql = "SELECT 1 FROM fetchwell.projects WHERE slug = $1";
    Ok(client.query_opt(sql, &[&connection.as_str()]).await?.is_some())
}

impl DocumentRows {
    /// Returns the writer for the project of a connection, or `None` if the connection is no project.
    pub(crate) async fn find(transaction: &Transaction<'_>, connection: i64) -> Result<Option<Self>, Error> {
        let exists = "SELECT to_regclass('fetchwell.projects') IS NOT NULL";
        if !transaction.query_one(exists, &[]).await?.get::<_, bool>(0) {
            return Ok(None);
        }
        let sql = "SELECT p.id::text FROM fetchwell.projects p
             JOIN fetchwell.connections c ON c.connection_id = p.slug WHERE c.id = $1";
        let found = transaction.query_opt(sql, &[&connection]).await?;
        Ok(found.map(|row| Self { project: row.get(0), has_changes: false, chunks: Arc::default() }))
    }

    /// Gives chunks the ids that they have in another store.
    pub(crate) fn with_chunk_ids(self, chunks: ChunkIds) -> Self {
        Self { chunks: Arc::new(chunks), ..self }
    }

    /// Deletes all documents of the project.
    pub(crate) async fn delete_all(&mut self, transaction: &Transaction<'_>) -> Result<(), Error> {
        self.has_changes = true;
        let sql = "DELETE FROM fetchwell.documents WHERE project_id = $1::text::uuid";
        transaction.execute(sql, &[&self.project]).await.map(drop)
    }

    /// Deletes the project with its documents and its history. Its connection stays.
    pub(crate) async fn delete_project(self, transaction: &Transaction<'_>) -> Result<(), Error> {
        let sql = "DELETE FROM fetchwell.projects WHERE id = $1::text::uuid";
        transaction.execute(sql, &[&self.project]).await.map(drop)
    }

    /// Writes the rows of changed records, by their keys: those of documents, and none for deleted records and for those
    /// that are no documents. Equal text keeps its chunks.
    pub(crate) async fn write(
        &mut self,
        transaction: &Transaction<'_>,
        changed: Vec<(String, Option<RecordData>)>,
    ) -> Result<(), Error> {
        self.has_changes |= !changed.is_empty();
        let (mut put, mut deleted) = (Vec::new(), Vec::new());
        for (key, data) in changed {
            let Ok(id) = key.parse::<Uuid>() else { continue };
            match data.as_ref().and_then(NewDocument::from_record) {
                Some(document) => {
                    let hash = content_hash(&document.text);
                    put.push(PutDocument { uuid: id, id: id.to_string(), hash, document });
                }
                None => deleted.push(id.to_string()),
            }
        }
        // A document can have the path of one that is deleted.
        self.delete(transaction, &deleted).await?;
        self.put(transaction, put).await
    }

    async fn delete(&self, transaction: &Transaction<'_>, ids: &[String]) -> Result<(), Error> {
        if ids.is_empty() {
            return Ok(());
        }
        let sql = "DELETE FROM fetchwell.documents
             WHERE project_id = $1::text::uuid AND id = ANY ($2::text[]::uuid[])";
        transaction.execute(sql, &[&self.project, &ids]).await.map(drop)
    }

    async fn put(&self, transaction: &Transaction<'_>, documents: Vec<PutDocument>) -> Result<(), Error> {
        if documents.is_empty() {
            return Ok(());
        }
        let ids: Vec<&str> = documents.iter().map(|put| put.id.as_str()).collect();
        let sql =
            "SELECT id::text, content_hash FROM fetchwell.documents WHERE id = ANY ($1::text[]::uuid[])";
        let known = transaction.query(sql, &[&ids]).await?;
        let known: HashMap<String, String> = known.iter().map(|row| (row.get(0), row.get(1))).collect();
        self.put_documents(transaction, &documents).await?;
        let is_other = |put: &PutDocument| known.get(&put.id) != Some(&put.hash);
        let replaced = documents.iter().filter(|put| is_other(put) && known.contains_key(&put.id));
        let replaced: Vec<&str> = replaced.map(|put| put.id.as_str()).collect();
        let sql = "DELETE FROM fetchwell.chunks WHERE document_id = ANY ($1::text[]::uuid[])";
        transaction.execute(sql, &[&replaced]).await?;
        let Ok(project) = self.project.parse() else { return Ok(()) };
        let other = documents.into_iter().filter(is_other);
        let other = other.map(|put| ChunkedDocument { id: put.uuid, text: put.document.text }).collect();
        write_chunks(transaction, project, other, Arc::clone(&self.chunks)).await
    }

    async fn put_documents(
        &self,
        transaction: &Transaction<'_>,
        documents: &[PutDocument],
    ) -> Result<(), Error> {
        let sql = "INSERT INTO fetchwell.documents
                 (id, project_id, path, title, content_hash, category, metadata, created_at, updated_at)
             SELECT n.id::uuid, $1::text::uuid, n.path, n.title, n.hash, n.category, n.metadata::jsonb, clock_timestamp(),
                 clock_timestamp()
             FROM unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[])
                 AS n (id, path, title, hash, category, metadata)
             ON CONFLICT (id) DO UPDATE SET path = excluded.path, title = excluded.title,
                 content_hash = excluded.content_hash, category = excluded.category, metadata = excluded.metadata
             WHERE documents.project_id = excluded.project_id";
        let texts = |of: fn(&PutDocument) -> String| documents.iter().map(of).collect::<Vec<String>>();
        let ids = texts(|put| put.id.clone());
        let paths = texts(|put| put.document.path.to_string());
        let titles: Vec<Option<String>> =
            documents.iter().map(|put| put.document.title.as_deref().map(storable)).collect();
        let hashes = texts(|put| put.hash.clone());
        let categories = texts(|put| put.document.category.to_string());
        let metadata = texts(|put| without_nul(Value::Object(put.document.metadata.clone())).to_string());
        let statement = transaction.prepare_cached(sql).await?;
        let values: [&(dyn ToSql + Sync); 7] =
            [&self.project, &ids, &paths, &titles, &hashes, &categories, &metadata];
        transaction.execute(&statement, &values).await.map(drop)
    }

    /// Counts the changes as one commit, if there are any. Called last in a transaction.
    pub(crate) async fn commit(&mut self, transaction: &Transaction<'_>) -> Result<(), Error> {
        if !take(&mut self.has_changes) {
            return Ok(());
        }
        let sql =
            "UPDATE fetchwell.projects SET corpus_version = corpus_version + 1 WHERE id = $1::text::uuid";
        transaction.execute(sql, &[&self.project]).await.map(drop)
    }
}
