//! HTTP requests to other servers: clients with limits, bounded bodies, and redaction.
//!
//! All outgoing requests use a client of this module, of the record source and of `callers::authenticate`, so that timeouts,
//! redirects and sizes are limited in one place.
//!
//! * `client`, `exchange`: clients, and requests that a library builds
//! * `body`: bounded bodies
//! * `confidential`: URLs that a secret may be sent to
//! * `redaction`: redaction of secrets in responses

mod body;
mod client;
mod confidential;
mod exchange;
mod redaction;

pub(crate) use body::{BodyFault, BodyReader, read_body};
pub(crate) use client::{build_client, innermost};
pub(crate) use confidential::is_confidential;
pub(crate) use exchange::Exchange;
pub(crate) use redaction::Redactor;
