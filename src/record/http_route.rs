//! A path under which a connector's own API served a stream.
//!
//! People who move to fetchwell know the paths of the service their records came from, and so do their clients. A
//! manifest lists these paths, each with its stream, and records can be asked for under them. A path goes into the
//! table of an HTTP server and into answers, so it is plain: what could be read in two ways is no route.

use crate::handle::StreamName;

/// Where every route begins.
const BASE: &str = "/api/v1/";

/// The most segments after the base.
const SEGMENTS_MOST: usize = 6;

/// The longest route, in bytes.
const PATH_BYTES_MOST: usize = 200;

/// The longest name of a kind of record, in bytes.
const TYPE_BYTES_MOST: usize = 64;

/// A first segment after the base that is not a connector's to take.
const RESERVED: &str = "content";

/// A path, the stream that is served there, and what a record of it is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpRoute {
    /// Such as `/api/v1/bookings`. One record is below it, under its key.
    pub path: String,
    /// The stream, which is one of the same connection.
    pub stream: StreamName,
    /// What one of its records is called, such as `Booking`.
    pub record_type: Option<String>,
}

/// Why a route cannot be served.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidRoute {
    /// It is elsewhere.
    #[error("it does not begin with `{BASE}`")]
    OutsideBase,
    /// It is too long.
    #[error("it is longer than {PATH_BYTES_MOST} bytes")]
    TooLong,
    /// It has no segment after the base, or too many.
    #[error("it does not have 1 to {SEGMENTS_MOST} segments after `{BASE}`")]
    SegmentCount,
    /// A segment is empty, leads elsewhere, or would have to be encoded.
    #[error("a segment of it is `.`, `..`, empty, or has more than letters, digits, `.`, `_` and `-`")]
    Segment,
    /// It is not a connector's to take.
    #[error("`{BASE}{RESERVED}` is taken")]
    Reserved,
    /// The type is no name.
    #[error("its `type` is not 1 to {TYPE_BYTES_MOST} letters, digits, `.`, `_` and `-`")]
    Type,
}

impl HttpRoute {
    /// A route, if it can be served.
    ///
    /// # Errors
    ///
    /// The path or the type is not plain.
    pub fn new(path: &str, stream: StreamName, record_type: Option<&str>) -> Result<Self, InvalidRoute> {
        check_path(path)?;
        if record_type.is_some_and(|name| name.len() > TYPE_BYTES_MOST || !is_plain(name)) {
            return Err(InvalidRoute::Type);
        }
        Ok(Self { path: path.to_owned(), stream, record_type: record_type.map(str::to_owned) })
    }
}

fn check_path(path: &str) -> Result<(), InvalidRoute> {
    let below = path.strip_prefix(BASE).ok_or(InvalidRoute::OutsideBase)?;
    if path.len() > PATH_BYTES_MOST {
        return Err(InvalidRoute::TooLong);
    }
    if below.is_empty() || below.split('/').count() > SEGMENTS_MOST {
        return Err(InvalidRoute::SegmentCount);
    }
    if !below.split('/').all(|segment| is_plain(segment) && segment != "." && segment != "..") {
        return Err(InvalidRoute::Segment);
    }
    if below.split('/').next() == Some(RESERVED) {
        return Err(InvalidRoute::Reserved);
    }
    Ok(())
}

fn is_plain(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    !name.is_empty() && name.bytes().all(plain)
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
