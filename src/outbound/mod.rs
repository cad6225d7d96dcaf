//! HTTP to others: the one client builder, with our limits and roots, and the bounded reading of bodies.
//!
//! Whoever calls out, the record source for records and `access` for keys, does it by a client of this room, so
//! what is said of timeouts, redirects and sizes is said once.

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
