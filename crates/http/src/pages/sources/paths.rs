//! Paths of the page, and of the sign-ins on it.

/// Path of the page.
pub const SOURCES: &str = "/sources";

/// Path of the redirect URI of sign-ins at the servers of sources.
pub const SIGNED_IN: &str = "/sources/signed-in";

/// Path of the form that begins a sign-in.
pub(crate) const BEGIN_SIGN_IN: &str = "/sources/sign-in";

/// Path of the form that deletes the tokens of a sign-in.
pub(crate) const SIGN_OUT_OF_SOURCE: &str = "/sources/sign-out";
