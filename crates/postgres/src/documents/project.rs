//! Creates, changes and removes projects.

use deadpool_postgres::Transaction;
use fetchwell_source::documents::{
    DOCS_KIND, DOCUMENTS_STREAM, NewProject, Project, ProjectChange, ProjectRef, Uuid,
};
use tokio_postgres::Error;

use super::history::delete_expired_of;
use super::read::{DIALECT, find, rows_in};
use crate::terms::delete_terms;
use crate::transaction::lock_version;
use crate::words::WORDS_VERSION;

/// Creates a project with an empty stream of documents. Returns `None` if its slug is the id of another connection.
pub(super) async fn create(
    transaction: &Transaction<'_>,
    new: &NewProject,
) -> Result<Option<Project>, Error> {
    let (slug, name) = (new.slug.as_str(), new.name.as_str());
    let connection = "INSERT INTO fetchwell.connections (connection_id, connector_key, display_name)
         VALUES ($1, $2, $3) ON CONFLICT (connection_id) DO NOTHING RETURNING id";
    let Some(connection) = transaction.query_opt(connection, &[&slug, &DOCS_KIND, &name]).await? else {
        return Ok(None);
    };
    let stream = "INSERT INTO fetchwell.streams (connection, name, indexed) VALUES ($1, $2, $3)";
    transaction.execute(stream, &[&connection.get::<_, i64>(0), &DOCUMENTS_STREAM, &WORDS_VERSION]).await?;
    let project = "INSERT INTO fetchwell.projects (slug, name, settings, created_at, updated_at)
         VALUES ($1, $2, $3::text::jsonb, clock_timestamp(), clock_timestamp())";
    let settings = serde_json::to_string(&new.settings).unwrap_or_default();
    transaction.execute(project, &[&slug, &name, &settings]).await?;
    find(transaction, &ProjectRef::Slug(new.slug.clone())).await
}

/// Changes a project and raises its version. Returns `None` if there is no such project.
pub(super) async fn change(
    transaction: &Transaction<'_>,
    id: Uuid,
    change: &ProjectChange,
) -> Result<Option<Project>, Error> {
    let mut query = DIALECT.project(&ProjectRef::Id(id));
    query.sql.push_str(" FOR UPDATE");
    let Some(before) = rows_in(transaction.client(), &query).await?.pop() else { return Ok(None) };
    let (name, settings) = change.apply(&before);
    let sql = "UPDATE fetchwell.projects SET name = $2, settings = $3::text::jsonb, corpus_version = corpus_version + 1
         WHERE id = $1::text::uuid";
    transaction.execute(sql, &[&id.to_string(), &name, &settings]).await?;
    let sql = "UPDATE fetchwell.connections SET display_name = $2 WHERE connection_id = $1";
    transaction.execute(sql, &[&before.slug.as_str(), &name]).await?;
    let after = find(transaction, &ProjectRef::Id(id)).await?;
    if let Some(after) = &after {
        delete_expired_of(transaction.client(), after).await?;
    }
    Ok(after)
}

/// Removes a project with its documents, chunks, records, imports and history. Returns false if there is none.
pub(crate) async fn remove_project_rows(transaction: &Transaction<'_>, id: Uuid) -> Result<bool, Error> {
    // Taken before the lock of the numbers of words, as by all writers.
    lock_version(transaction).await?;
    let sql = "DELETE FROM fetchwell.projects WHERE id = $1::text::uuid RETURNING slug";
    let Some(project) = transaction.query_opt(sql, &[&id.to_string()]).await? else { return Ok(false) };
    let slug: String = project.get(0);
    let find = "SELECT id FROM fetchwell.connections WHERE connection_id = $1";
    let Some(connection) = transaction.query_opt(find, &[&slug]).await? else { return Ok(true) };
    let connection: i64 = connection.get(0);
    let find = "SELECT id FROM fetchwell.streams WHERE connection = $1";
    let rows = transaction.query(find, &[&connection]).await?;
    let rows: Vec<i64> = rows.iter().map(|row| row.get(0)).collect();
    delete_terms(transaction, &rows).await?;
    let streams = format!("({find})");
    for statement in [
        format!("DELETE FROM fetchwell.texts WHERE stream IN {streams}"),
        format!("DELETE FROM fetchwell.records WHERE stream IN {streams}"),
        format!("DELETE FROM fetchwell.fields WHERE stream IN {streams}"),
        "DELETE FROM fetchwell.streams WHERE connection = $1".to_owned(),
        // Its imports with their items are deleted with it.
        "DELETE FROM fetchwell.connections WHERE id = $1".to_owned(),
    ] {
        transaction.execute(&statement, &[&connection]).await?;
    }
    Ok(true)
}
