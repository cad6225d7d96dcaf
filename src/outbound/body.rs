//! Reading a body no further than to a limit.

use bytes::{Bytes, BytesMut};
use reqwest::Response;

/// Why a body could not be read to its end.
#[derive(Debug)]
pub(crate) enum BodyFault {
    /// It is larger than the limit, or says so.
    TooLarge,
    /// The connection broke.
    Broken(reqwest::Error),
}

/// Reads the body piece by piece and stops at the limit, in bytes, whatever `Content-Length` promised.
pub(crate) async fn read_body(mut response: Response, limit: usize) -> Result<Bytes, BodyFault> {
    let announced = usize::try_from(response.content_length().unwrap_or(0)).unwrap_or(usize::MAX);
    if announced > limit {
        return Err(BodyFault::TooLarge);
    }
    let mut body = BytesMut::with_capacity(announced);
    while let Some(piece) = response.chunk().await.map_err(BodyFault::Broken)? {
        if body.len() + piece.len() > limit {
            return Err(BodyFault::TooLarge);
        }
        body.extend_from_slice(&piece);
    }
    Ok(body.freeze())
}
