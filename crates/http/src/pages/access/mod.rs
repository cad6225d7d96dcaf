//! Access to pages: sessions of browsers, sign-in, and the grant that a page is read with.
//!
//! With authentication a visitor has a session with the token of one grant, which is checked for each page like the token of
//! a call. Without authentication every browser on this machine may read.
//!
//! * `pages`: settings and sessions of all pages
//! * `visit`: the toolbox of a visitor, and pages that need one
//! * `forms`: forms of pages, sign-in with a token, sign-out
//! * `sign_in`, `sign_in_page`: sign-in at the authorization server, and its pages; `attempts`: attempts to sign in elsewhere
//! * `return_path`: the page to return to
//! * `sessions`, `cookies`: sessions of browsers
//! * `stream`: authenticates the search stream with a session
//! * `responses`, `parameters`: redirects, cookies and telemetry of responses; parameters of queries and forms

mod attempts;
mod cookies;
mod forms;
mod pages;
mod parameters;
mod responses;
mod return_path;
mod sessions;
mod sign_in;
mod sign_in_page;
mod stream;
mod visit;

pub(super) use self::attempts::{AttemptId, AttemptKeys, Attempts, SOURCE_COOKIE};
pub(super) use self::forms::{handle_form, sign_in_with_token, sign_out};
pub(crate) use self::pages::Pages;
pub(super) use self::pages::{AccessMethod, PageRefusal, begin_session, without_state};
pub(super) use self::parameters::{parameter, parameters};
pub(super) use self::responses::{code_of, finish, internal_problem, redirect};
pub(super) use self::return_path::{RECORDS, ReturnPath, record_id, record_path};
pub(super) use self::sign_in::{CALLBACK, begin, callback, is_just_signed_in, start_sign_in};
pub(super) use self::sign_in_page::{BEGIN, SIGN_IN, not_signed_in, sign_in_form, sign_in_page};
pub(crate) use self::stream::{StreamAccess, authorize_stream};
pub(super) use self::visit::{PageContent, Visit, serve_page};
