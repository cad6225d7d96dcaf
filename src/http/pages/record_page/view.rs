//! HTML of record pages: without scripts, and with everything that comes from a record as text.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use serde::Deserialize;
use sha2::{Digest, Sha256};

use crate::callers::{LINK, SignInFault};

/// Path of the form with a token. No handle has this form.
pub(super) const SIGN_IN: &str = "/records/-/sign-in";

/// Path of the form that ends a session.
pub(super) const SIGN_OUT: &str = "/records/-/sign-out";

const CSS: &str = include_str!("page.css");

/// Content security policy: no loading, no scripts, no framing, and forms only to this server.
static POLICY: LazyLock<String> = LazyLock::new(|| {
    let style = STANDARD.encode(Sha256::digest(CSS));
    format!(
        "default-src 'none'; style-src 'sha256-{style}'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    )
});

/// A record as `fetch` gives it.
#[derive(Debug, Deserialize)]
pub(super) struct Document {
    title: String,
    text: String,
    url: String,
    metadata: BTreeMap<String, String>,
}

/// Parts of a page around the record.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct PageSurround<'a> {
    /// URL of the next part.
    pub(super) next: Option<&'a str>,
    /// The record's own page elsewhere.
    pub(super) elsewhere: Option<&'a str>,
    /// True if the page offers to end the session.
    pub(super) is_signed_in: bool,
}

impl Document {
    /// Returns the handle of the next part.
    pub(super) fn next(&self) -> Option<&str> {
        self.metadata.get("next").map(String::as_str)
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }
}

/// Metadata of a record with labels for people.
const FACTS: [(&str, &str); 5] = [
    ("display_name", "Account"),
    ("connector_key", "Kind"),
    ("stream", "Stream"),
    ("authored_at", "Written"),
    ("emitted_at", "Seen"),
];

/// Renders the page of a record.
pub(super) fn record(document: &Document, around: PageSurround<'_>) -> Response {
    let facts = FACTS.into_iter().filter_map(|(key, label)| Some((label, document.metadata.get(key)?)));
    let facts: Vec<(&str, &String)> = facts.collect();
    let body = html! {
        // The language of a record is unknown.
        h1 dir="auto" lang="" { (document.title) }
        @if !facts.is_empty() {
            dl { @for (label, value) in facts { dt { (label) } dd { (fact(value)) } } }
        }
        // Browsers drop the first line break in `pre`.
        pre id="record" dir="auto" lang="" { "\n" (document.text) }
        @if around.next.is_some() || around.elsewhere.is_some() {
            nav aria-label="This record" {
                @if let Some(next) = around.next { a href=(next) rel="next" { "Next part" } }
                @if let Some(elsewhere) = around.elsewhere {
                    a href=(elsewhere) rel="noopener noreferrer" { "Open it where it is from" }
                }
            }
        }
    };
    page(StatusCode::OK, &document.title, &body, around.is_signed_in)
}

/// Formats a timestamp for people, and any other value unchanged.
fn fact(value: &str) -> Markup {
    match value.parse::<Timestamp>() {
        Ok(timestamp) => html! { time datetime=(value) { (timestamp.strftime("%-d %B %Y, %H:%M UTC")) } },
        Err(_no_timestamp) => html! { bdi lang="" { (value) } },
    }
}

/// Renders the page for a followed link, with a button that begins the session. Programs that fetch previews of links do not
/// press it.
pub(super) fn opening(path: &str, key: &str) -> Response {
    let body = html! {
        h1 { "Open this record" }
        p { "The link you followed opens one record. It stays open in this browser." }
        form method="post" action=(path) {
            input type="hidden" name=(LINK) value=(key);
            button type="submit" autofocus { "Open the record" }
        }
    };
    page(StatusCode::OK, "Open this record", &body, false)
}

/// Access to a record that is not public.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AccessMethod {
    /// By a link that an assistant gives.
    Link,
    /// By signing in at the authorization server.
    SignIn,
}

/// Renders the page for a visitor who is not signed in.
pub(super) fn sign_in(path: &str, problem: &str, way_in: AccessMethod) -> Response {
    let body = html! {
        h1 { "This record is not public" }
        p { (problem) }
        @match way_in {
            AccessMethod::Link => p { "Ask your assistant to fetch the record again: the address it gives then opens it. Or show an access token:" },
            AccessMethod::SignIn => {
                p { a href=(path) { "Sign in" } }
                p { "Or show an access token:" }
            }
        }
        form method="post" action=(SIGN_IN) {
            input type="hidden" name="to" value=(path);
            label for="token" { "Access token" }
            input id="token" name="token" type="password" autocomplete="off" spellcheck="false" required;
            button type="submit" { "Sign in" }
        }
    };
    let mut response = page(StatusCode::UNAUTHORIZED, "Sign in", &body, false);
    response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    response
}

