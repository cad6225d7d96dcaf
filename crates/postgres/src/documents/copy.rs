//! Projects that are copied from one store to another, with their ids.

use deadpool_postgres::Transaction;
use fetchwell_core::handle::ConnectionId;
use fetchwell_core::saturate::saturated;
use fetchwell_source::contract::{PostgresError, StoreError};
use fetchwell_source::documents::{DOCS_KIND, Project, ProjectCopy, ProjectRef};
use tokio_postgres::Error;
use tokio_postgres::types::ToSql;

use super::read::{DIALECT, find, rows_in};
use crate::administration::Blocking;
use crate::document_rows::is_project;
use crate::extension::problem;
use crate::pool::PostgresPool;
use crate::transaction::{begin_read, begin_write};

/// Returns the project of a connection, or `None` if it is no project. Blocks, so it must not be called on a
/// thread of an async runtime.
///
/// # Errors
///
/// The database cannot be used.
pub(crate) fn copied_project(
    pool: &PostgresPool,
    connection: &ConnectionId,
) -> Result<Option<ProjectCopy>, StoreError> {
    let database = Blocking::new(pool)?;
    let pool = database.pool();
    database.wait(async {
        let mut client = pool.connection().await?;
        let failed = |error| StoreError::from(pool.failure(&error));
        let transaction = begin_read(&mut client, pool.url()).await.map_err(failed)?;
        read(&transaction, connection).await.map_err(failed)
    })
}

async fn read(
    transaction: &Transaction<'_>,
    connection: &ConnectionId,
) -> Result<Option<ProjectCopy>, Error> {
    if !is_project(transaction.client(), connection).await? {
        return Ok(None);
    }
    let Ok(slug) = connection.as_str().parse() else { return Ok(None) };
    let Some(project) = find(transaction, &ProjectRef::Slug(slug)).await? else { return Ok(None) };
    let client = transaction.client();
    let documents = rows_in(client, &DIALECT.copied_documents(project.id)).await?;
    let chunks = rows_in(client, &DIALECT.copied_chunks(project.id, "chunks")).await?.into_iter().collect();
    Ok(Some(ProjectCopy { project, documents, chunks }))
}

/// Creates a copied project with its id, or changes the one with this id. Blocks, so it must not be called on
/// a thread of an async runtime.
///
/// # Errors
///
/// The database cannot be written or has no pgvector, or its slug is that of another project or connection.
pub fn put_copied_project(pool: &PostgresPool, project: &Project) -> Result<(), StoreError> {
    let database = Blocking::new(pool)?;
    let pool = database.pool();
    let is_put = database.wait(async {
        let mut client = pool.connection().await?;
        let failed = |error| StoreError::from(pool.failure(&error));
        if let Some(problem) = problem(&client).await.map_err(failed)? {
            let database = pool.url().to_string();
            return Err(PostgresError::NoPgvector { database, problem }.into());
        }
        let transaction = begin_write(&mut client, pool.url()).await.map_err(failed)?;
        let is_put = put(&transaction, project).await.map_err(failed)?;
        transaction.commit().await.map_err(failed)?;
        Ok::<bool, StoreError>(is_put)
    })?;
    if is_put { Ok(()) } else { Err(StoreError::OtherProject(project.slug.to_string())) }
}

async fn put(transaction: &Transaction<'_>, project: &Project) -> Result<bool, Error> {
    let Project { id, slug, name, settings, corpus_version, created_at, .. } = project;
    let (id, slug) = (id.to_string(), slug.as_str());
    let settings = serde_json::to_string(settings).unwrap_or_default();
    let version = saturated::<i32>(*corpus_version);
    let sql = "SELECT id::text FROM fetchwell.projects WHERE slug = $1";
    if let Some(known) = transaction.query_opt(sql, &[&slug]).await? {
        if known.get::<_, &str>(0) != id {
            return Ok(false);
        }
        let sql = "UPDATE fetchwell.projects
             SET name = $2, settings = $3::text::jsonb, corpus_version = greatest(corpus_version, $4) WHERE id = $1::text::uuid";
        transaction.execute(sql, &[&id, name, &settings, &version]).await?;
        let sql = "UPDATE fetchwell.connections SET display_name = $2 WHERE connection_id = $1";
        transaction.execute(sql, &[&slug, name]).await?;
        return Ok(true);
    }
    let sql = "INSERT INTO fetchwell.connections (connection_id, connector_key, display_name)
         VALUES ($1, $2, $3) ON CONFLICT (connection_id) DO NOTHING RETURNING id";
    if transaction.query_opt(sql, &[&slug, &DOCS_KIND, name]).await?.is_none() {
        return Ok(false);
    }
    let sql =
        "INSERT INTO fetchwell.projects (id, slug, name, settings, corpus_version, created_at, updated_at)
         VALUES ($1::text::uuid, $2, $3, $4::text::jsonb, $5, $6::text::timestamptz, clock_timestamp())";
    let values: [&(dyn ToSql + Sync); 6] = [&id, &slug, name, &settings, &version, created_at];
    transaction.execute(sql, &values).await?;
    Ok(true)
}
