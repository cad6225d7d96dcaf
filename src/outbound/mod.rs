//! HTTP requests to other servers: clients with limits, bounded bodies, and redaction.
//!
//! All outgoing requests use a client of this module, of the record source and of `callers::authenticate`, so that timeouts,
//! redirects and sizes are limited in one place.
//!
//! * `client`, `exchange`: clients, and requests that were built elsewhere
//! * `json_request`: requests with a JSON body and a bearer key
//! * `body`: bounded bodies
//! * `confidential`: URLs that a secret may be sent to
//! * `redaction`: redaction of secrets in responses

mod body;
mod client;
mod confidential;
mod exchange;
mod json_request;
mod redaction;

pub(crate) use body::{BodyFault, BodyReader, read_body};
pub(crate) use client::{build_client, innermost};
pub(crate) use confidential::is_confidential;
pub(crate) use exchange::Exchange;
pub(crate) use json_request::{InvalidRequest, bearer, json_request};
pub(crate) use redaction::Redactor;