/// Renders the page for a sign-in that failed.
pub(super) fn not_signed_in(fault: &SignInFault, path: &str) -> Response {
    let (status, remedy) = match fault {
        SignInFault::AccessDenied | SignInFault::Malformed | SignInFault::OtherIssuer => {
            (StatusCode::FORBIDDEN, None)
        }
        SignInFault::Refused(code) if code == "invalid_grant" => (StatusCode::FORBIDDEN, None),
        SignInFault::Refused(_) => (StatusCode::BAD_GATEWAY, Some("Tell the operator of this server.")),
        SignInFault::Unavailable => (StatusCode::SERVICE_UNAVAILABLE, None),
    };
    let body = html! {
        h1 { "You are not signed in" }
        p { (sentence(&fault.to_string())) }
        @if let Some(remedy) = remedy { p { (remedy) } }
        p { a href=(path) { "Sign in again" } }
    };
    page(status, "You are not signed in", &body, false)
}

/// Renders an error page.
pub(super) fn problem(status: StatusCode, title: &str, problem: &str, is_signed_in: bool) -> Response {
    let body = html! { h1 { (title) } p { (problem) } };
    page(status, title, &body, is_signed_in)
}

/// Renders a page about the server itself.
pub(in crate::http) fn information_page(title: &str, body: &Markup) -> Response {
    page(StatusCode::OK, title, body, false)
}

fn page(status: StatusCode, title: &str, body: &Markup, is_signed_in: bool) -> Response {
    let html = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="robots" content="noindex";
                meta name="color-scheme" content="light dark";
                title { (title) }
                style { (PreEscaped(CSS)) }
            }
            body {
                main { (body) }
                footer {
                    "Shown by fetchwell. The content of a record is that of its author. "
                    @if is_signed_in {
                        form method="post" action=(SIGN_OUT) { button type="submit" { "Sign out" } }
                    }
                }
            }
        }
    };
    let headers: [(HeaderName, &str); 8] = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CONTENT_SECURITY_POLICY, &POLICY),
        (header::CACHE_CONTROL, "no-store"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        // The URL may contain a token of a link, so it is not sent to other sites; forms of this site need their `Origin`.
        (header::REFERRER_POLICY, "same-origin"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("x-robots-tag"), "noindex"),
    ];
    (status, headers, html.into_string()).into_response()
}

/// Returns a message as a sentence: with a capital letter and a full stop.
pub(super) fn sentence(message: &str) -> String {
    let mut letters = message.chars();
    let first = letters.next().map(|letter| letter.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}.", letters.as_str().trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use axum::body::to_bytes;

    use super::*;

    #[test]
    fn timestamps_are_formatted_for_people() {
        let written = fact("2026-11-02T09:05:00.123+01:00").into_string();
        assert_eq!(
            written,
            "<time datetime=\"2026-11-02T09:05:00.123+01:00\">2 November 2026, 08:05 UTC</time>"
        );
        assert_eq!(fact("<2026>").into_string(), "<bdi lang=\"\">&lt;2026&gt;</bdi>");
    }

    #[tokio::test]
    async fn record_content_is_escaped() {
        let hostile = "<script>alert(1)</script>\"'&</pre><img src=x onerror=alert(1)>";
        let metadata = BTreeMap::from([("display_name".to_owned(), hostile.to_owned())]);
        let document =
            Document { title: hostile.to_owned(), text: hostile.to_owned(), url: String::new(), metadata };
        let response = record(&document, PageSurround::default());
        let policy = response.headers()[header::CONTENT_SECURITY_POLICY].to_str().unwrap().to_owned();
        assert!(policy.starts_with("default-src 'none'; style-src 'sha256-") && !policy.contains("unsafe"));
        let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
        let html = String::from_utf8(body.to_vec()).unwrap();
        assert!(!html.contains("<script") && !html.contains("<img"), "{html}");
        assert_eq!(html.matches("&lt;script&gt;").count(), 4, "{html}");
        // A text that begins with a line break keeps it.
        assert!(html.contains("<pre id=\"record\" dir=\"auto\" lang=\"\">\n&lt;script"), "{html}");
        // The policy has the hash of the style.
        assert!(html.contains(&format!("<style>{CSS}</style>")));
    }
}
