//! Reads response bodies up to a limit.

use bytes::{Bytes, BytesMut};
use reqwest::Response;

/// Reason why a body could not be read.
#[derive(Debug)]
pub enum BodyFault {
    /// The body, or its announced length, exceeds the limit.
    TooLarge,
    /// The connection failed.
    Broken(reqwest::Error),
}

/// Reads a body in chunks up to a limit in bytes, whatever `Content-Length` says.
pub async fn read_body(response: Response, limit: usize) -> Result<Bytes, BodyFault> {
    let mut reader = BodyReader::new(response, limit)?;
    reader.read_up_to(limit).await?;
    Ok(reader.into_bytes())
}

/// Reader of a body in steps.
#[derive(Debug)]
pub struct BodyReader {
    response: Response,
    body: BytesMut,
    limit: usize,
}

impl BodyReader {
    /// Creates a reader of a body of at most `limit` bytes.
    pub fn new(response: Response, limit: usize) -> Result<Self, BodyFault> {
        let reader = Self { response, body: BytesMut::new(), limit };
        if reader.announced().is_some_and(|length| length > limit) {
            return Err(BodyFault::TooLarge);
        }
        Ok(reader)
    }

    /// Returns the announced length in bytes.
    pub fn announced(&self) -> Option<usize> {
        self.response.content_length().map(|length| usize::try_from(length).unwrap_or(usize::MAX))
    }

    /// Reads until the end, or until there are more bytes than `enough`. Returns true if the body ended.
    pub async fn read_up_to(&mut self, enough: usize) -> Result<bool, BodyFault> {
        let announced = self.announced().unwrap_or(0).min(enough);
        self.body.reserve(announced.saturating_sub(self.body.len()));
        while self.body.len() <= enough {
            let Some(piece) = self.response.chunk().await.map_err(BodyFault::Broken)? else {
                return Ok(true);
            };
            if self.body.len() + piece.len() > self.limit {
                return Err(BodyFault::TooLarge);
            }
            self.body.extend_from_slice(&piece);
        }
        Ok(false)
    }

    /// Returns the bytes that were read.
    pub fn into_bytes(self) -> Bytes {
        self.body.freeze()
    }
}
