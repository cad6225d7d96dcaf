//! Visits: pages that are read with a whole grant.

use std::sync::Arc;

use axum::extract::Request;
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::Response;
use fetchwell_callers::{CallContext, Caller};
use fetchwell_telemetry::Call;
use fetchwell_tools::Toolbox;
use futures_util::future::BoxFuture;
use maud::Markup;
use tokio::sync::OwnedSemaphorePermit;

use super::pages::{AccessMethod, PageRefusal, Pages, without_state};
use super::responses::code_of;
use super::return_path::ReturnPath;
use super::sign_in_page::sign_in_page;
use crate::answer::answer_call;
use crate::middleware::authenticate::client_of;
use crate::middleware::served::AuthMode;
use crate::pages::layout::{Page, Section, Visitor, problem};
use crate::server::connections::HeldUntilSent;

/// A visitor who may read all records of a grant, or of an open server.
#[derive(Debug)]
pub(crate) struct Visit {
    /// Source, settings and caches of the grant.
    pub(crate) toolbox: Arc<Toolbox>,
    /// Visitor for the layout.
    pub(crate) visitor: Visitor,
    /// The visitor as a caller; `None` on a server without authentication.
    pub(crate) caller: Option<Caller>,
    permit: Option<Arc<OwnedSemaphorePermit>>,
}

/// The content of a page, without the layout.
#[derive(Debug)]
pub(crate) struct PageContent {
    /// Title of the window.
    pub(crate) title: String,
    /// Entry of the navigation.
    pub(crate) section: Option<Section>,
    /// Status of the response.
    pub(crate) status: StatusCode,
    /// Error code for telemetry; empty for a success.
    pub(crate) code: &'static str,
    /// Content of the main part.
    pub(crate) main: Markup,
}

impl PageContent {
    /// Creates the content of a page that succeeded.
    pub(crate) fn new(title: &str, section: Section, main: Markup) -> Self {
        let section = Some(section);
        Self { title: title.to_owned(), section, status: StatusCode::OK, code: "", main }
    }

    /// Sets the status and the error code.
    pub(crate) fn with_error(self, status: StatusCode, code: &'static str) -> Self {
        Self { status, code, ..self }
    }
}

impl Visit {
    /// Creates the visit of a toolbox that everyone on this machine may read.
    pub(crate) fn local(toolbox: Arc<Toolbox>) -> Self {
        Self { toolbox, visitor: Visitor::Local, caller: None, permit: None }
    }

    /// Adds the permit of the call to a response, which holds it until its last byte is sent.
    pub(crate) fn hold_permit(self, mut response: Response) -> Response {
        if let Some(permit) = self.permit {
            // Pages are small, so their bytes do not count for the budget of unsent bytes.
            response.extensions_mut().insert(HeldUntilSent::new(permit, None));
        }
        response
    }
}

impl Pages {
    /// Returns the visit of a browser, or the page that it gets instead. After a sign-in that page leads to `to`.
    pub(in crate::pages) async fn visit(
        &self,
        request: &Parts,
        to: &ReturnPath,
        record: &mut Call,
    ) -> Result<Visit, Response> {
        let callers = match &self.served {
            AuthMode::Unauthenticated(toolbox) => {
                return Ok(Visit::local(toolbox.now().audited(record)));
            }
            AuthMode::Authenticated(callers) => callers,
        };
        let method = AccessMethod::offered_by(callers);
        let session = self.sessions.get(&request.headers).await.map_err(|_counted| without_state())?;
        let session = session.filter(|session| session.shows_all());
        let Some(session) = session else {
            return Err(sign_in_page(to, "Sign in to read the records that you may see.", method));
        };
        let client = client_of(&request.extensions);
        match self.admit(callers, &session.reader().token, client, record).await {
            Ok((caller, permit)) => Ok(Visit {
                visitor: if caller.is_admin { Visitor::Operator } else { Visitor::SignedIn },
                caller: Some(caller.caller.clone()),
                toolbox: Arc::new(permit.toolbox.for_call(CallContext::new(caller))).audited(record),
                permit: Some(Arc::new(permit.permit)),
            }),
            Err(PageRefusal { status: StatusCode::UNAUTHORIZED, problem }) => {
                Err(sign_in_page(to, &problem, method))
            }
            Err(PageRefusal { status, problem: text }) => {
                Err(problem(status, "The page cannot be shown", &text, Visitor::SignedIn))
            }
        }
    }
}

/// Serves a page to a visitor who may read all records of a grant, and records the call under a route template.
pub(crate) async fn serve_page(
    pages: &Pages,
    route: &str,
    request: Request,
    content: for<'a> fn(&'a Pages, &'a Visit, &'a Parts) -> BoxFuture<'a, PageContent>,
) -> Response {
    let (request, _) = request.into_parts();
    answer_call(&pages.telemetry, route, &request, async |call| {
        let to = ReturnPath::page(request.uri.path(), request.uri.query());
        let visit = match pages.visit(&request, &to, call).await {
            Ok(visit) => visit,
            Err(refused) => return (code_of(refused.status()), refused),
        };
        let PageContent { title, section, status, code, main } = content(pages, &visit, &request).await;
        let page = Page { title: &title, section, visitor: visit.visitor };
        (code, visit.hold_permit(page.render(status, &main)))
    })
    .await
}
