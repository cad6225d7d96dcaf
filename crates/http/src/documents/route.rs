//! The paths of the API.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

/// Prefix of all paths.
const BASE: &str = "/api/v1/";

/// The routes, as an error names them.
pub(super) const ROUTES: &str = "POST /api/v1/search, GET /api/v1/search/stream, POST /api/v1/search/{id}/feedback, \
    GET /api/v1/projects, GET /api/v1/projects/{id}, GET /api/v1/projects/{id}/history, \
    GET /api/v1/projects/{id}/searches?group_by=, GET /api/v1/documents?project_id=, POST /api/v1/admin/cache/clear";

/// Path of a search as server-sent events.
pub(crate) const SEARCH_STREAM: &str = "/api/v1/search/stream";

/// Paths that belong to the API alone. Everything below them that is no route is answered with 404.
pub(super) const PREFIXES: [&str; 3] = ["/api/v1/search", "/api/v1/projects", "/api/v1/admin"];

/// Path of the documents of a project. Without `project_id` it can be that of a stream.
pub(super) const DOCUMENTS: &str = "/api/v1/documents";

/// A path of the API. Ids are decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Route<'a> {
    Search,
    Stream,
    Feedback(Cow<'a, str>),
    Projects,
    Project(Cow<'a, str>),
    History(Cow<'a, str>),
    SearchGroups(Cow<'a, str>),
    Documents,
    ClearCache,
}

impl<'a> Route<'a> {
    /// Parses a path. Returns `None` for one that is no route.
    pub(super) fn parse(path: &'a str) -> Option<Self> {
        let id = |segment: &'a str| {
            let decoded = percent_decode_str(segment).decode_utf8().ok()?;
            Some(decoded).filter(|id| !id.is_empty())
        };
        let segments: Vec<&'a str> = path.strip_prefix(BASE)?.split('/').collect();
        Some(match segments.as_slice() {
            ["search"] => Self::Search,
            ["search", "stream"] => Self::Stream,
            ["search", search, "feedback"] => Self::Feedback(id(search)?),
            ["projects"] => Self::Projects,
            ["projects", project] => Self::Project(id(project)?),
            ["projects", project, "history"] => Self::History(id(project)?),
            ["projects", project, "searches"] => Self::SearchGroups(id(project)?),
            ["documents"] => Self::Documents,
            ["admin", "cache", "clear"] => Self::ClearCache,
            _ => return None,
        })
    }

    /// Returns the name of the endpoint in telemetry.
    pub(super) fn template(&self) -> &'static str {
        match self {
            Self::Search => "/api/v1/search",
            Self::Stream => SEARCH_STREAM,
            Self::Feedback(_) => "/api/v1/search/{id}/feedback",
            Self::Projects => "/api/v1/projects",
            Self::Project(_) => "/api/v1/projects/{id}",
            Self::History(_) => "/api/v1/projects/{id}/history",
            Self::SearchGroups(_) => "/api/v1/projects/{id}/searches",
            Self::Documents => DOCUMENTS,
            Self::ClearCache => "/api/v1/admin/cache/clear",
        }
    }

    /// Returns the method that the path takes.
    pub(super) fn method(&self) -> &'static str {
        match self {
            Self::Search | Self::Feedback(_) | Self::ClearCache => "POST",
            Self::Stream
            | Self::Projects
            | Self::Project(_)
            | Self::History(_)
            | Self::SearchGroups(_)
            | Self::Documents => "GET",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_routes() {
        for (path, expect) in [
            ("/api/v1/search", Some(Route::Search)),
            ("/api/v1/search/stream", Some(Route::Stream)),
            ("/api/v1/search/x/feedback", Some(Route::Feedback("x".into()))),
            ("/api/v1/projects", Some(Route::Projects)),
            ("/api/v1/projects/hand%62ook", Some(Route::Project("handbook".into()))),
            ("/api/v1/projects/a%2Fb", Some(Route::Project("a/b".into()))),
            ("/api/v1/projects/x/history", Some(Route::History("x".into()))),
            ("/api/v1/projects/x/searches", Some(Route::SearchGroups("x".into()))),
            ("/api/v1/documents", Some(Route::Documents)),
            ("/api/v1/admin/cache/clear", Some(Route::ClearCache)),
            ("/api/v1/projects/%FF", None),
            ("/api/v1/projects/", None),
            ("/api/v1/search/x", None),
            ("/api/v1/admin", None),
            ("/v1/search", None),
        ] {
            assert_eq!(Route::parse(path), expect, "{path}");
        }
    }
}
