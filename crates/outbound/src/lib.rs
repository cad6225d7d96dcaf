//! HTTP requests to other servers: clients with limits, bounded bodies, and redaction.
//!
//! All outgoing requests use a client of this module, of the record source and of `callers::authenticate`, so that timeouts,
//! redirects and sizes are limited in one place.
//!
//! * `client`, `exchange`: clients, and requests that were built elsewhere
//! * `download`: downloads that follow redirects to other hosts
//! * `json_request`: requests with a JSON body and a bearer key
//! * `body`: bounded bodies
//! * `confidential`: URLs that a secret may be sent to; `public`: requests to URLs that another server names
//! * `redaction`: redaction of secrets in responses
//!
//! Uses no other crate of the workspace.

mod body;
mod client;
mod confidential;
mod download;
mod exchange;
pub mod json_request;
mod public;
mod redaction;

pub use body::{BodyFault, BodyReader, read_body};
pub use client::{build_client, build_client_without_redirects, innermost};
pub use confidential::is_confidential;
pub use download::{Download, DownloadFault, Downloader};
pub use exchange::Exchange;
pub use json_request::{InvalidRequest, bearer, json_request};
pub use public::{PublicClient, PublicFault, has_public_host};
pub use redaction::Redactor;
