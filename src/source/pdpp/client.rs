//! The client that reads within one call.

use super::known::KnownSchemas;
use super::transport::Requests;
use crate::handle::SourceName;

/// A client of a record server in the context of one call. It sends the token of that call.
#[derive(Debug, Clone, Copy)]
pub(super) struct Client<'a> {
    pub(super) name: &'a SourceName,
    pub(super) requests: Requests<'a>,
    pub(super) known: &'a KnownSchemas,
}
