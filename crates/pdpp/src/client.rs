//! The client that reads within one call.

use fetchwell_core::handle::SourceName;

use super::known::KnownSchemas;
use super::transport::Requests;

/// A client of a record server in the context of one call. It sends the token of that call.
#[derive(Debug, Clone, Copy)]
pub struct Client<'a> {
    pub(crate) name: &'a SourceName,
    pub(crate) requests: Requests<'a>,
    pub(crate) known: &'a KnownSchemas,
}
