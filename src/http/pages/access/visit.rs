//! Visits: pages that are read with a whole grant.

use std::sync::Arc;

use axum::extract::Request;
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::Response;
use futures_util::future::BoxFuture;
use maud::Markup;
use tokio::sync::OwnedSemaphorePermit;

use super::pages::{AccessMethod, PageRefusal, Pages, without_state};
use super::responses::code_of;
use super::return_path::ReturnPath;
use super::sign_in_page::sign_in_page;
use crate::callers::CallContext;
use crate::http::answer::answer_call;
use crate::http::middleware::authenticate::client_of;
use crate::http::middleware::served::AuthMode;
use crate::http::pages::layout::{Page, Section, Visitor, problem};
use crate::http::server::connections::HeldUntilSent;
use crate::telemetry::Call;
use crate::tools::Toolbox;

/// A visitor who may read all records of a grant, or of an open server.
#[derive(Debug)]
pub(in crate::http::pages) struct Visit {
    /// Source, settings and caches of the grant.
    pub(in crate::http::pages) toolbox: Arc<Toolbox>,
    /// Visitor for the layout.
    pub(in crate::http::pages) visitor: Visitor,
    permit: Option<Arc<OwnedSemaphorePermit>>,
}

/// The content of a page, without the layout.
#[derive(Debug)]
pub(in crate::http::pages) struct PageContent {
    /// Title of the window.
    pub(in crate::http::pages) title: String,
    /// Entry of the navigation.
    pub(in crate::http::pages) section: Option<Section>,
    /// Status of the response.
    pub(in crate::http::pages) status: StatusCode,
    /// Error code for telemetry; empty for a success.
    pub(in crate::http::pages) code: &'static str,
    /// Content of the main part.
    pub(in crate::http::pages) main: Markup,
}

impl PageContent {
    /// Creates the content of a page that succeeded.
    pub(in crate::http::pages) fn new(title: &str, section: Section, main: Markup) -> Self {
        let section = Some(section);
        Self { title: title.to_owned(), section, status: StatusCode::OK, code: "", main }
    }

    /// Sets the status and the error code.
    pub(in crate::http::pages) fn with_error(self, status: StatusCode, code: &'static str) -> Self {
        Self { status, code, ..self }
    }
}

impl Visit {
    /// Creates the visit of a toolbox that everyone on this machine may read.
    pub(in crate::http::pages) fn local(toolbox: Arc<Toolbox>) -> Self {
        Self { toolbox, visitor: Visitor::Local, permit: None }
    }

    /// Adds the permit of the call to a response, which holds it until its last byte is sent.
    pub(in crate::http::pages) fn hold_permit(self, mut response: Response) -> Response {
        if let Some(permit) = self.permit {
            // Pages are small, so their bytes do not count for the budget of unsent bytes.
            response.extensions_mut().insert(HeldUntilSent::new(permit, None));
        }
        response
    }
}

impl Pages {
    /// Returns the visit of a browser, or the page that it gets instead.
    async fn visit(&self, request: &Parts, record: &mut Call) -> Result<Visit, Response> {
        let callers = match &self.served {
            AuthMode::Unauthenticated(toolbox) => {
                return Ok(Visit::local(toolbox.now().audited(record)));
            }
            AuthMode::Authenticated(callers) => callers,
        };
        let to = ReturnPath::page(request.uri.path(), request.uri.query());
        let method = AccessMethod::offered_by(callers);
        let session = self.sessions.get(&request.headers).await.map_err(|_counted| without_state())?;
        let session = session.filter(|session| session.shows_all());
        let Some(session) = session else {
            return Err(sign_in_page(&to, "Sign in to read the records that you may see.", method));
        };
        let client = client_of(&request.extensions);
        match self.admit(callers, &session.reader().token, client, record).await {
            Ok((caller, permit)) => Ok(Visit {
                visitor: if caller.is_admin { Visitor::Operator } else { Visitor::SignedIn },
                toolbox: Arc::new(permit.toolbox.for_call(CallContext::new(caller))).audited(record),
                permit: Some(Arc::new(permit.permit)),
            }),
            Err(PageRefusal { status: StatusCode::UNAUTHORIZED, problem }) => {
                Err(sign_in_page(&to, &problem, method))
            }
            Err(PageRefusal { status, problem: text }) => {
                Err(problem(status, "The page cannot be shown", &text, Visitor::SignedIn))
            }
        }
    }
}

/// Serves a page to a visitor who may read all records of a grant, and records the call under a route template.
pub(in crate::http::pages) async fn serve_page(
    pages: &Pages,
    route: &str,
    request: Request,
    content: for<'a> fn(&'a Pages, &'a Visit, &'a Parts) -> BoxFuture<'a, PageContent>,
) -> Response {
    let (request, _) = request.into_parts();
    answer_call(&pages.telemetry, route, &request, async |call| {
        let visit = match pages.visit(&request, call).await {
            Ok(visit) => visit,
            Err(refused) => return (code_of(refused.status()), refused),
        };
        let PageContent { title, section, status, code, main } = content(pages, &visit, &request).await;
        let page = Page { title: &title, section, visitor: visit.visitor };
        (code, visit.hold_permit(page.render(status, &main)))
    })
    .await
}
