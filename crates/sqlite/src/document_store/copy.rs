//! Projects that are copied from one store to another, with their ids.

use std::path::Path;

use fetchwell_core::handle::ConnectionId;
use fetchwell_source::contract::{NewConnection, StoreError};
use fetchwell_source::documents::{DOCS_KIND, Project, ProjectCopy, ProjectRef};
use rusqlite::{OptionalExtension, TransactionBehavior, params};

use crate::database::Database;
use crate::documents::{DIALECT, create_tables, project, rows};
use crate::import::put_connection;

/// Returns the project of a connection, or `None` if it is no project.
///
/// # Errors
///
/// The store cannot be read.
pub(crate) fn copied_project(
    store: &Path,
    connection: &ConnectionId,
) -> Result<Option<ProjectCopy>, StoreError> {
    let Ok(slug) = connection.as_str().parse() else { return Ok(None) };
    Database::open(store)?.read(|sqlite| {
        let Some(project) = project(sqlite, &ProjectRef::Slug(slug))? else { return Ok(None) };
        let documents = rows(sqlite, &DIALECT.copied_documents(project.id))?;
        let chunks = rows(sqlite, &DIALECT.copied_chunks(project.id, "chunk_ranges"))?.into_iter().collect();
        Ok(Some(ProjectCopy { project, documents, chunks }))
    })
}

/// Creates a copied project with its id, or changes the one with this id.
///
/// # Errors
///
/// The store cannot be written, or its slug is that of another project or connection.
pub fn put_copied_project(store: &Path, copied: &Project) -> Result<(), StoreError> {
    let (database, _lock) = Database::open_or_create(store)?;
    let mut sqlite = database.writer()?;
    let mut put = || -> Result<bool, rusqlite::Error> {
        let transaction = sqlite.transaction_with_behavior(TransactionBehavior::Immediate)?;
        create_tables(&transaction)?;
        let Project { id, slug, name, settings, corpus_version, created_at, updated_at } = copied;
        let (id, slug) = (id.to_string(), slug.as_str());
        let settings = serde_json::to_string(settings).unwrap_or_default();
        let find = "SELECT id FROM projects WHERE slug = ?1";
        let known: Option<String> = transaction.query_row(find, [slug], |row| row.get(0)).optional()?;
        match known {
            Some(known) if known == id => {
                let sql =
                    "UPDATE projects SET name = ?2, settings = ?3, corpus_version = max(corpus_version, ?4)
                     WHERE id = ?1";
                transaction.execute(sql, params![id, name, settings, corpus_version])?;
                let sql = "UPDATE connections SET display_name = ?2 WHERE connection_id = ?1";
                transaction.execute(sql, params![slug, name])?;
            }
            Some(_other) => return Ok(false),
            None => {
                let find = "SELECT 1 FROM connections WHERE connection_id = ?1";
                if transaction.prepare(find)?.exists([slug])? {
                    return Ok(false);
                }
                let connection = NewConnection {
                    connection_id: copied.slug.connection().clone(),
                    connector_key: DOCS_KIND.to_owned(),
                    display_name: Some(name.clone()),
                    manifest: None,
                };
                let (connection, _manifest) = put_connection(&transaction, &connection)?;
                let sql = "INSERT INTO projects
                         (id, slug, name, settings, corpus_version, connection, created_at, updated_at)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
                let values =
                    params![id, slug, name, settings, corpus_version, connection, created_at, updated_at];
                transaction.execute(sql, values)?;
            }
        }
        transaction.commit()?;
        Ok(true)
    };
    let is_put = put().map_err(|error| database.error(&error))?;
    if is_put { Ok(()) } else { Err(StoreError::OtherProject(copied.slug.to_string())) }
}
