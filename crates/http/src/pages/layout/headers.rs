//! Style sheet, script and headers of all pages.

use std::sync::LazyLock;

use axum::http::{HeaderName, header};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

/// Style sheet of all pages.
pub(super) const CSS: &str = include_str!("page.css");

/// Script of all pages.
pub(super) const SCRIPT: &str = include_str!("page.js");

/// Content security policy: nothing is loaded, no page may frame this one, forms go only to this server, and only the style
/// sheet and the script of the layout apply, by their hashes.
static POLICY: LazyLock<String> = LazyLock::new(|| {
    let [style, script] = [CSS, SCRIPT].map(|text| STANDARD.encode(Sha256::digest(text)));
    format!(
        "default-src 'none'; style-src 'sha256-{style}'; script-src 'sha256-{script}'; form-action 'self'; \
         base-uri 'none'; frame-ancestors 'none'"
    )
});

/// Returns the headers of a page.
pub(super) fn headers() -> [(HeaderName, &'static str); 9] {
    [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CONTENT_SECURITY_POLICY, &POLICY),
        (header::CACHE_CONTROL, "no-store"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        // The URL may contain a token of a link, so it is not sent to other sites; forms of this site need their `Origin`.
        (header::REFERRER_POLICY, "same-origin"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (HeaderName::from_static("x-robots-tag"), "noindex"),
    ]
}
