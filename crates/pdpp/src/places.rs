//! Errors for an unknown connection or stream, equal to those of the embedded store.
//!
//! Servers refuse them with many codes, of which 401 `context.instance_mismatch` does not say what exists. The schema
//! does.

use fetchwell_core::handle::{ConnectionId, StreamName};
use fetchwell_core::record::Schema;
use fetchwell_source::unknown_place::unknown_place;
use fetchwell_source::{ProtocolFault, Refusal, SourceError};

use super::client::Client;
use super::describe;

/// Returns the error that lists what exists. Any other error is returned unchanged.
///
/// `streams` are those of the call, `connection` the one it named.
pub(crate) async fn explain(
    pdpp: &Client<'_>,
    error: SourceError,
    connection: Option<&ConnectionId>,
    streams: &[StreamName],
) -> SourceError {
    if matches!(error, SourceError::Refused(_) | SourceError::Reauthorize { .. })
        && let Ok(grant) = pdpp.requests.grant().await
    {
        pdpp.known.forget_streams(grant);
    }
    let refusal = match error {
        SourceError::Refused(refusal) if refusal.is_about_a_place() => refusal,
        other => return other,
    };
    let unknown = |schema: &Schema| {
        let mut of_streams =
            streams.iter().filter_map(|stream| unknown_place(schema, connection, Some(stream)));
        of_streams.next().or_else(|| unknown_place(schema, connection, None))
    };
    let kept = match pdpp.requests.grant().await {
        Ok(grant) => pdpp.known.schema(grant),
        Err(error) => return error,
    };
    if let Some(unknown) = kept.as_deref().and_then(unknown) {
        return unknown;
    }
    match describe::schema(pdpp).await {
        Ok(schema) => unknown(&schema).unwrap_or_else(|| unexplained(*refusal)),
        Err(SourceError::Refused(_) | SourceError::Protocol(ProtocolFault::WrongShape { .. })) => {
            unexplained(*refusal)
        }
        Err(error) => error,
    }
}

/// Returns true if a call was refused because of its connection or its stream.
pub(crate) fn is_about_a_place(error: &SourceError) -> bool {
    matches!(error, SourceError::Refused(refusal) if refusal.is_about_a_place())
}

/// Returns a refusal that the schema does not explain. The server's message blames the client token, which is valid.
fn unexplained(refusal: Refusal) -> SourceError {
    let message = if refusal.code.starts_with("context.") {
        "the record server refuses this connection or stream".to_owned()
    } else {
        refusal.message
    };
    SourceError::Refused(Box::new(Refusal { message, ..refusal }))
}
