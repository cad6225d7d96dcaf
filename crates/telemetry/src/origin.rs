//! The origin of a call: its request id, the grant of its caller, and its trace. The adapter that answers the request
//! reads them from it. None of them is free text of a caller.

use fetchwell_callers::GrantId;
use http::{Extensions, HeaderMap};
use opentelemetry::propagation::{Extractor, TextMapPropagator};
use opentelemetry::trace::{SpanContext, TraceContextExt, TraceState};
use opentelemetry_sdk::propagation::TraceContextPropagator;

use super::RequestId;

/// The request id, grant and trace of a call.
#[derive(Debug, Clone, Default)]
pub struct Origin {
    /// Id that the caller gave to the request.
    pub(crate) request_id: Option<RequestId>,
    /// Grant of the caller, or `None` if callers are anonymous.
    pub(crate) caller: Option<GrantId>,
    /// Span of the caller that this call belongs to.
    pub(crate) parent: Option<TraceParent>,
}

/// A span of a caller, from `traceparent` (W3C Trace Context). `tracestate` is not read, because it contains free
/// text.
#[derive(Debug, Clone)]
pub struct TraceParent(pub(crate) SpanContext);

impl Origin {
    /// Reads the origin that the HTTP middleware stored in a request's extensions.
    #[must_use]
    pub fn from_extensions(extensions: &Extensions) -> Self {
        Self {
            request_id: extensions.get::<RequestId>().cloned(),
            caller: extensions.get::<GrantId>().copied(),
            parent: extensions.get::<TraceParent>().cloned(),
        }
    }

    /// Returns the origin of a request with an id from its caller. An id that cannot be logged and echoed is ignored.
    #[must_use]
    pub fn named(request_id: &str) -> Self {
        Self { request_id: RequestId::of_caller(request_id.to_owned()), ..Self::default() }
    }

    /// Sets the grant of the caller.
    #[must_use]
    pub fn by(self, caller: GrantId) -> Self {
        Self { caller: Some(caller), ..self }
    }
}

impl TraceParent {
    /// Parses the `traceparent` header of a request, if it has a valid one.
    #[must_use]
    pub fn from_headers(headers: &HeaderMap) -> Option<Self> {
        let text = headers.get(HEADER)?.to_str().ok()?;
        let context = TraceContextPropagator::new().extract(&SingleHeader(text));
        let span = context.span().span_context().clone();
        let (trace, id, flags) = (span.trace_id(), span.span_id(), span.trace_flags());
        span.is_valid().then(|| Self(SpanContext::new(trace, id, flags, true, TraceState::default())))
    }
}

const HEADER: &str = "traceparent";

/// An extractor of the one header.
struct SingleHeader<'a>(&'a str);

impl Extractor for SingleHeader<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        (key == HEADER).then_some(self.0)
    }

    fn keys(&self) -> Vec<&str> {
        vec![HEADER]
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn parent(text: &'static str) -> Option<String> {
        let headers = HeaderMap::from_iter([
            (http::HeaderName::from_static(HEADER), HeaderValue::from_static(text)),
            (http::HeaderName::from_static("tracestate"), HeaderValue::from_static("vendor=secret")),
        ]);
        let TraceParent(span) = TraceParent::from_headers(&headers)?;
        assert_eq!(span.trace_state().header(), "");
        Some(format!("{}/{}/{}", span.trace_id(), span.span_id(), span.is_sampled()))
    }

    #[test]
    fn a_valid_traceparent_is_used_and_an_invalid_one_is_ignored() {
        let good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        assert_eq!(parent(good).unwrap(), "0af7651916cd43dd8448eb211c80319c/b7ad6b7169203331/true");
        for bad in [
            "",
            "00",
            "nonsense",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        ] {
            assert_eq!(parent(bad), None, "{bad}");
        }
        assert!(TraceParent::from_headers(&HeaderMap::new()).is_none());
    }
}
