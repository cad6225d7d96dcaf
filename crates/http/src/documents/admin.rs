//! Requests that need a token with `admin = true`: the history of searches, one by one and in groups, and the removal of cached
//! answers.

use std::collections::HashSet;

use fetchwell_source::documents::{Project, SearchGroup, SearchGrouping, SearchRecord, Uuid};
use fetchwell_tools::Toolbox;
use fetchwell_tools::documents::ReadableProjects;
use serde::Serialize;

use super::error::DocumentError;
use super::parameters::Parameters;
use super::request::MAX_PROJECT_CHARS;
use super::response::fitting;
use crate::answer::Answer;
use crate::middleware::served::AuthMode;

/// Number of searches without `limit`.
const DEFAULT_LIMIT: usize = 50;

/// Maximum length of `group_by`.
const MAX_GROUPING_CHARS: usize = 100;

/// Maximum of `limit`.
const MAX_LIMIT: usize = 1_000;

/// The last searches of a project.
#[derive(Debug, Serialize)]
struct History {
    searches: Vec<SearchRecord>,
}

/// The searches of a project in groups.
#[derive(Debug, Serialize)]
struct GroupedHistory {
    group_by: SearchGrouping,
    groups: Vec<SearchGroup>,
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
    Ok(Answer::new(&History { searches })?.with_items(items))
}

/// Answers with the numbers and latencies of the searches of a project, in groups.
pub(super) async fn search_groups(
    toolbox: &Toolbox,
    id: &str,
    query: Option<&str>,
) -> Result<Answer, DocumentError> {
    check_admin(toolbox)?;
    let mut parameters = Parameters::from_query(query, &["group_by"]);
    let name = parameters.required_text("group_by", MAX_GROUPING_CHARS);
    let parsed = name.parse::<SearchGrouping>();
    if let (false, Err(problem)) = (name.is_empty(), &parsed) {
        parameters.refuse("group_by", &problem.to_string(), "enum");
    }
    parameters.finish()?;
    let Ok(group_by) = parsed else { return Err(DocumentError::internal()) };
    let found = ReadableProjects::in_source(toolbox.source()).await?.find(id).await?;
    let groups = found.store.search_groups(found.project.id, group_by).await?;
    let items = groups.len();
    Ok(Answer::new(&GroupedHistory { group_by, groups })?.with_items(items))
}

/// Removes cached answers of one project, or of all readable ones, from the caches of all callers, on all servers that
/// share their state. An answer that is in several places is counted once.
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
    let found = match project {
        Some(project) => vec![projects.find(&project).await?],
        None => projects.all().await?,
    };
    let projects: Vec<&Project> = found.iter().map(|found| &found.project).collect();
    let ids: HashSet<Uuid> = projects.iter().map(|project| project.id).collect();
    let is_cleared = |project| ids.contains(&project);
    let mut keys = match served {
        AuthMode::Unauthenticated(toolbox) => toolbox.now().searches().clear(is_cleared),
        AuthMode::Authenticated(callers) => callers.toolboxes.clear_searches(is_cleared),
    };
    let shared = toolbox.searches().clear_shared(&projects).await;
    keys.extend(shared.map_err(|error| DocumentError::not_cleared(&error))?);
    let cleared = keys.len();
    Ok(Answer::new(&ClearResult { cleared })?.with_items(cleared))
}
