//! Requests that need a token with `admin = true`: the history of searches, and the removal of cached answers.

use serde::Serialize;

use super::answer::Answer;
use super::error::DocumentError;
use super::parameters::Parameters;
use super::request::MAX_PROJECT_CHARS;
use super::response::fitting;
use crate::docs::ReadableProjects;
use crate::http::middleware::served::AuthMode;
use crate::source::documents::{SearchRecord, Uuid};
use crate::tools::Toolbox;

/// Number of searches without `limit`.
const DEFAULT_LIMIT: usize = 50;

/// Maximum of `limit`.
const MAX_LIMIT: usize = 1_000;

/// The last searches of a project.
#[derive(Debug, Serialize)]
struct History {
    searches: Vec<SearchRecord>,
}

/// The result of a removal.
#[derive(Debug, Serialize)]
struct ClearResult {
    /// Number of answers.
    cleared: usize,
}

/// Refuses a caller without `admin = true`. Without authentication there is no such caller.
fn check_admin(toolbox: &Toolbox) -> Result<(), DocumentError> {
    if toolbox.source().context().is_admin() { Ok(()) } else { Err(DocumentError::admin_only()) }
}

/// Answers with the last searches of a project, the newest first.
pub(super) async fn history(
    toolbox: &Toolbox,
    id: &str,
    query: Option<&str>,
) -> Result<Answer, DocumentError> {
    check_admin(toolbox)?;
    let mut parameters = Parameters::from_query(query, &["limit"]);
    let limit = parameters.integer("limit", DEFAULT_LIMIT, MAX_LIMIT);
    parameters.finish()?;
    let found = ReadableProjects::in_source(toolbox.source()).await?.find(id).await?;
    let searches = fitting(found.store.history(found.project.id, limit).await?);
    let items = searches.len();
    Answer::new(&History { searches }, items)
}

/// Removes cached answers of one project, or of all readable ones, from the caches of all callers. Also
/// invalidates the entries of all projects on other servers that share their state.
pub(super) async fn clear_cache(
    served: &AuthMode,
    toolbox: &Toolbox,
    query: Option<&str>,
) -> Result<Answer, DocumentError> {
    check_admin(toolbox)?;
    let mut parameters = Parameters::from_query(query, &["project_id"]);
    let project = parameters.text("project_id", MAX_PROJECT_CHARS);
    parameters.finish()?;
    let projects = ReadableProjects::in_source(toolbox.source()).await?;
    let cleared: Vec<Uuid> = match project {
        Some(project) => vec![projects.find(&project).await?.project.id],
        None => projects.all().await?.into_iter().map(|found| found.project.id).collect(),
    };
    let is_cleared = |project| cleared.contains(&project);
    let cleared = match served {
        AuthMode::Unauthenticated(toolbox) => toolbox.now().searches().clear(is_cleared),
        AuthMode::Authenticated(callers) => callers.toolboxes.clear_searches(is_cleared),
    };
    let shared = toolbox.searches().clear_shared().await;
    shared.map_err(|error| DocumentError::not_cleared(&error))?;
    Answer::new(&ClearResult { cleared }, cleared)
}
