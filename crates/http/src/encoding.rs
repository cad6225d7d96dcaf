//! Percent-encoding of URLs in responses.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC};

/// Characters that are percent-encoded in a path segment or a query value: all but the unreserved ones of RFC 3986.
pub(crate) const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
