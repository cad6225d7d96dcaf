//! A path under which a connector's own API served a stream.
//!
//! Users who migrate to fetchwell, and their clients, know the paths of the service that their records came from. A
//! manifest maps such paths to streams, and records can be requested under them. A path becomes a route of an HTTP
//! server and part of responses, so only an unambiguous path is valid.

use crate::handle::StreamName;

/// Prefix of every route.
const BASE: &str = "/api/v1/";

/// Maximum number of segments after the base.
const MAX_SEGMENTS: usize = 6;

/// Maximum length of a route in bytes.
const MAX_PATH_BYTES: usize = 200;

/// Maximum length of a record type's name in bytes.
const MAX_TYPE_BYTES: usize = 64;

/// First segments after the base that are reserved for fetchwell.
const RESERVED: [&str; 4] = ["content", "search", "projects", "admin"];

/// First segment of the documents of projects. Streams of this name share it, those of projects among them.
const DOCUMENTS: &str = "documents";

/// A path with the stream that it serves and the type name of its records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpRoute {
    /// Path of the list, such as `/api/v1/bookings`. A single record is at this path, `/` and its key.
    pub path: String,
    /// Stream of the same connection that the path serves.
    pub stream: StreamName,
    /// Type name of a record of the stream, such as `Booking`.
    pub record_type: Option<String>,
}

/// A reason to reject a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidRoute {
    /// The path does not start with `/api/v1/`.
    #[error("it does not begin with `{BASE}`")]
    OutsideBase,
    /// The path is too long.
    #[error("it is longer than {MAX_PATH_BYTES} bytes")]
    TooLong,
    /// The path has no segment after the base, or too many.
    #[error("it does not have 1 to {MAX_SEGMENTS} segments after `{BASE}`")]
    SegmentCount,
    /// A segment is empty, `.` or `..`, or has characters that would have to be encoded.
    #[error("a segment of it is `.`, `..`, empty, or has more than letters, digits, `.`, `_` and `-`")]
    Segment,
    /// The path is reserved for fetchwell.
    #[error("it begins with `{BASE}` and one of {}, which are taken", RESERVED.join(", "))]
    Reserved,
    /// The path belongs to streams of the name `documents`.
    #[error("it begins with `{BASE}{DOCUMENTS}`, which only a stream named `{DOCUMENTS}` can have")]
    Documents,
    /// The type is not a valid name.
    #[error("its `type` is not 1 to {MAX_TYPE_BYTES} letters, digits, `.`, `_` and `-`")]
    Type,
}

impl HttpRoute {
    /// Creates a route after validating its path and type.
    ///
    /// # Errors
    ///
    /// The path or the type is not plain.
    pub fn new(path: &str, stream: StreamName, record_type: Option<&str>) -> Result<Self, InvalidRoute> {
        check_path(path, &stream)?;
        if record_type.is_some_and(|name| name.len() > MAX_TYPE_BYTES || !is_plain(name)) {
            return Err(InvalidRoute::Type);
        }
        Ok(Self { path: path.to_owned(), stream, record_type: record_type.map(str::to_owned) })
    }
}

fn check_path(path: &str, stream: &StreamName) -> Result<(), InvalidRoute> {
    let below = path.strip_prefix(BASE).ok_or(InvalidRoute::OutsideBase)?;
    if path.len() > MAX_PATH_BYTES {
        return Err(InvalidRoute::TooLong);
    }
    if below.is_empty() || below.split('/').count() > MAX_SEGMENTS {
        return Err(InvalidRoute::SegmentCount);
    }
    if !below.split('/').all(|segment| is_plain(segment) && segment != "." && segment != "..") {
        return Err(InvalidRoute::Segment);
    }
    match below.split('/').next() {
        Some(first) if RESERVED.contains(&first) => Err(InvalidRoute::Reserved),
        Some(DOCUMENTS) if stream.as_str() != DOCUMENTS => Err(InvalidRoute::Documents),
        _ => Ok(()),
    }
}

fn is_plain(name: &str) -> bool {
    !name.is_empty()
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_is_plain() {
        let check = |path: &str, expect: Result<(), InvalidRoute>| {
            let route = HttpRoute::new(path, "reservations".parse().unwrap(), Some("Booking"));
            assert_eq!(route.map(|route| assert_eq!(route.path, path)), expect, "{path}");
        };
        for good in ["/api/v1/bookings", "/api/v1/a/b/c/d/e/f", "/api/v1/fin-ance_1.0", "/api/v1/x/content"] {
            check(good, Ok(()));
        }
        for outside in ["", "/api/v2/bookings", "api/v1/bookings", "/api/v1", "/API/v1/x", "//api/v1/x"] {
            check(outside, Err(InvalidRoute::OutsideBase));
        }
        check("/api/v1/", Err(InvalidRoute::SegmentCount));
        check("/api/v1/a/b/c/d/e/f/g", Err(InvalidRoute::SegmentCount));
        for strange in ["a/", "/a", "a//b", ".", "a/../b", "a b", "a%2Fb", "{id}", "a?b", "ä", "a\\b", "a\n"]
        {
            check(&format!("/api/v1/{strange}"), Err(InvalidRoute::Segment));
        }
        check("/api/v1/content", Err(InvalidRoute::Reserved));
        check("/api/v1/content/x", Err(InvalidRoute::Reserved));
        for reserved in ["search", "search/stream", "projects/x", "admin/cache/clear"] {
            check(&format!("/api/v1/{reserved}"), Err(InvalidRoute::Reserved));
        }
        check("/api/v1/searches", Ok(()));
        check("/api/v1/documents", Err(InvalidRoute::Documents));
        check("/api/v1/documents/old", Err(InvalidRoute::Documents));
        assert!(HttpRoute::new("/api/v1/documents", "documents".parse().unwrap(), None).is_ok());
        check("/api/v1/documents-of-guests", Ok(()));
        check(&format!("/api/v1/{}", "a".repeat(192)), Ok(()));
        check(&format!("/api/v1/{}", "a".repeat(193)), Err(InvalidRoute::TooLong));
    }

    #[test]
    fn a_type_is_a_name() {
        let route = |kind: Option<&str>| HttpRoute::new("/api/v1/x", "s".parse().unwrap(), kind);
        assert_eq!(route(None).unwrap().record_type, None);
        assert_eq!(route(Some("Booking")).unwrap().record_type.as_deref(), Some("Booking"));
        for strange in ["", "A b", "<script>", &"x".repeat(65)] {
            assert_eq!(route(Some(strange)).unwrap_err(), InvalidRoute::Type, "{strange}");
        }
    }
}
