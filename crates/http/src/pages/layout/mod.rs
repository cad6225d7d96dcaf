//! The layout that all pages share: header with navigation, main part and footer, with their style and security headers.
//!
//! [`Page`] renders a page. A page needs no script: the only one copies handles and focuses the search field. The style
//! sheet has custom properties for both color schemes; pages use its classes and have no `style` attributes, which the
//! content security policy refuses. Markup inside of a page escapes all text of records, and loads nothing.
//!
//! * `headers`: style sheet, script, content security policy and the other headers
//! * `parts`: small pieces of markup: times, facts, notes, handles to copy

mod headers;
mod parts;

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use maud::{DOCTYPE, Markup, PreEscaped, html};

pub(super) use self::parts::{copy_button, quantity, sentence, time, warning};

use self::headers::{CSS, SCRIPT, headers};

/// Path of the form that ends a session. No handle has this form.
pub(super) const SIGN_OUT: &str = "/records/-/sign-out";

/// An entry of the navigation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Section {
    /// Search over all records.
    Search,
    /// Accounts and sources.
    Sources,
    /// Projects of document search.
    Projects,
    /// Answers of tools.
    Model,
    /// Calls and state of the server, for operators.
    Operator,
}

impl Section {
    const ALL: [Self; 5] = [Self::Search, Self::Sources, Self::Projects, Self::Model, Self::Operator];

    /// Returns true if the navigation of a visitor has this section.
    fn is_open_to(self, visitor: Visitor) -> bool {
        self != Self::Operator || matches!(visitor, Visitor::Local | Visitor::Operator)
    }

    fn path(self) -> &'static str {
        match self {
            Self::Search => "/",
            Self::Sources => "/sources",
            Self::Projects => "/projects",
            Self::Model => "/model",
            Self::Operator => "/operator",
        }
    }

    fn label(self) -> &'static str {
        match self {
            Self::Search => "Search",
            Self::Sources => "Sources",
            Self::Projects => "Projects",
            Self::Model => "What the model sees",
            Self::Operator => "Operator",
        }
    }
}

/// The visitor of a page, as far as the header depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Visitor {
    /// Not signed in: no navigation.
    Unknown,
    /// A browser on this machine, on a server without authentication.
    Local,
    /// A browser that followed the links of some records: it can only end its session.
    Linked,
    /// A person with a grant.
    SignedIn,
    /// A person with a grant and a token with `admin = true`.
    Operator,
}

/// A page of the web interface.
#[derive(Debug, Clone, Copy)]
pub(super) struct Page<'a> {
    /// Title of the window.
    pub(super) title: &'a str,
    /// Current entry of the navigation.
    pub(super) section: Option<Section>,
    /// Visitor of the page.
    pub(super) visitor: Visitor,
}

impl Page<'_> {
    /// Renders the page with the content of its main part.
    pub(super) fn render(&self, status: StatusCode, main: &Markup) -> Response {
        let html = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="robots" content="noindex";
                    meta name="color-scheme" content="light dark";
                    title { (self.title) }
                    style { (PreEscaped(CSS)) }
                }
                body {
                    a class="skip" href="#main" { "Skip to the content" }
                    (self.header())
                    main id="main" tabindex="-1" { (main) }
                    footer { "Shown by fetchwell. The content of a record is that of its author." }
                    script { (PreEscaped(SCRIPT)) }
                }
            }
        };
        (status, headers(), html.into_string()).into_response()
    }

    fn header(&self) -> Markup {
        let has_navigation = matches!(self.visitor, Visitor::Local | Visitor::SignedIn | Visitor::Operator);
        let has_session = matches!(self.visitor, Visitor::Linked | Visitor::SignedIn | Visitor::Operator);
        html! {
            header {
                a class="brand" href="/" { "fetchwell" }
                @if has_navigation {
                    nav aria-label="Pages" {
                        @for section in Section::ALL.into_iter().filter(|section| section.is_open_to(self.visitor)) {
                            a href=(section.path()) aria-current=[(self.section == Some(section)).then_some("page")] {
                                (section.label())
                            }
                        }
                    }
                }
                @if has_session {
                    form method="post" action=(SIGN_OUT) { button class="link" type="submit" { "Sign out" } }
                }
            }
        }
    }
}

/// Renders an error page.
pub(super) fn problem(status: StatusCode, title: &str, problem: &str, visitor: Visitor) -> Response {
    let body = html! { h1 { (title) } p { (problem) } };
    Page { title, section: None, visitor }.render(status, &body)
}

#[cfg(test)]
mod tests {
    use axum::body::to_bytes;
    use axum::http::header;

    use super::*;

    #[tokio::test]
    async fn titles_are_escaped_and_nothing_else_may_run() {
        let hostile = "</title><script>alert(1)</script>\"'&<img src=x onerror=alert(1)>";
        let response = problem(StatusCode::OK, hostile, hostile, Visitor::SignedIn);
        let policy = response.headers()[header::CONTENT_SECURITY_POLICY].to_str().unwrap().to_owned();
        assert!(policy.starts_with("default-src 'none'; style-src 'sha256-") && !policy.contains("unsafe"));
        let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
        let html = String::from_utf8(body.to_vec()).unwrap();
        assert_eq!(html.matches("<script").count(), 1, "{html}");
        assert_eq!(html.matches("&lt;script&gt;").count(), 3, "{html}");
        assert!(!html.contains("<img"), "{html}");
        // The policy has the hashes of these elements.
        assert!(html.contains(&format!("<style>{CSS}</style>")));
        assert!(html.contains(&format!("<script>{SCRIPT}</script>")));
    }
}
